//go:build linux

package main

import (
	"io"
	"time"
)

// How long a toolbox waits for whoever started it, and then for its next client. A daemon that is
// killed while it starts a container may forget it, and then nobody ever comes: what nobody can reach
// must not live on. A sandbox that is not used is stopped, and one of the pool renewed, before the second limit.
const (
	firstWord = 20 * time.Second
	nextWord  = 24 * time.Hour
)

// listener is a stream that closes itself when nothing was heard on it for too long.
type listener struct {
	io.ReadWriteCloser
	next  time.Duration
	alarm *time.Timer
}

// listen begins to wait for the first word.
func listen(stream io.ReadWriteCloser, first, next time.Duration) *listener {
	return &listener{ReadWriteCloser: stream, next: next, alarm: time.AfterFunc(first, func() { _ = stream.Close() })}
}

func (l *listener) Read(p []byte) (int, error) {
	n, err := l.ReadWriteCloser.Read(p)
	if n > 0 {
		l.alarm.Reset(l.next)
	}
	return n, err
}

func (l *listener) Close() error {
	l.alarm.Stop()
	return l.ReadWriteCloser.Close()
}
