package wire

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

func TestReader_ReadsWhatAppendWrote(t *testing.T) {
	t.Parallel()
	frames := []Frame{
		{Type: Ping},
		{Type: Data, Stream: 1, Payload: []byte{0, 0, 0}},
		{Type: Result, Stream: 1<<32 - 1, Payload: bytes.Repeat([]byte{0xF5}, MaxPayload)},
	}
	var stream []byte
	for _, f := range frames {
		stream = f.Append(append(stream, 0, 0, 0))
	}
	r := NewReader(bytes.NewReader(stream))
	for _, want := range frames {
		got, err := r.Next()
		if err != nil || got.Type != want.Type || got.Stream != want.Stream || !bytes.Equal(got.Payload, want.Payload) {
			t.Errorf("type %d stream %d %d bytes, %v", got.Type, got.Stream, len(got.Payload), err)
		}
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("err = %v, want EOF", err)
	}
}

func TestReader_FindsEveryChangedByte(t *testing.T) {
	t.Parallel()
	good := Frame{Type: Data, Stream: 3, Payload: []byte("payload")}.Append(nil)
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x55
		if f, err := NewReader(bytes.NewReader(bad)).Next(); err == nil {
			t.Errorf("byte %d changed: got %+v", i, f)
		}
	}
	for n := range good {
		if _, err := NewReader(bytes.NewReader(good[:n])).Next(); err == nil {
			t.Errorf("the first %d bytes are a frame", n)
		}
	}
}

func TestReader_APreambleEndsEveryHalfFrame(t *testing.T) {
	t.Parallel()
	half := Frame{Type: Data, Stream: 3, Payload: bytes.Repeat([]byte("p"), MaxPayload)}.Append(nil)
	hello := Frame{Type: Hello, Payload: HelloPayload([NonceSize]byte{1}, Version)}
	for _, cut := range []int{0, 1, 2, 7, 8, 9, 1000, len(half) - 5, len(half) - 1} {
		stream := append(bytes.Clone(half[:cut]), make([]byte, Preamble)...)
		r := NewReader(bytes.NewReader(hello.Append(stream)))
		f, err := r.Next()
		for errors.Is(err, ErrCorrupt) {
			if err = r.Resync(); err == nil {
				f, err = r.Next()
			}
		}
		if err != nil || f.Type != Hello {
			t.Errorf("cut at %d: type %d, %v", cut, f.Type, err)
		}
	}
}

func TestAwaitEcho_SkipsAllElse(t *testing.T) {
	t.Parallel()
	nonce := [NonceSize]byte{1, 2, 3}
	old := Frame{Type: HelloOK, Payload: HelloPayload([NonceSize]byte{9}, Version)}.Append([]byte("noise"))
	old = append(old, old[:10]...) // and half of it once more
	stream := Frame{Type: HelloOK, Payload: HelloPayload(nonce, 7)}.Append(old)
	stream = SealOf(nonce).Append(stream, Frame{Type: Pong})
	r := NewReader(bytes.NewReader(stream))
	if v, err := r.AwaitEcho(nonce); err != nil || v != 7 {
		t.Errorf("version %d, %v", v, err)
	}
	if f, err := r.Next(); err != nil || f.Type != Pong {
		t.Errorf("type %d, %v", f.Type, err)
	}
}

func TestReader_TakesNoFrameOfAnotherConnection(t *testing.T) {
	t.Parallel()
	mine, other := SealOf([NonceSize]byte{1}), SealOf([NonceSize]byte{2})
	for _, typ := range []Type{Request, Data, Result, Finish, Pong} {
		r := NewReader(bytes.NewReader(other.Append(nil, Frame{Type: typ, Stream: 1, Payload: []byte("x")})))
		r.Seal = mine
		if f, err := r.Next(); !errors.Is(err, ErrCorrupt) {
			t.Errorf("type %d: %+v, %v", typ, f, err)
		}
	}
	// Only who begins a connection is heard whatever came before.
	r := NewReader(bytes.NewReader(other.Append(nil, Frame{Type: Hello})))
	r.Seal = mine
	if f, err := r.Next(); err != nil || f.Type != Hello {
		t.Errorf("hello: %+v, %v", f, err)
	}
}

func FuzzReader(f *testing.F) {
	f.Add(Frame{Type: Data, Stream: 3, Payload: []byte("payload")}.Append(nil))
	f.Add(Frame{Type: Ping}.Append(make([]byte, 40)))
	f.Add([]byte{magic, 3, 0, 0, 0, 1, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := NewReader(bytes.NewReader(stream))
		for {
			frame, err := r.Next()
			if errors.Is(err, ErrCorrupt) {
				err = r.Resync()
				if err == nil {
					continue
				}
			}
			if err != nil {
				return
			}
			if again := frame.Append(nil); !bytes.Contains(stream, again) {
				t.Errorf("frame %+v is not in the stream", frame)
			}
		}
	})
}
