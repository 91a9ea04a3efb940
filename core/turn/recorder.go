package turn

import (
	"context"
	"errors"
	"sync"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/redact"
)

// partialEvery bounds how often the growing answer is written.
const partialEvery = 400 * time.Millisecond

// maxOutputArtifact bounds what is kept of one command's output, in bytes.
const maxOutputArtifact = 1 << 20

// recorder writes what the agent does as durable events. A cancelled turn still records the result
// of the call that was running, so writes do not follow the turn's cancellation.
type recorder struct {
	p     *Processor
	claim core.Claim
	msg   core.Message

	mu      sync.Mutex
	partial string

	stop    chan struct{}
	flushed sync.WaitGroup
}

func newRecorder(p *Processor, claim core.Claim, msg core.Message) *recorder {
	r := &recorder{p: p, claim: claim, msg: msg, stop: make(chan struct{})}
	r.flushed.Go(r.flush)
	return r
}

// close stops the partial writer and returns the answer so far.
func (r *recorder) close() string {
	close(r.stop)
	r.flushed.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.partial
}

// Partial keeps the newest answer; the writer picks it up within partialEvery.
func (r *recorder) Partial(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.partial = text
}

func (r *recorder) flush() {
	tick := time.NewTicker(partialEvery)
	defer tick.Stop()
	written := ""
	for {
		select {
		case <-r.stop:
			return
		case <-tick.C:
		}
		r.mu.Lock()
		text := r.partial
		r.mu.Unlock()
		if text == written {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		err := r.p.Store.SetPartial(ctx, r.claim.Lease, r.msg.ID, text)
		cancel()
		if err == nil {
			written = text
		} else if errors.Is(err, core.ErrLeaseLost) {
			return
		}
	}
}

func (r *recorder) append(ctx context.Context, by core.Producer, e core.Payload) error {
	ctx, cancel := final(ctx)
	defer cancel()
	return r.p.Store.Append(ctx, r.claim.Lease, by, r.msg.ID, e)
}

// ToolCall records that a tool starts.
func (r *recorder) ToolCall(ctx context.Context, e core.AgentToolCall) error {
	return r.append(ctx, core.ByAgent, e)
}

// ToolResult records how a tool ended; full, when given, becomes an artifact that the event names.
func (r *recorder) ToolResult(ctx context.Context, e core.AgentToolResult, full []byte) error {
	if len(full) == 0 {
		return r.append(ctx, core.ByAgent, e)
	}
	ctx, cancel := final(ctx)
	defer cancel()
	clean, redactions := r.p.Redactor.Bytes(full)
	a := core.Artifact{
		ID: core.NewID[core.ArtifactID](), SessionID: r.claim.Session.ID, MessageID: r.msg.ID,
		Kind: core.ArtifactOutput, Name: e.Tool + "-" + e.CallID + ".txt", MediaType: "text/plain; charset=utf-8",
		Redactions: redactions, Data: clean,
	}
	if len(clean) > maxOutputArtifact {
		a.Data, a.Truncated = []byte(redact.Head(string(clean), maxOutputArtifact)), true
	}
	e.ArtifactID = a.ID
	return r.p.Store.SaveArtifact(ctx, r.claim.Lease, a, e)
}

// PolicyRefused records a command that was not started.
func (r *recorder) PolicyRefused(ctx context.Context, e core.PolicyRefused) error {
	return r.append(ctx, core.ByPlatform, e)
}

// ModelRetry records that one model request is repeated.
func (r *recorder) ModelRetry(ctx context.Context, e core.ModelRequestRetry) error {
	return r.append(ctx, core.ByPlatform, e)
}
