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

	"agent-sandboxing/sandbox"
)

const (
	// maxChunk bounds one chunk of Docker's framing; the daemon itself cuts at 32 KiB.
	maxChunk = 1 << 20
	// maxUnread bounds what waits for the reader. The toolbox's credit windows keep far below it.
	maxUnread = 8 << 20
	// maxStderr bounds what is kept of standard error, where the toolbox says why it cannot start.
	maxStderr = 2 << 10
	// writeWithin bounds one write: a container that does not read is as good as lost.
	writeWithin = 10 * time.Second
)

var errOverrun = errors.New("the sandbox sent more than its reader allowed")

// Attach opens the toolbox's stdin and stdout as one stream, its stderr beside it. Only one may be open per container:
// two would mix their input.
func (r *Runtime) Attach(ctx context.Context, ref string) (sandbox.Stream, error) {
	var hijacked types.HijackedResponse
	err := r.ask(ctx, "attach to the container", func(ctx context.Context) error {
		r.api.NegotiateAPIVersion(ctx)
		once, err := r.hijacker()
		if err != nil {
			return err
		}
		hijacked, err = once.ContainerAttach(ctx, ref, container.AttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
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
	stderr  []byte
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

// Stderr is the beginning of what the toolbox said beside the stream.
func (s *stream) Stderr() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.stderr)
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
		of, size, err := chunkHeader(from)
		for err == nil && size > 0 {
			part := chunk[:min(size, len(chunk))]
			if _, err = io.ReadFull(from, part); err == nil {
				err = s.push(of, part)
				size -= len(part)
			}
		}
		if err != nil {
			s.end(err)
			return
		}
	}
}

func (s *stream) push(of byte, part []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	if of == stderrChunk {
		s.stderr = append(s.stderr, part[:min(len(part), maxStderr-len(s.stderr))]...)
		return nil
	}
	if s.unread.Len()+len(part) > maxUnread {
		return errOverrun
	}
	s.unread.Write(part)
	s.arrived.Signal()
	return nil
}

// Numbers of the streams in Docker's framing.
const (
	stdoutChunk = 1
	stderrChunk = 2
)

// chunkHeader reads the 8 bytes before each chunk: the stream's number, three zeros, the length.
func chunkHeader(from io.Reader) (of byte, size int, err error) {
	var header [8]byte
	if _, err := io.ReadFull(from, header[:]); err != nil {
		return 0, 0, err
	}
	length := binary.BigEndian.Uint32(header[4:])
	if (header[0] != stdoutChunk && header[0] != stderrChunk) || header[1]|header[2]|header[3] != 0 || length > maxChunk {
		return 0, 0, fmt.Errorf("malformed chunk header %x", header)
	}
	return header[0], int(length), nil
}
