package sandbox_test

import (
	"context"
	"testing"

	"agent-sandboxing/sandbox"
)

// lacking is a host that lacks something.
type lacking struct {
	*shelf
	offers sandbox.Capabilities
}

func (l lacking) Capabilities(context.Context) (sandbox.Capabilities, error) { return l.offers, nil }

func TestStatus_SaysWhatTheHostLacks(t *testing.T) {
	t.Parallel()
	for want, offers := range map[string]sandbox.Capabilities{
		"ok": {Runtime: "runsc", RuntimeKnown: true, ImageReady: true},
		"Docker does not know the runtime runsc.":      {Runtime: "runsc", ImageReady: true},
		"The sandbox image is not on the Docker host.": {Runtime: "runsc", RuntimeKnown: true},
	} {
		s := sandbox.New(sandbox.Options{Runtime: lacking{newShelf(t), offers}, Store: newRows()})
		if got := s.Status(t.Context()); got.Docker != want {
			t.Errorf("%+v: %q", offers, got.Docker)
		}
	}
}
