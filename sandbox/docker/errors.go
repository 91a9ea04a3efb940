package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/client"

	"agent-sandboxing/core"
)

// translate turns the client's error into one that a person can act on. The daemon's own text
// stays in the cause, for the log.
func translate(doing string, err error) error {
	if _, ok := errors.AsType[*core.Error](err); ok {
		return err
	}
	cause := fmt.Errorf("%s: %w", doing, err)
	_, network := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, io.EOF),
		errors.Is(err, io.ErrUnexpectedEOF), client.IsErrConnectionFailed(err), network:
		return unavailable().Because(cause)
	case cerrdefs.IsNotFound(err):
		return lost().Because(cause)
	case strings.Contains(err.Error(), "no space left on device"): // the API has no status for it
		return core.Fail(core.Unavailable, "disk_low", "The sandbox host's disk is full. Ask an operator to free space, then send the message again.").Because(cause)
	case strings.Contains(err.Error(), notExecutable):
		return foreignImage().Because(cause)
	case strings.Contains(err.Error(), "Unknown runtime specified"), strings.Contains(err.Error(), "unknown or invalid runtime name"):
		return core.Fail(core.Unavailable, "runtime_unavailable",
			"Docker does not know the runtime that SANDBOX_RUNTIME names. Ask an operator to install it; it is never replaced by a weaker one.").Because(cause)
	default:
		return core.Fail(core.Internal, "runtime_failed", "Docker refused to "+doing+". The details are in the server log.").Because(cause)
	}
}

// notExecutable is the kernel's word for a program of another architecture.
const notExecutable = "exec format error"

func foreignImage() *core.Error {
	return core.Fail(core.Unavailable, "image_unsupported",
		"The sandbox image is made for another processor than the Docker host has. Ask an operator for an image of the host's architecture.")
}

func unavailable() *core.Error {
	return core.Fail(core.Unavailable, "runtime_unavailable", "Docker does not answer on the sandbox host. Nothing is lost: messages wait until it is back, and one that has failed can be sent again then.")
}

func lost() *core.Error {
	return core.Fail(core.Unavailable, "sandbox_lost", "The sandbox is gone. The next message makes a new one on the same workspace.")
}
