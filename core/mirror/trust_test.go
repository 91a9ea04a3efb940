package mirror_test

import (
	"os"
	"path/filepath"
	"testing"

	"agent-sandboxing/core/mirror"
	"agent-sandboxing/core/mirror/mirrortest"
)

// A GitHub whose authority nobody else knows is reached when the operator's file holds it, and no
// setting of whoever starts the server makes git do without.
func TestGit_TrustsTheOperatorsAuthority(t *testing.T) {
	t.Setenv("GIT_SSL_NO_VERIFY", "1")
	t.Setenv("GIT_SSL_CAINFO", os.DevNull)
	b := setupOn(t, mirrortest.NewTLSServer(t))
	_, _, err := b.mirror.Checkout(t.Context(), b.session, false)
	wantCode(t, err, "github_untrusted")
	b.open(t, func(o *mirror.Options) { o.CAFile = filepath.Join(t.TempDir(), "gone") })
	if _, _, err = b.mirror.Checkout(t.Context(), b.session, false); err == nil {
		t.Error("a file that is not there is taken for one that trusts everybody")
	}

	b.open(t, func(o *mirror.Options) { o.CAFile = b.server.CAFile(t) })
	q, commit, token := b.work(t)
	ctx := t.Context()
	if err := b.mirror.Push(ctx, b.repo, token, q, commit, b.session.Branch, ""); err != nil {
		t.Errorf("push: %v", err)
	}
	if head, err := b.mirror.RemoteHead(ctx, b.repo, token, b.session.Branch); err != nil || head != commit {
		t.Errorf("RemoteHead = %s, %v; want %s", head, err, commit)
	}
	if head, err := b.mirror.FetchBranch(ctx, b.repo, token, q, b.session.Branch); err != nil || head != commit {
		t.Errorf("FetchBranch = %s, %v; want %s", head, err, commit)
	}
}
