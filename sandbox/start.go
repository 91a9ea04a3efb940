package sandbox

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/toolbox"
)

// start attaches to a container and then starts it, when the host has room for it.
func (p *provision) start(ctx context.Context) (*toolbox.Client, error) {
	started, err := p.room(ctx)
	if err != nil {
		return nil, err
	}
	defer started()
	ws, err := p.attach(ctx, func(ctx context.Context) error { return p.runtime.Start(ctx, p.box.RuntimeRef) })
	if err == nil {
		p.hear(ctx, ws)
	}
	return ws, err
}

func (p *provision) attach(ctx context.Context, start func(context.Context) error) (*toolbox.Client, error) {
	stream, err := p.runtime.Attach(ctx, p.box.RuntimeRef)
	if err != nil {
		return nil, err
	}
	if err := start(ctx); err != nil {
		_ = stream.Close()
		return nil, err
	}
	ws, err := toolbox.Dial(ctx, stream, toolbox.Options{Budget: p.budget(), OutOfMemory: p.memoryMet(p.box.RuntimeRef)})
	if err != nil && ctx.Err() == nil {
		err = p.explain(ctx, stream.Stderr(), err)
	}
	return ws, err
}

// budget is what the toolbox holds the workspace to. The kernel's quota, where there is one, is the same
// and comes first.
func (s *Service) budget() toolbox.Budget {
	return toolbox.Budget{Bytes: s.limits.DiskBytes, Entries: s.limits.Inodes, MinFree: s.reserve / 8}
}

// memoryMet tells a toolbox what it cannot see itself: that a command was killed for want of memory.
func (s *Service) memoryMet(ref string) func(context.Context, time.Duration) int64 {
	return func(ctx context.Context, within time.Duration) int64 {
		met, err := s.runtime.OutOfMemory(ctx, ref, within)
		if err != nil {
			s.log.WarnContext(ctx, "ask why a command was killed", "error", err)
		}
		if !met {
			return 0
		}
		return s.limits.MemoryBytes
	}
}

// maxReason bounds what a message quotes of a container that did not start. Bytes.
const maxReason = 300

// explain says why a container's toolbox did not answer, when the container itself can tell.
func (p *provision) explain(ctx context.Context, stderr []byte, cause error) error {
	there, err := p.runtime.Inspect(ctx, p.box.RuntimeRef)
	if err != nil || there.Running {
		return cause
	}
	reason := quoted(stderr)
	switch {
	case there.OOMKilled:
		return core.Fail(core.Unavailable, "start_failed",
			"The sandbox ran out of memory while it started. Ask an operator for a higher SANDBOX_MEMORY.").Because(cause)
	case strings.Contains(reason, "exec format error"):
		return core.Fail(core.Unavailable, "image_unsupported",
			"The sandbox image is made for another processor than the Docker host has. Ask an operator for an image of the host's architecture.").Because(cause)
	case reason != "":
		return core.Fail(core.Unavailable, "start_failed", fmt.Sprintf(
			"The sandbox ended while it started (exit %d). It said: %s. Send the message again; if it persists, ask an operator.", there.ExitCode, reason)).Because(cause)
	default:
		return core.Fail(core.Unavailable, "start_failed", fmt.Sprintf(
			"The sandbox ended while it started (exit %d) and said nothing. Send the message again; if it persists, ask an operator.", there.ExitCode)).Because(cause)
	}
}

// quoted is the first line of what a program said, with everything that is not plainly visible escaped.
func quoted(said []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
	if line == "" {
		return ""
	}
	text := strconv.QuoteToASCII(strings.TrimSpace(line))
	if len(text) > maxReason {
		text = strings.TrimRight(text[:maxReason], `\`) + `…"`
	}
	return text
}
