package docker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
)

const (
	// maxChunk bounds one chunk of Docker's framing; the daemon itself cuts at 32 KiB.
	maxChunk = 1 << 20
	// maxUnread bounds what waits for the reader. The toolbox's credit windows keep far below it.
	maxUnread = 8 << 20
	// writeWithin bounds one write: a container that does not read is as good as lost.
	writeWithin = 10 * time.Second
)

var errOverrun = errors.New("the sandbox sent more than its reader allowed")

// Attach opens the toolbox's stdin and stdout as one stream. Only one may be open per container:
// two would mix their input.
func (r *Runtime) Attach(ctx context.Context, ref string) (io.ReadWriteCloser, error) {
	var hijacked types.HijackedResponse
	err := r.ask(ctx, "attach to the container", func(ctx context.Context) error {
		r.api.NegotiateAPIVersion(ctx)
		once, err := r.hijacker()
		if err != nil {
			return err
		}
		hijacked, err = once.ContainerAttach(ctx, ref, container.AttachOptions{Stream: true, Stdin: true, Stdout: true})
		if err != nil && strings.HasSuffix(err.Error(), "received 404") { // the one status that the client gives as text only
			return lost().Because(err)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := hijacked.Conn.SetDeadline(time.Time{}); err != nil {
		hijacked.Close()
		return nil, translate("attach to the container", err)
	}
	return newStream(hijacked.Conn, hijacked.Reader), nil
}

// stream undoes Docker's framing of a container without a terminal. A goroutine always reads, because
// a client that is connected but does not read stalls the daemon's kill and inspect of that container.
type stream struct {
	conn net.Conn

	mu      sync.Mutex
	arrived *sync.Cond
	unread  bytes.Buffer
	err     error // why nothing more will arrive

	pumped chan struct{} // closed when the goroutine has ended
}

func newStream(conn net.Conn, buffered *bufio.Reader) *stream {
	s := &stream{conn: conn, pumped: make(chan struct{})}
	s.arrived = sync.NewCond(&s.mu)
	go s.pump(buffered)
	return s
}

// Read returns what the toolbox wrote, in order, and io.EOF when the container has ended.
func (s *stream) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.unread.Len() == 0 {
		if s.err != nil {
			return 0, s.err
		}
		if len(p) == 0 {
			return 0, nil
		}
		s.arrived.Wait()
	}
	n, err := s.unread.Read(p)
	if s.unread.Len() == 0 && s.unread.Cap() > maxChunk {
		s.unread = bytes.Buffer{} // do not keep the memory of a burst
	}
	return n, err
}

// Write sends to the toolbox; it fails, and ends the stream, after 10 s without progress.
func (s *stream) Write(p []byte) (int, error) {
	if err := s.conn.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
		return 0, err
	}
	n, err := s.conn.Write(p)
	if err != nil {
		s.end(err)
	}
	return n, err
}

// Close detaches; the container goes on.
func (s *stream) Close() error {
	s.end(net.ErrClosed)
	<-s.pumped
	return nil
}

func (s *stream) end(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	s.mu.Unlock()
	s.arrived.Broadcast()
	_ = s.conn.Close() // closing twice is harmless
}

func (s *stream) pump(from *bufio.Reader) {
	defer close(s.pumped)
	chunk := make([]byte, 32<<10)
	for {
		size, err := chunkHeader(from)
		for err == nil && size > 0 {
			part := chunk[:min(size, len(chunk))]
			if _, err = io.ReadFull(from, part); err == nil {
				err = s.push(part)
				size -= len(part)
			}
		}
		if err != nil {
			s.end(err)
			return
		}
	}
}

func (s *stream) push(part []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	if s.unread.Len()+len(part) > maxUnread {
		return errOverrun
	}
	s.unread.Write(part)
	s.arrived.Signal()
	return nil
}

// chunkHeader reads the 8 bytes before each chunk: the stream's number, three zeros, the length.
func chunkHeader(from io.Reader) (size int, err error) {
	var header [8]byte
	if _, err := io.ReadFull(from, header[:]); err != nil {
		return 0, err
	}
	length := binary.BigEndian.Uint32(header[4:])
	if header[0] != 1 || header[1]|header[2]|header[3] != 0 || length > maxChunk {
		return 0, fmt.Errorf("malformed chunk header %x", header)
	}
	return int(length), nil
}
