package store_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
)

// cutMode is where a connection dies: before the server got the statement, or after it got the
// statement and before we got its answer.
type cutMode string

const (
	cutBefore cutMode = "before the statement"
	cutAfter  cutMode = "before its answer"
)

// faultProxy stands between a store and Postgres, counts the statements of all connections and kills
// the connection of the n-th.
type faultProxy struct {
	listener net.Listener
	server   string // path of the server's socket

	mu    sync.Mutex
	seen  int
	cutAt int // 0: never
	mode  cutMode
}

var hostPart = regexp.MustCompile(`host='?([^' ]+)'?`)

// newFaultProxy starts a proxy before the server of url and returns the address through it.
func newFaultProxy(t *testing.T, url string) (*faultProxy, string) {
	t.Helper()
	host := hostPart.FindStringSubmatch(url)
	if host == nil {
		t.Fatalf("no host in %q", url)
	}
	dir, err := os.MkdirTemp("/tmp", "fault-") //nolint:usetesting // short: a socket's path is at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(dir, ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	p := &faultProxy{listener: listener, server: filepath.Join(host[1], ".s.PGSQL.5432")}
	var serving sync.WaitGroup
	serving.Go(func() { p.serve(&serving) })
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
		_ = os.RemoveAll(dir)
	})
	return p, hostPart.ReplaceAllString(url, "host="+dir)
}

// arm starts counting anew and returns how many statements there were since the last time. The n-th
// from now is cut, none when n is 0.
func (p *faultProxy) arm(n int, mode cutMode) (statements int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	statements = p.seen
	p.seen, p.cutAt, p.mode = 0, n, mode
	return statements
}

// next counts a statement and says whether, and how, it is cut.
func (p *faultProxy) next() (cutMode, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen++
	return p.mode, p.seen == p.cutAt
}

func (p *faultProxy) serve(serving *sync.WaitGroup) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		hangUp := sync.OnceFunc(func() { _, _ = client.Close(), server.Close() })
		var muted sync.Mutex // held for good once answers must not come through
		serving.Go(func() { defer hangUp(); p.answers(client, server, &muted) })
		serving.Go(func() { defer hangUp(); _ = p.requests(client, server, &muted) })
	}
}

func (p *faultProxy) answers(client, server net.Conn, muted *sync.Mutex) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		if !muted.TryLock() {
			_, _ = io.Copy(io.Discard, server) // until the server has done its work and hung up
			return
		}
		_, err = client.Write(buffer[:n])
		muted.Unlock()
		if err != nil {
			return
		}
	}
}

// requests forwards message by message. A statement is a Sync of the extended protocol or a Query.
func (p *faultProxy) requests(client, server net.Conn, muted *sync.Mutex) error {
	startup := true
	for {
		head := make([]byte, 5)
		if startup { // it has no type
			head = head[:4]
		}
		if _, err := io.ReadFull(client, head); err != nil {
			return err
		}
		length := binary.BigEndian.Uint32(head[len(head)-4:])
		if length < 4 || length > 64<<20 {
			return fmt.Errorf("message of %d bytes", length)
		}
		body := make([]byte, length-4)
		if _, err := io.ReadFull(client, body); err != nil {
			return err
		}
		statement := !startup && (head[0] == 'S' || head[0] == 'Q')
		startup = false
		if statement {
			if mode, cut := p.next(); cut {
				return p.cut(client, server, muted, mode, append(head, body...))
			}
		}
		if _, err := server.Write(append(head, body...)); err != nil {
			return err
		}
	}
}

// cut ends the connection. After the statement means after: the server is sent the statement and the
// client's goodbye, and has hung up before the client learns anything.
func (p *faultProxy) cut(client, server net.Conn, muted *sync.Mutex, mode cutMode, statement []byte) error {
	if mode == cutBefore {
		return nil
	}
	muted.Lock()
	terminate := []byte{'X', 0, 0, 0, 4}
	if _, err := server.Write(append(statement, terminate...)); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, server)
	return err
}
