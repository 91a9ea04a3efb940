package wire

import (
	"context"
	"errors"
	"io"
	"testing"
)

func TestInbox_HoldsAWindowAtMost(t *testing.T) {
	t.Parallel()
	b := NewInbox(Window)
	if err := b.Push(make([]byte, Window)); err != nil {
		t.Fatal(err)
	}
	if err := b.Push([]byte{1}); !errors.Is(err, ErrOverrun) {
		t.Errorf("err = %v, want ErrOverrun", err)
	}
	var granted int
	buf := make([]byte, 1000)
	for read := 0; read < Window; {
		n, grant, err := b.Read(t.Context(), buf)
		if err != nil {
			t.Fatal(err)
		}
		read += n
		granted += int(grant)
	}
	if granted > Window || granted < Window/2 {
		t.Errorf("granted %d", granted)
	}
	if err := b.Push(make([]byte, granted)); err != nil {
		t.Errorf("push of what was granted: %v", err)
	}
}

func TestInbox_EndComesAfterTheData(t *testing.T) {
	t.Parallel()
	b := NewInbox(Window)
	if err := b.Push([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	b.Close(io.EOF)
	b.Close(errors.New("later"))
	buf := make([]byte, 10)
	if n, _, err := b.Read(t.Context(), buf); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, _, err := b.Read(t.Context(), buf); !errors.Is(err, io.EOF) {
		t.Errorf("err = %v, want EOF", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := NewInbox(Window).Read(ctx, buf); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want the context's", err)
	}
}

func TestAllowance_NeverExceedsAWindow(t *testing.T) {
	t.Parallel()
	a := NewAllowance(Window)
	if err := a.Grant(CreditPayload(1)); !errors.Is(err, ErrOverrun) {
		t.Errorf("err = %v, want ErrOverrun", err)
	}
	if n, err := a.Take(t.Context(), Window+5); n != Window || err != nil {
		t.Errorf("took %d, %v", n, err)
	}
	if err := a.Grant(CreditPayload(7)); err != nil {
		t.Error(err)
	}
	if n, err := a.Take(t.Context(), 100); n != 7 || err != nil {
		t.Errorf("took %d, %v", n, err)
	}
	a.Close(io.EOF)
	if _, err := a.Take(t.Context(), 1); !errors.Is(err, io.EOF) {
		t.Errorf("err = %v, want EOF", err)
	}
}
