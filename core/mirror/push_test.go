package mirror_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
	"agent-sandboxing/core/mirror"
	"agent-sandboxing/core/mirror/mirrortest"
)

// work is a quarantine with one commit on top of the base, and a token to push it.
func (b *bundle) work(t *testing.T) (q *mirror.Quarantine, commit string, token core.RepoToken) {
	t.Helper()
	ws, _ := b.checkout(t, b.session)
	write(t, ws, map[string]string{"new.txt": "new\n"})
	q, err := b.mirror.Import(t.Context(), b.session, ws)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	commit, err = q.Commit(t.Context(), mirror.Commit{
		Tree: q.Tree, Parent: q.Base, Message: "Add a file\n\nBody.", Name: "bot", Email: "bot@example.com", When: time.Unix(1_700_000_000, 0),
	})
	if err != nil {
		t.Fatal(err)
	}
	token, err = b.server.Mint(t.Context(), b.repo, core.TokenPublish)
	if err != nil {
		t.Fatal(err)
	}
	return q, commit, token
}

func TestPush_MakesTheSessionsBranchAndMovesItForward(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *mirror.Options) { o.CloneDepth = 2 })
	for i := range 4 {
		b.session.BaseSHA = b.server.Commit(t, b.repo, "main", map[string]string{"n": fmt.Sprint(i)})
	}
	q, commit, token := b.work(t)
	ctx, branch := t.Context(), b.session.Branch
	if ok, err := q.IsAncestor(ctx, q.Base, commit); err != nil || !ok {
		t.Fatalf("IsAncestor(base, commit) = %v, %v", ok, err)
	}
	if ok, err := q.IsAncestor(ctx, commit, q.Base); err != nil || ok {
		t.Fatalf("IsAncestor(commit, base) = %v, %v", ok, err)
	}
	if err := b.mirror.Push(ctx, b.repo, token, q, commit, branch, ""); err != nil {
		t.Fatal(err)
	}
	if head, err := b.mirror.RemoteHead(ctx, b.repo, token, branch); err != nil || head != commit {
		t.Errorf("RemoteHead = %s, %v; want %s", head, err, commit)
	}
	// A second session process knows the commit only from GitHub.
	again, err := b.mirror.Open(ctx, b.session)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if head, err := b.mirror.FetchBranch(ctx, b.repo, token, again, branch); err != nil || head != commit {
		t.Fatalf("FetchBranch = %s, %v", head, err)
	}
	next, err := again.Commit(ctx, mirror.Commit{Tree: q.Base + "^{tree}", Parent: commit, Message: "x", Name: "bot", Email: "b@example.com"})
	if err == nil {
		t.Errorf("a tree that is no object name made commit %s", next)
	}
	tree, err := again.TreeOf(ctx, q.Base)
	if err != nil {
		t.Fatal(err)
	}
	if next, err = again.Commit(ctx, mirror.Commit{Tree: tree, Parent: commit, Message: "x", Name: "bot", Email: "b@example.com"}); err != nil {
		t.Fatal(err)
	}
	if err := b.mirror.Push(ctx, b.repo, token, again, next, branch, commit); err != nil {
		t.Fatal(err)
	}
	if got := mirrortest.Git(t, "", "--git-dir="+b.server.Dir(b.repo), "rev-list", "--count", branch); got != "7" {
		t.Errorf("%s commits on the branch, want 7", got)
	}
}

func TestPush_RefusesWhenSomebodyElsePushed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	q, commit, token := b.work(t)
	theirs := b.server.Commit(t, b.repo, b.session.Branch, map[string]string{"theirs": "x\n"})
	for _, expected := range []string{"", q.Base} {
		err := b.mirror.Push(t.Context(), b.repo, token, q, commit, b.session.Branch, expected)
		wantCode(t, err, "remote_changed")
	}
	if got := mirrortest.Git(t, "", "--git-dir="+b.server.Dir(b.repo), "rev-parse", b.session.Branch); got != theirs {
		t.Errorf("their commit was overwritten by %s", got)
	}
	if err := b.mirror.Push(t.Context(), b.repo, token, q, commit, "main", q.Base); err == nil {
		t.Error("a push to main was not refused")
	}
}

