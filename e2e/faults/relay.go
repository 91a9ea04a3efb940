package main

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
)

// relay is a socket in front of a server's, so that the server can be away for the product and stay
// for everybody else.
type relay struct {
	path, server string

	mu       sync.Mutex
	listener net.Listener
	open     map[net.Conn]bool
	lost     []request
	served   sync.WaitGroup
}

// request says which HTTP requests are meant: those that begin and hold so.
type request struct{ begins, holds string }

// lose makes the server never see such requests, so that their senders wait; without any, it sees all.
func (r *relay) lose(such ...request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost = such
}

// loses says whether what a client sent begins a request that the server never sees.
func (r *relay) loses(sent []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.lost, func(such request) bool {
		line, _, _ := bytes.Cut(sent, []byte("\r\n"))
		return bytes.HasPrefix(line, []byte(such.begins)) && bytes.Contains(line, []byte(such.holds))
	})
}

func (r *relay) up() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listener != nil {
		return nil
	}
	if err := os.Remove(r.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	l, err := net.Listen("unix", r.path) //nolint:noctx // down closes it
	if err != nil {
		return err
	}
	r.listener, r.open = l, map[net.Conn]bool{}
	r.served.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			r.served.Go(func() { r.serve(conn) })
		}
	})
	return nil
}

// down closes the socket and breaks every connection.
func (r *relay) down() {
	r.mu.Lock()
	if r.listener != nil {
		_ = r.listener.Close()
		r.listener = nil
	}
	for conn := range r.open {
		_ = conn.Close()
	}
	r.open = nil
	r.mu.Unlock()
	r.served.Wait()
}

// keep notes a connection for down; false when it came too late.
func (r *relay) keep(conn net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		return false
	}
	r.open[conn] = true
	return true
}

func (r *relay) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", r.server) //nolint:noctx // a local socket answers at once
	if err != nil {
		return
	}
	defer server.Close()
	if !r.keep(client) || !r.keep(server) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { pass(server, watched{client, r}) })
	both.Go(func() { pass(client, server) })
	both.Wait()
}

// watched is a client whose lost requests end its connection's first half in silence.
type watched struct {
	net.Conn
	relay *relay
}

func (w watched) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if err == nil && w.relay.loses(p[:n]) {
		_, err = io.Copy(io.Discard, w.Conn) // until the client gives up
		if err == nil {
			err = io.ErrClosedPipe
		}
		return 0, err
	}
	return n, err
}

// pass copies one direction and says its end to the other side; an attach lives on half closed.
func pass(to net.Conn, from io.Reader) {
	_, _ = io.Copy(to, from) // a broken connection is what this is for
	if half, ok := to.(*net.UnixConn); ok {
		_ = half.CloseWrite()
	}
}
