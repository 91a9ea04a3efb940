package handlers

import (
	"time"

	"agent-sandboxing/core"
)

// strip is the preparation of the session's sandbox, step by step: the newest one only.
type strip struct {
	steps  []step
	failed *core.SandboxChanged
	done   bool
	last   int64 // newest sequence that changed it
	took   time.Duration
	state  core.SandboxState
	info   core.SandboxChanged
}

// step is one line of the strip.
type step struct {
	key, name, detail string
	state             string // running, done, failed
	startedAt         time.Time
	took              time.Duration
}

func (s *strip) apply(e core.Event) {
	switch e.Type { //nolint:exhaustive // the types of a preparation alone
	case "sandbox_creating":
		p := payload[core.SandboxChanged](e)
		*s = strip{info: p, state: core.SandboxCreating}
		s.begin(e, "sandbox", "Create sandbox", p.Runtime)
	case "sandbox_ready":
		p := payload[core.SandboxChanged](e)
		s.info, s.state = p, core.SandboxReady
		s.end(e, "sandbox", p.Ms)
	case "sandbox_failed":
		p := payload[core.SandboxChanged](e)
		s.info, s.state, s.failed = p, core.SandboxFailed, &p
		s.fail(e)
	case "sandbox_stopping", "sandbox_stopped":
		s.info, s.last = payload[core.SandboxChanged](e), e.Sequence
		s.state = core.SandboxStopped
		if e.Type == "sandbox_stopping" {
			s.state = core.SandboxStopping
		}
	case "repo_checkout_started":
		p := payload[core.CheckoutStarted](e)
		s.begin(e, "checkout", "Check out", p.Branch+" @ "+shortSHA(p.SHA))
	case "repo_checkout_completed":
		p := payload[core.CheckoutCompleted](e)
		s.end(e, "checkout", p.Ms)
		s.begin(e, "branch", "Prepare branch", p.Branch)
		s.end(e, "branch", 0)
	case "command_started":
		p := payload[core.CommandStarted](e)
		s.begin(e, "command:"+p.Name, p.Name, "")
	case "command_finished":
		p := payload[core.CommandFinished](e)
		s.end(e, "command:"+p.Name, p.Ms)
		if p.Exit != 0 {
			s.set("command:"+p.Name, "failed")
		}
	}
}

func (s *strip) begin(e core.Event, key, name, detail string) {
	s.last, s.done = e.Sequence, false
	for i := range s.steps {
		if s.steps[i].key == key {
			s.steps[i] = step{key, name, detail, "running", e.CreatedAt, 0}
			return
		}
	}
	s.steps = append(s.steps, step{key, name, detail, "running", e.CreatedAt, 0})
}

func (s *strip) end(e core.Event, key string, ms int64) {
	s.last = e.Sequence
	for i := range s.steps {
		if s.steps[i].key == key {
			s.steps[i].state = "done"
			s.steps[i].took = time.Duration(ms) * time.Millisecond
			s.took += s.steps[i].took
		}
	}
}

func (s *strip) set(key, state string) {
	for i := range s.steps {
		if s.steps[i].key == key {
			s.steps[i].state = state
		}
	}
}

// fail marks the step that was under way.
func (s *strip) fail(e core.Event) {
	s.last = e.Sequence
	for i := range s.steps {
		if s.steps[i].state == "running" {
			s.steps[i].state = "failed"
		}
	}
}

// finish folds the strip: a turn has begun, so every step is behind it.
func (s *strip) finish() {
	s.done = true
	for i := range s.steps {
		if s.steps[i].state == "running" {
			s.steps[i].state = "done"
		}
	}
}