func TestPush_ClassifiesWhatGitHubRefuses(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, hook, code, says string }{
		{"protected", `echo "error: GH006: Protected branch update failed for refs/heads/agent/x." >&2
echo "error: Changes must be made through a pull request." >&2`, "rules_rejected", "Changes must be made through a pull request."},
		{"rules", `echo "error: GH013: Repository rule violations found for refs/heads/agent/x." >&2
echo "- Commits must have an \033[31missue number." >&2; echo "- Name must match a pattern" >&2`, "rules_rejected", "Commits must have an [31missue number; Name must match a pattern."},
		{"signatures", `echo "error: GH013: Repository rule violations found" >&2; echo "- Commits must have verified signatures." >&2`, "signatures_required", "verified signatures"},
		{"secret", `echo "error: GH013: Repository rule violations found" >&2; echo "- GITHUB PUSH PROTECTION" >&2
echo "   —— AWS Access Key ———" >&2; echo "     - commit: 8728dbe67" >&2; echo "       path: src/my config.ts:12" >&2; echo "       path: b.ts:3" >&2
echo "   —— Slack API Token ——————" >&2; echo "       path: b.ts:3" >&2`, "secret_blocked", "(AWS Access Key in src/my config.ts:12, AWS Access Key in b.ts:3, Slack API Token in b.ts:3)"},
		{"large", `echo "error: File data/big.bin is 123.45 MB; this exceeds GitHub's file size limit of 100.00 MB" >&2
echo "error: GH001: Large files detected." >&2`, "file_too_large", "data/big.bin"},
		{"lfs", `echo "error: GH008: Your push referenced at least 1 unknown Git LFS object" >&2`, "lfs_unsupported", "LFS"},
		{"workflow", `echo "refusing to allow a GitHub App to create or update workflow .github/workflows/ci.yml without workflows permission" >&2`, "workflow_permission_missing", "workflow"},
		{"unknown", `echo "something else" >&2`, "publish_failed", "publish again"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			q, commit, token := b.work(t)
			hook := filepath.Join(b.server.Dir(b.repo), "hooks", "pre-receive")
			if err := os.MkdirAll(filepath.Dir(hook), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(hook, []byte("#!/bin/sh\n"+c.hook+"\nexit 1\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			err := b.mirror.Push(t.Context(), b.repo, token, q, commit, b.session.Branch, "")
			wantCode(t, err, c.code)
			if !strings.Contains(core.MessageOf(err), c.says) || strings.ContainsAny(core.MessageOf(err), "\033\n") {
				t.Errorf("message = %q", core.MessageOf(err))
			}
		})
	}
}

func TestPush_NamesABranchThatStandsInTheWay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	q, commit, token := b.work(t)
	b.server.Commit(t, b.repo, "agent", map[string]string{"x": "x"})
	err := b.mirror.Push(t.Context(), b.repo, token, q, commit, b.session.Branch, "")
	wantCode(t, err, "branch_name_blocked")
}

func TestPush_LostAnswerIsNotCalledARefusal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	q, commit, token := b.work(t)
	b.server.Fault(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusBadGateway)
			return true
		}
		return false
	})
	err := b.mirror.Push(t.Context(), b.repo, token, q, commit, b.session.Branch, "")
	wantCode(t, err, "github_unavailable")
	b.server.Fault(nil)
	b.server.Revoke(t.Context(), token)
	err = b.mirror.Push(t.Context(), b.repo, token, q, commit, b.session.Branch, "")
	wantCode(t, err, "github_forbidden")
}

func TestFetch_SaysWhatFailed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	status := func(code int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(code)
			return true
		}
	}
	for _, c := range []struct {
		status int
		code   string
	}{{500, "github_unavailable"}, {502, "github_unavailable"}, {403, "github_forbidden"}, {404, "github_forbidden"}, {301, "repository_moved"}} {
		b.server.Fault(status(c.status))
		_, _, err := b.mirror.Checkout(t.Context(), b.session, false)
		wantCode(t, err, c.code)
		if strings.Contains(err.Error(), "remote:") || strings.Contains(err.Error(), "http") {
			t.Errorf("the error for the log quotes git: %v", err)
		}
	}
	b.server.Fault(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "The 'octo-org' organization has an IP allow list enabled, and 192.0.2.7 is not permitted to access this repository.")
		return true
	})
	_, _, err := b.mirror.Checkout(t.Context(), b.session, false)
	wantCode(t, err, "github_ip_not_allowed")
	b.server.Close()
	_, _, err = b.mirror.Checkout(t.Context(), b.session, false)
	wantCode(t, err, "github_unavailable")
}

