package sandbox

import (
	"context"
	"io"
	"sync"
	"time"

	"agent-sandboxing/core"
)

// fetch is a session's base on its way from the source. It is begun before there is a container to
// unpack it in, because both may take long and neither needs the other.
type fetch struct {
	stop context.CancelFunc
	done chan struct{} // closed with the rest set
	spec core.Checkout
	pack io.ReadCloser
	took time.Duration
	err  error
	over sync.Once // the pack is closed
}

func (p *provision) fetch(ctx context.Context) *fetch {
	ctx, stop := context.WithCancel(ctx)
	f := &fetch{stop: stop, done: make(chan struct{})}
	began := time.Now()
	go func() {
		defer close(f.done)
		var again bool
		if again, f.err = p.store.CheckedOut(ctx, p.claim.Session.ID); f.err == nil {
			f.spec, f.pack, f.err = p.source.Checkout(ctx, p.claim.Session, again)
		}
		f.took = time.Since(began)
	}()
	return f
}

// wait returns when the pack can be read, or why it cannot.
func (f *fetch) wait(ctx context.Context) error {
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// drop ends the reading of a pack that wait has promised; whoever reads it notices.
func (f *fetch) drop() {
	f.over.Do(func() { _ = f.pack.Close() }) // what was read is all that counts
}

// close ends the producer. Closing twice is fine.
func (f *fetch) close() {
	if f == nil {
		return
	}
	f.stop()
	<-f.done
	if f.pack != nil {
		f.drop()
	}
}
