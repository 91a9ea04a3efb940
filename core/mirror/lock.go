package mirror

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// locks gives one holder per repository: among goroutines by a channel, among processes by flock.
type locks struct {
	dir  string
	mu   sync.Mutex
	turn map[string]chan struct{}
}

// lock is held until release. Its file is inherited by the git children that write under it, so
// that a worker's sudden death does not free it before they have ended.
type lock struct {
	file *os.File
	turn chan struct{}
}

// pollEvery is how often a lock held by another process is tried again; flock cannot be awaited
// together with a context.
const pollEvery = 25 * time.Millisecond

func (l *locks) acquire(ctx context.Context, key string) (*lock, error) {
	l.mu.Lock()
	turn, ok := l.turn[key]
	if !ok {
		turn = make(chan struct{}, 1)
		l.turn[key] = turn
	}
	l.mu.Unlock()
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	file, err := flock(ctx, filepath.Join(l.dir, key+".lock"))
	if err != nil {
		<-turn
		return nil, err
	}
	return &lock{file: file, turn: turn}, nil
}

func flock(ctx context.Context, path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("repository lock: %w", err)
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("repository lock: %w", err), file.Close())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), file.Close())
		}
	}
}

func (l *lock) release() {
	_ = l.file.Close() // frees the flock once no child holds the file either
	<-l.turn
}
