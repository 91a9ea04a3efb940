package docker

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/containerd/errdefs"

	"agent-sandboxing/core"
)

// What the daemon says becomes a code that a person can act on, and never reaches the message.
func TestTranslate_GivesEachCauseItsCode(t *testing.T) {
	t.Parallel()
	for code, causes := range map[string][]error{
		"runtime_unavailable": {
			context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, &net.OpError{Op: "dial", Err: errors.New("refused")},
			errors.New(`Unknown runtime specified other`), errors.New(`unknown or invalid runtime name: other`),
		},
		"sandbox_lost": {errdefs.ErrNotFound.WithMessage("No such container: abc")},
		"disk_low": {
			errors.New("write /var/lib/docker/overlay2/x: no space left on device"),
			errors.New("failed to create shim: mkdir /run/containerd: no space left on device: unknown"),
		},
		"image_unsupported": {errors.New("OCI runtime create failed: exec /opt/toolbox/toolboxd: exec format error: unknown")},
		"runtime_failed":    {errors.New("OCI runtime create failed: secret-looking detail")},
	} {
		for _, cause := range causes {
			err := translate("start the container", cause)
			if core.CodeOf(err) != code || !errors.Is(err, cause) {
				t.Errorf("%v became %v, want %s", cause, err, code)
			}
			if message := core.MessageOf(err); strings.Contains(message, cause.Error()) || strings.Contains(message, "/") {
				t.Errorf("the message quotes the daemon: %s", message)
			}
		}
	}
}
