package openai

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// errTooSlow is the cause with which a watchdog cancels a request.
var errTooSlow = errors.New("the model endpoint is too slow")

// watch ends a request that does not get on. One timer bounds the phase (headers, then the first
// data line, then each further one), the other the silence on the line.
type watch struct {
	limits Timeouts
	stop   context.CancelCauseFunc
	phase  *time.Timer
	idle   *time.Timer
	begun  atomic.Bool
	talked atomic.Bool
}

func newWatch(limits Timeouts, stop context.CancelCauseFunc) *watch {
	w := &watch{limits: limits, stop: stop}
	w.phase = time.AfterFunc(limits.Headers, w.fire)
	w.idle = time.AfterFunc(limits.Request, w.fire)
	return w
}

func (w *watch) fire() { w.stop(errTooSlow) }

// headers: the response has begun.
func (w *watch) headers() {
	w.begun.Store(true)
	w.phase.Reset(w.limits.FirstData)
	w.idle.Reset(w.limits.Idle)
}

// line: something came, a comment perhaps.
func (w *watch) line() { w.idle.Reset(w.limits.Idle) }

// data: a data line came.
func (w *watch) data() {
	w.talked.Store(true)
	w.phase.Reset(w.limits.Progress)
}

// answered says that the endpoint has begun to answer.
func (w *watch) answered() bool { return w.begun.Load() }

// spoke says that a data line has come.
func (w *watch) spoke() bool { return w.talked.Load() }

func (w *watch) end() {
	w.phase.Stop()
	w.idle.Stop()
}
