package docker

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
)

func chunk(stream byte, data []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{stream, 0, 0, 0}, uint32(len(data))), data...)
}

func pipe(t *testing.T) (daemon net.Conn, s *stream) {
	t.Helper()
	ours, daemon := net.Pipe()
	s = newStream(ours, bufio.NewReader(ours))
	t.Cleanup(func() {
		_ = daemon.Close()
		_ = s.Close()
	})
	return daemon, s
}

func TestStream_UndoesTheFraming(t *testing.T) {
	t.Parallel()
	daemon, s := pipe(t)
	big := bytes.Repeat([]byte("x"), 100<<10)
	go func() {
		_, _ = daemon.Write(chunk(1, []byte("one ")))
		_, _ = daemon.Write(chunk(1, nil))
		_, _ = daemon.Write(chunk(1, big))
		_ = daemon.Close()
	}()
	got, err := io.ReadAll(s)
	if err != nil || string(got) != "one "+string(big) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
}

func TestStream_ReadsOnWithoutAReaderAndEndsAtTheOverrun(t *testing.T) {
	t.Parallel()
	daemon, s := pipe(t)
	block := chunk(1, make([]byte, 64<<10))
	sent := 0
	for sent <= maxUnread {
		if _, err := daemon.Write(block); err != nil {
			break
		}
		sent += len(block) - 8
	}
	if sent < maxUnread-(64<<10) {
		t.Fatalf("the stream stopped reading after %d bytes", sent)
	}
	if _, err := io.Copy(io.Discard, s); !errors.Is(err, errOverrun) {
		t.Errorf("ended with %v, want an overrun", err)
	}
}

func TestStream_CloseEndsAReaderThatWaits(t *testing.T) {
	t.Parallel()
	_, s := pipe(t)
	ended := make(chan error, 1)
	go func() {
		_, err := s.Read(make([]byte, 1))
		ended <- err
	}()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read after Close: %v", err)
	}
}

// What arrives may be anything: the stream must end, and hand out nothing that was not in a chunk.
func FuzzStream(f *testing.F) {
	f.Add(chunk(1, []byte("hello")))
	f.Add(chunk(2, []byte("stderr")))
	f.Add([]byte{1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 'x'})
	f.Add([]byte{1, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		ours, daemon := net.Pipe()
		s := newStream(ours, bufio.NewReader(ours))
		go func() {
			_, _ = daemon.Write(data)
			_ = daemon.Close()
		}()
		got, err := io.ReadAll(s)
		_ = daemon.Close()
		if len(got) > len(data) {
			t.Fatalf("%d bytes out of %d, %v", len(got), len(data), err)
		}
		_ = s.Close()
	})
}
