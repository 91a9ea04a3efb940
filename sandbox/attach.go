package sandbox

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/toolbox"
)

// Attach speaks to the toolbox of a container that runs. Only one may at a time: whoever holds the
// session's lease, or has made the container.
func Attach(ctx context.Context, r Runtime, ref string, o toolbox.Options) (*toolbox.Client, error) {
	stream, err := r.Attach(ctx, ref)
	if err != nil {
		return nil, err
	}
	return toolbox.Dial(ctx, stream, o)
}

// Launch starts a container and speaks to its toolbox, to which it is attached before. Error:
// start_failed, which says what the container said, or image_unsupported.
func Launch(ctx context.Context, r Runtime, ref string, o toolbox.Options) (*toolbox.Client, error) {
	stream, err := r.Attach(ctx, ref)
	if err != nil {
		return nil, err
	}
	if err := r.Start(ctx, ref); err != nil {
		_ = stream.Close()
		return nil, err
	}
	ws, err := toolbox.Dial(ctx, stream, o)
	if err != nil && ctx.Err() == nil {
		err = explain(ctx, r, ref, stream.Stderr(), err)
	}
	return ws, err
}

// maxReason bounds what a message quotes of a container that did not start. Bytes.
const maxReason = 300

// explain says why a container's toolbox did not answer, when the container itself can tell.
func explain(ctx context.Context, r Runtime, ref string, stderr []byte, cause error) error {
	there, err := r.Inspect(ctx, ref)
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
