package publish_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github"
	"agent-sandboxing/core/mirror/mirrortest"
	"agent-sandboxing/core/publish"
	"agent-sandboxing/core/seal"
	"agent-sandboxing/core/store"
	"agent-sandboxing/core/store/storetest"
)

// doomedVariable makes this test program publish once, as its standard input says, and be killed on the way.
const doomedVariable = "TEST_PUBLISH_DOOMED"

// doom is a publish in a process of its own, which ends at a call.
type doom struct {
	URL, Dir, DSN, Keys string // of the world
	AppID               int64
	AppKey              []byte
	Worker              core.Worker
	WorkTree, Base      string
	At                  int
}

// publishDoomed serves what waits and writes its calls, unless it is killed before.
func publishDoomed() int {
	var d doom
	calls, err := d.run(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprint(os.Stdout, strings.Join(calls, ","))
	return 0
}

func (d *doom) run(ctx context.Context) ([]string, error) {
	if err := json.NewDecoder(os.Stdin).Decode(d); err != nil {
		return nil, err
	}
	keys, err := seal.Parse(d.Keys)
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.DiscardHandler)
	s, err := store.Open(ctx, d.DSN, keys, log)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	app, err := appOf(d.URL, d.AppID, d.AppKey, nil)
	if err != nil {
		return nil, err
	}
	tokens := github.NewTokens(app, func(core.RepoToken) {})
	m, err := mirrorOf(d.Dir, "", app, tokens, log)
	if err != nil {
		return nil, err
	}
	claim, err := s.Claim(ctx, d.Worker, storetest.Lease, core.Budgets{})
	if err != nil {
		return nil, err
	}
	c := &crash{at: d.At, kill: func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} }}
	o := optionsOf(s, m, app, tokens, log)
	o.Store, o.Mirror, o.PullRequests = crashStore{s, c}, crashMirror{m, c}, crashPulls{app, c}
	_, err = publish.New(o).Publish(ctx, claim, *claim.Publication, mirrortest.OpenWorkspace(d.WorkTree, d.Base))
	return c.calls, err
}

// TestPublish_SurvivesAKillOfItsProcessAtEveryStep kills the process that publishes right after each call
// that leaves something in the ledger or on GitHub, for a first publish and for an update. Once its lease has
// run out, another process brings the same attempt to its end.
func TestPublish_SurvivesAKillOfItsProcessAtEveryStep(t *testing.T) {
	t.Parallel()
	for name, update := range map[string]bool{"first": false, "update": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for at := 2; w.killed(t, at, update); at++ { // the first call only reads
				if at > 20 {
					t.Fatal("it never came to an end by itself")
				}
			}
		})
	}
}

// killed publishes a session in a process that dies at a call, then in this one, and says whether it came
// to that.
func (w *world) killed(t *testing.T, at int, update bool) bool {
	t.Helper()
	s, ws := w.session(t, map[string]string{"hello.txt": "hello\n"})
	commits := 1
	if update {
		w.must(t, s, ws, "Hello", "Body.")
		write(t, ws, map[string]string{"hello.txt": "hello again\n"})
		commits = 2
	}
	id := w.askFor(t, s, core.Publication{Title: "Hello again", Body: "Body."}, nil)
	config := w.github.Config()
	in, err := json.Marshal(doom{
		URL: w.url, Dir: w.dir, DSN: w.dsn, Keys: w.keys, AppID: config.AppID, AppKey: config.PrivateKey,
		Worker: w.worker, WorkTree: ws.Dir, Base: ws.Base(), At: at,
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), doomedVariable+"=1")
	cmd.Stdin = bytes.NewReader(in)
	var said bytes.Buffer
	cmd.Stderr = &said
	calls, err := cmd.Output()
	died := err != nil && cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
	if err != nil && !died {
		t.Fatalf("the process: %v: %s", err, said.String())
	}
	row, err := w.store.Publication(t.Context(), s.ID, id)
	if err != nil {
		t.Fatal(err)
	}
	if !died && len(calls) == 0 {
		t.Error("no calls were counted")
	}
	storetest.Expire(t, w.store, s.ID)
	if _, err := w.store.Reap(t.Context()); err != nil {
		t.Fatal(err)
	}
	if row.Step != core.PublishDone { // else it was done, only nobody was told
		if _, err := w.serve(t, w.options, s, ws); err != nil {
			t.Fatalf("call %d: after the kill in step %s: %v", at, row.Step, err)
		}
		if row, err = w.store.Publication(t.Context(), s.ID, id); err != nil {
			t.Fatal(err)
		}
	}
	pulls, head := w.pulls(t, s), w.git(t, "rev-parse", s.Branch)
	if len(pulls) != 1 || pulls[0].State != "open" || pulls[0].HeadSHA != head || pulls[0].Title != "Hello again" {
		t.Errorf("call %d: pull requests = %+v", at, pulls)
	}
	if row.Step != core.PublishDone || row.CommitSHA != head || row.Number != pulls[0].Number {
		t.Errorf("call %d: ledger = %+v", at, row)
	}
	if n := w.git(t, "rev-list", "--count", w.base+".."+s.Branch); n != fmt.Sprint(commits) {
		t.Errorf("call %d: %s commits, want %d", at, n, commits)
	}
	if stored, err := w.store.PullRequest(t.Context(), s.ID); err != nil || stored == nil || stored.HeadSHA != head {
		t.Errorf("call %d: record = %+v, %v", at, stored, err)
	}
	return died
}
