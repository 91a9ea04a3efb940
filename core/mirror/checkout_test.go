package mirror_test

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/core/mirror"
	"agent-sandboxing/core/mirror/mirrortest"
)

// bundle is a mirror before a server with one repository and its first session.
type bundle struct {
	server  *mirrortest.Server
	repo    core.Repository
	mirror  *mirror.Mirror
	session core.ChatSession
	log     *strings.Builder
	dir     string
}

func setup(t *testing.T, change ...func(*mirror.Options)) *bundle {
	t.Helper()
	return setupOn(t, mirrortest.NewServer(t), change...)
}

func setupOn(t *testing.T, server *mirrortest.Server, change ...func(*mirror.Options)) *bundle {
	t.Helper()
	b := &bundle{server: server, log: &strings.Builder{}, dir: t.TempDir()}
	b.repo = b.server.Repository(t, 7, "octo-org", "widgets")
	head := b.server.Commit(t, b.repo, "main", map[string]string{"README.md": "widgets\n", "bin/run*": "#!/bin/sh\n", "link": "->README.md"})
	b.session = newSession(b.repo, head)
	b.open(t, change...)
	return b
}

// open makes the mirror of the bundle's folder, also once more with other options.
func (b *bundle) open(t *testing.T, change ...func(*mirror.Options)) {
	t.Helper()
	o := mirror.Options{
		Dir: b.dir, GitURL: b.server.GitURL, Tokens: b.server, CloneDepth: 50,
		Log: slog.New(slog.NewTextHandler(b.log, nil)),
	}
	for _, f := range change {
		f(&o)
	}
	var err error
	if b.mirror, err = mirror.New(o); err != nil {
		t.Fatal(err)
	}
}

func newSession(repo core.Repository, base string) core.ChatSession {
	id := core.NewID[core.SessionID]()
	return core.ChatSession{ID: id, Repository: repo, BaseBranch: "main", BaseSHA: base, Branch: core.BranchFor(id)}
}

// checkout takes the session's base into a fresh workspace.
func (b *bundle) checkout(t *testing.T, s core.ChatSession) (*mirrortest.Workspace, core.Checkout) {
	t.Helper()
	ws := mirrortest.NewWorkspace(t)
	spec, pack, err := b.mirror.Checkout(t.Context(), s, false)
	if err != nil {
		t.Fatalf("Checkout: %v", err)
	}
	defer pack.Close()
	if err := ws.Checkout(t.Context(), spec, pack); err != nil {
		t.Fatalf("workspace: %v", err)
	}
	return ws, spec
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if core.CodeOf(err) != code {
		t.Errorf("err = %v, want code %s", err, code)
	}
}

func TestCheckout_GivesTheBaseWithItsHistory(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ws, spec := b.checkout(t, b.session)
	if spec.BaseSHA != b.session.BaseSHA || spec.Branch != b.session.Branch || spec.RemoteURL != b.server.GitURL(b.repo) || len(spec.Shallow) != 0 {
		t.Errorf("spec = %+v", spec)
	}
	if got := mirrortest.Git(t, ws.Dir, "status", "--porcelain", "--branch"); got != "## "+b.session.Branch {
		t.Errorf("status = %q", got)
	}
	if got, err := os.Readlink(filepath.Join(ws.Dir, "link")); err != nil || got != "README.md" {
		t.Errorf("link = %q, %v", got, err)
	}
}

func TestCheckout_CutsHistoryAtTheDepth(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *mirror.Options) { o.CloneDepth = 3 })
	for i := range 6 {
		b.session.BaseSHA = b.server.Commit(t, b.repo, "main", map[string]string{"n": fmt.Sprint(i)})
	}
	ws, spec := b.checkout(t, b.session)
	if got := mirrortest.Git(t, ws.Dir, "rev-list", "--count", "HEAD"); got != "3" || len(spec.Shallow) != 1 {
		t.Errorf("%s commits, shallow %v; want 3 and one boundary", got, spec.Shallow)
	}
	// A second session from a later head moves the mirror's own boundary; both stay whole.
	later := newSession(b.repo, b.server.Commit(t, b.repo, "main", map[string]string{"n": "later"}))
	ws, _ = b.checkout(t, later)
	if got := mirrortest.Git(t, ws.Dir, "rev-list", "--count", "HEAD"); got != "3" {
		t.Errorf("later session has %s commits, want 3", got)
	}
	b.checkout(t, b.session)
}

func TestCheckout_RefusesABranchThatMoved(t *testing.T) {
	t.Parallel()
	b := setup(t)
	head := b.server.Commit(t, b.repo, "main", map[string]string{"README.md": "moved\n"})
	_, _, err := b.mirror.Checkout(t.Context(), b.session, false)
	wantCode(t, err, "base_moved")
	if msg := core.MessageOf(err); !strings.Contains(msg, head[:12]) || !strings.Contains(msg, b.session.BaseSHA[:12]) {
		t.Errorf("message names not both commits: %s", msg)
	}
}

