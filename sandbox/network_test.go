package sandbox_test

import (
	"slices"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox"
	"agent-sandboxing/sandbox/sandboxtest"
	"agent-sandboxing/sandbox/toolbox"
)

// ways is a way out that notes whose it is.
type ways struct {
	way      toolbox.Egress
	sessions []core.SessionID
}

func (w *ways) Session(id core.SessionID) toolbox.Egress {
	w.sessions = append(w.sessions, id)
	return w.way
}

func TestAcquire_LetsProgramsOutAsTheirSession(t *testing.T) {
	t.Parallel()
	w := &ways{way: sandboxtest.NewNetwork(t, core.EgressPolicy{Mode: core.EgressOpen}).Way}
	f := setup(t, func(o *sandbox.Options) { o.Network = w })
	fetch := `python3 -c 'import urllib.request as u; print(u.urlopen("http://` + sandboxtest.NetworkSite + `/").read().decode())'`
	for range 2 { // the second turn attaches anew
		if out := f.turn(t, f.claim, fetch); out != "WELCOME" {
			t.Errorf("the program printed %q", out)
		}
		f.claim = f.reclaim(f.claim)
	}
	if want := []core.SessionID{f.claim.Session.ID, f.claim.Session.ID}; !slices.Equal(w.sessions, want) {
		t.Errorf("let out for %v, want %v", w.sessions, want)
	}
}