func TestFetch_MintsOnceMoreWhenATokenIsRefused(t *testing.T) {
	t.Parallel()
	for _, age := range []time.Duration{0, time.Minute} {
		for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound} {
			t.Run(fmt.Sprintf("%d after %v", status, age), func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				b.server.Age = age
				var stale string
				b.server.Fault(func(w http.ResponseWriter, r *http.Request) bool {
					_, token, ok := r.BasicAuth()
					if ok && stale == "" {
						stale = token
					}
					if !ok || token != stale {
						return false
					}
					w.WriteHeader(status)
					return true
				})
				b.checkout(t, b.session)
				minted := b.server.Minted()
				if diff := cmp.Diff(minted[:1], b.server.RefusedTokens()); diff != "" || len(minted) != 2 {
					t.Errorf("minted %d, refused (-want +got):\n%s", len(minted), diff)
				}
			})
		}
	}
}

func TestFetch_GivesUpAfterTheSecondToken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.server.Age = time.Minute
	b.server.Fault(func(w http.ResponseWriter, r *http.Request) bool {
		_, _, ok := r.BasicAuth()
		if ok {
			w.WriteHeader(http.StatusForbidden)
		}
		return ok
	})
	_, _, err := b.mirror.Checkout(t.Context(), b.session, false)
	wantCode(t, err, "github_forbidden")
	if minted, refused := b.server.Minted(), b.server.RefusedTokens(); len(minted) != 2 || !slices.Equal(minted, refused) {
		t.Errorf("minted %d, refused %d; want two of each", len(minted), len(refused))
	}
}

func TestWithout_TakesChangesBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.session.BaseSHA = b.server.Commit(t, b.repo, "main", map[string]string{
		"changed": "old\n", "gone": "old\n", "moved": strings.Repeat("moved\n", 20), "folder/was": "old\n",
	})
	ws, _ := b.checkout(t, b.session)
	odd := "odd \"n\name\ttab"
	for _, name := range []string{"gone", "moved", "folder"} {
		if err := os.RemoveAll(filepath.Join(ws.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, ws, map[string]string{
		"keep.txt": "k\n", odd: "o\n", "dir/only.txt": "d\n",
		"changed": "new\n", "away": strings.Repeat("moved\n", 20), "folder": "a file now\n",
	})
	q, err := b.mirror.Import(t.Context(), b.session, ws)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	changes, err := q.Changes(t.Context(), q.Base, q.Tree)
	if err != nil {
		t.Fatal(err)
	}
	var back []mirror.Change
	for _, c := range changes {
		if c.Path != "keep.txt" {
			back = append(back, c)
		}
	}
	tree, err := q.Without(t.Context(), q.Tree, back)
	if err != nil {
		t.Fatal(err)
	}
	changes, err = q.Changes(t.Context(), q.Base, tree)
	if err != nil || len(changes) != 1 || changes[0].Path != "keep.txt" {
		t.Fatalf("changes = %+v, %v", changes, err)
	}
	sizes, err := q.Sizes(t.Context(), []string{changes[0].NewSHA})
	if err != nil || len(sizes) != 1 || sizes[0] != 2 {
		t.Errorf("sizes = %v, %v", sizes, err)
	}
	err = q.EachBlob(t.Context(), []string{changes[0].NewSHA}, func(_ int, data []byte) {
		if string(data) != "k\n" {
			t.Errorf("blob = %q", data)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

func TestFetch_ARedirectCarriesNoCredential(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var asked atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer elsewhere.Close()
	b.server.Fault(func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, elsewhere.URL+r.URL.RequestURI(), http.StatusFound)
		return true
	})
	_, _, err := b.mirror.Checkout(t.Context(), b.session, false)
	wantCode(t, err, "repository_moved")
	if n := asked.Load(); n != 0 {
		t.Errorf("the other host got %d requests", n)
	}
}