func TestCheckout_RebuildsASessionWhoseBranchMoved(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.checkout(t, b.session)
	b.server.Commit(t, b.repo, "main", map[string]string{"README.md": "moved\n"})
	ws, _ := b.checkout(t, b.session)
	if got := mirrortest.Git(t, ws.Dir, "rev-parse", "HEAD"); got != b.session.BaseSHA {
		t.Errorf("HEAD = %s, want %s", got, b.session.BaseSHA)
	}
	// What another session keeps does not make a fresh one's stale base good.
	_, _, err := b.mirror.Checkout(t.Context(), newSession(b.repo, b.session.BaseSHA), false)
	wantCode(t, err, "base_moved")
}

func TestCheckout_RebuildsOnAHostThatNeverSawTheSession(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Commit(t, b.repo, "main", map[string]string{"README.md": "moved\n"})
	elsewhere := func() *mirror.Mirror {
		m, err := mirror.New(mirror.Options{Dir: t.TempDir(), GitURL: b.server.GitURL, Tokens: b.server, CloneDepth: 50, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	_, _, err := elsewhere().Checkout(t.Context(), b.session, false)
	wantCode(t, err, "base_moved")
	for _, state := range []string{"moved", "gone"} {
		if state == "gone" {
			mirrortest.Git(t, b.server.Dir(b.repo), "branch", "-m", "main", "renamed")
		}
		b.mirror = elsewhere()
		ws := mirrortest.NewWorkspace(t)
		spec, pack, err := b.mirror.Checkout(t.Context(), b.session, true)
		if err != nil {
			t.Fatalf("branch %s: %v", state, err)
		}
		defer pack.Close()
		if err := ws.Checkout(t.Context(), spec, pack); err != nil {
			t.Fatalf("branch %s: %v", state, err)
		}
		if got := mirrortest.Git(t, ws.Dir, "rev-parse", "HEAD"); got != b.session.BaseSHA {
			t.Errorf("branch %s: HEAD = %s, want %s", state, got, b.session.BaseSHA)
		}
	}
}

func TestCheckout_SaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.session
	s.BaseBranch = "gone"
	_, _, err := b.mirror.Checkout(t.Context(), s, false)
	wantCode(t, err, "branch_missing")

	s = newSession(b.server.Repository(t, 8, "octo-org", "empty"), b.session.BaseSHA)
	_, _, err = b.mirror.Checkout(t.Context(), s, false)
	wantCode(t, err, "empty_repository")

	for _, name := range []string{"a:refs/heads/x", "--upload-pack=x", "a b", "a..b", "x.lock", "*", ""} {
		s = b.session
		s.BaseBranch = name
		_, _, err = b.mirror.Checkout(t.Context(), s, false)
		wantCode(t, err, "branch_missing")
	}

	b.server.MintErr = core.Fail(core.Forbidden, "installation_suspended", "…")
	_, _, err = b.mirror.Checkout(t.Context(), newSession(b.repo, b.session.BaseSHA), false)
	wantCode(t, err, "installation_suspended")
}

func TestCheckout_SessionsOfOneBaseShareAPack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	packs := filepath.Join(b.dir, "repos", "7.git", "checkout")
	kept := func() os.FileInfo {
		t.Helper()
		entries, err := os.ReadDir(packs)
		if err != nil || len(entries) != 2 || !strings.HasSuffix(entries[1].Name(), ".pack") {
			t.Fatalf("kept: %v, %v; want one index and its pack", entries, err)
		}
		info, err := entries[1].Info()
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	b.checkout(t, b.session)
	first := kept()
	b.checkout(t, newSession(b.repo, b.session.BaseSHA))
	if !os.SameFile(first, kept()) {
		t.Error("the same base was packed again")
	}
	// What a killed process left is no hindrance, and another base takes the place of the first.
	if err := os.MkdirAll(filepath.Join(packs+".new", "base"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, reading, err := b.mirror.Checkout(t.Context(), b.session, true)
	if err != nil {
		t.Fatal(err)
	}
	defer reading.Close()
	later := newSession(b.repo, b.server.Commit(t, b.repo, "main", map[string]string{"README.md": "later\n"}))
	ws, _ := b.checkout(t, later)
	if got := mirrortest.Git(t, ws.Dir, "rev-parse", "HEAD"); got != later.BaseSHA || os.SameFile(first, kept()) {
		t.Errorf("HEAD = %s, want %s in a pack of its own", got, later.BaseSHA)
	}
	if n, err := io.Copy(io.Discard, reading); err != nil || n <= first.Size() {
		t.Errorf("who was reading got %d bytes, %v", n, err)
	}
}

func TestCheckout_ADamagedMirrorGivesNoPack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, pack, err := b.mirror.Checkout(t.Context(), b.session, false)
	if err != nil {
		t.Fatal(err)
	}
	_ = pack.Close()
	packs, err := filepath.Glob(filepath.Join(b.dir, "repos", "7.git", "objects", "pack", "*.pack"))
	if err != nil || len(packs) == 0 {
		t.Fatalf("no objects: %v", err)
	}
	for _, p := range packs {
		if err := os.Chmod(p, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte("broken"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := b.mirror.Checkout(t.Context(), b.session, false); err == nil {
		t.Error("a damaged mirror gave a pack")
	}
}
