package server

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// maxDNSQuery bounds a query; its answer is a record longer at most. Bytes.
	maxDNSQuery = 1232
	// maxDNSConns bounds the TCP connections, which programs use rarely, and dnsPatience each of them.
	maxDNSConns = 16
	dnsPatience = 5 * time.Second
)

// dnsServer answers on UDP and TCP at one address of the loopback interface.
type dnsServer struct {
	names   addresses
	udp     net.PacketConn
	tcp     net.Listener
	serving sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{} // nil when it is closed
}

func listenDNS(ctx context.Context, address string, names addresses) (*dnsServer, error) {
	var config net.ListenConfig
	udp, err := config.ListenPacket(ctx, "udp4", address)
	if err != nil {
		return nil, err
	}
	tcp, err := config.Listen(ctx, "tcp4", udp.LocalAddr().String())
	if err != nil {
		return nil, errors.Join(err, udp.Close())
	}
	d := &dnsServer{names: names, udp: udp, tcp: tcp, conns: map[net.Conn]struct{}{}}
	d.serving.Go(d.serveUDP)
	d.serving.Go(d.serveTCP)
	return d, nil
}

// Close waits until nothing is answered any more.
func (d *dnsServer) Close() error {
	err := errors.Join(d.udp.Close(), d.tcp.Close())
	d.mu.Lock()
	for conn := range d.conns {
		_ = conn.Close()
	}
	d.conns = nil
	d.mu.Unlock()
	d.serving.Wait()
	return err
}

func (d *dnsServer) serveUDP() {
	buf := make([]byte, maxDNSQuery)
	for {
		n, from, err := d.udp.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // what the last answer met; the socket is well
		}
		if answer := answerDNS(buf[:n], d.names); answer != nil {
			_, _ = d.udp.WriteTo(answer, from) // who does not listen has no answer
		}
	}
}

func (d *dnsServer) serveTCP() {
	for {
		conn, err := d.tcp.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			<-time.After(acceptPause)
			continue
		}
		if !d.enter(conn) {
			_ = conn.Close()
			continue
		}
		d.serving.Go(func() {
			defer d.leave(conn)
			_ = conn.SetDeadline(time.Now().Add(dnsPatience))
			for d.exchange(conn) == nil {
			}
		})
	}
}

func (d *dnsServer) enter(conn net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conns == nil || len(d.conns) >= maxDNSConns {
		return false
	}
	d.conns[conn] = struct{}{}
	return true
}

func (d *dnsServer) leave(conn net.Conn) {
	_ = conn.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conns, conn)
}

// exchange answers one query; on TCP each message has its length before it.
func (d *dnsServer) exchange(conn net.Conn) error {
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return err
	}
	query := make([]byte, binary.BigEndian.Uint16(size[:]))
	if len(query) > maxDNSQuery {
		return io.ErrShortBuffer
	}
	if _, err := io.ReadFull(conn, query); err != nil {
		return err
	}
	answer := answerDNS(query, d.names)
	if answer == nil {
		return io.ErrUnexpectedEOF
	}
	_, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
	return err
}
