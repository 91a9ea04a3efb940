package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github"
	"agent-sandboxing/core/mirror"
	"agent-sandboxing/sandbox/memory"
)

// pushed is the branch of this run, and how it is worked on.
type pushed struct {
	mirror  *mirror.Mirror
	session core.ChatSession
	ws      *memory.Workspace
	work    string // its files
	head    string
	at      time.Time
}

// push goes the whole way of the product: mirror, workspace, snapshot, quarantine, commit, push.
func (s *smoke) push(ctx context.Context) (string, error) {
	tokens := github.NewTokens(s.app, func(t core.RepoToken) { s.redact.Add(t.Value) })
	defer tokens.Close(ctx)
	b := &pushed{work: filepath.Join(s.dir, "workspace", "repo")}
	s.branch = b
	var err error
	if b.mirror, err = mirror.New(mirror.Options{
		Dir: filepath.Join(s.dir, "mirror"), GitURL: s.bases.GitURL, Tokens: tokens, CloneDepth: 50, CAFile: s.caFile, Log: slog.New(slog.DiscardHandler),
	}); err != nil {
		return "", err
	}
	if s.publish, err = tokens.Mint(ctx, s.repo, core.TokenPublish); err != nil {
		return "", err
	}
	base, err := b.mirror.RemoteHead(ctx, s.repo, s.publish, s.repo.DefaultBranch)
	if err != nil {
		return "", err
	}
	b.session = core.ChatSession{ID: s.id, Repository: s.repo, BaseBranch: s.repo.DefaultBranch, BaseSHA: base, Branch: core.BranchFor(s.id)}
	spec, pack, err := b.mirror.Checkout(ctx, b.session, false)
	if err != nil {
		return "", err
	}
	defer pack.Close()
	if b.ws, err = memory.New(s.dir); err != nil { //nolint:contextcheck // it serves until Close
		return "", err
	}
	if err := b.ws.Checkout(ctx, spec, pack); err != nil {
		return "", err
	}
	if err := s.send(ctx, "first"); err != nil {
		return "", err
	}
	return b.session.Branch + " at " + b.head, nil
}

// send changes a file and pushes that on top of what the branch has.
func (s *smoke) send(ctx context.Context, text string) error {
	b := s.branch
	if err := os.WriteFile(filepath.Join(b.work, "agent-smoke.txt"), []byte(text+"\n"), 0o600); err != nil {
		return err
	}
	q, err := b.mirror.Import(ctx, b.session, b.ws)
	if err != nil {
		return err
	}
	defer q.Close()
	parent := q.Base
	if b.head != "" {
		if parent, err = b.mirror.FetchBranch(ctx, s.repo, s.publish, q, b.session.Branch); err != nil {
			return err
		}
	}
	commit, err := q.Commit(ctx, mirror.Commit{Tree: q.Tree, Parent: parent, Message: "Try out: " + text, Name: "agent-smoke", Email: "agent-smoke@" + s.bases.NoreplyHost(), When: time.Now()})
	if err != nil {
		return err
	}
	if err := b.mirror.Push(ctx, s.repo, s.publish, q, commit, b.session.Branch, b.head); err != nil {
		return err
	}
	b.head, b.at = commit, time.Now()
	return nil
}

func (s *smoke) open(ctx context.Context) (string, error) {
	pr, err := s.app.OpenPullRequest(ctx, s.publish, s.repo, core.PullRequestText{Title: "Try out", Body: "Made by github-smoke.", Head: s.branch.session.Branch, Base: s.repo.DefaultBranch, Draft: true})
	s.number = pr.Number
	return fmt.Sprintf("%v, #%d", time.Since(s.branch.at).Round(time.Millisecond), pr.Number), err
}

func (s *smoke) pull(ctx context.Context, head, base string) (string, error) {
	r, err := s.asRepo(ctx, http.MethodPost, "/pulls", map[string]any{"title": "Try out", "head": head, "base": base})
	return r.String(), err
}

func (s *smoke) second(ctx context.Context) (string, error) {
	return s.pull(ctx, s.branch.session.Branch, s.repo.DefaultBranch)
}

func (s *smoke) empty(ctx context.Context) (string, error) {
	return s.pull(ctx, s.repo.DefaultBranch, s.repo.DefaultBranch)
}

func (s *smoke) baseless(ctx context.Context) (string, error) {
	return s.pull(ctx, s.branch.session.Branch, "agent-smoke-no-such-branch")
}

func (s *smoke) change(ctx context.Context, change map[string]any) (reply, error) {
	return s.asRepo(ctx, http.MethodPatch, fmt.Sprintf("/pulls/%d", s.number), change)
}

func (s *smoke) ready(ctx context.Context) (string, error) {
	r, err := s.change(ctx, map[string]any{"draft": false})
	return fmt.Sprintf("%s, draft %v", r, r.Draft), err
}

// signature makes a commit that no branch will have.
func (s *smoke) signature(ctx context.Context) (string, error) {
	base, err := s.asRepo(ctx, http.MethodGet, "/git/commits/"+s.branch.session.BaseSHA, nil)
	if err != nil {
		return "", err
	}
	tree, err := s.asRepo(ctx, http.MethodPost, "/git/trees", map[string]any{"tree": []map[string]string{{"path": "a", "mode": "100644", "type": "blob", "content": "a\n"}}})
	if err != nil {
		return "", err
	}
	r, err := s.asRepo(ctx, http.MethodPost, "/git/commits", map[string]any{"message": "Try out", "tree": tree.SHA, "parents": []string{base.SHA}})
	return fmt.Sprintf("%s, verified %v (%s)", r, r.Verified.Verified, r.Verified.Reason), err
}

// workflow deletes the repository's workflow files on the branch.
func (s *smoke) workflow(ctx context.Context) (string, error) {
	folder := filepath.Join(s.branch.work, ".github", "workflows")
	if files, err := os.ReadDir(folder); err != nil || len(files) == 0 {
		return "the repository has none: not asked", nil
	}
	if err := os.RemoveAll(folder); err != nil {
		return "", err
	}
	err := s.send(ctx, "without workflows")
	if e, ok := errors.AsType[*core.Error](err); ok {
		return e.Code, nil
	}
	return "allowed", err
}

func (s *smoke) reopen(ctx context.Context) (string, error) {
	if r, err := s.change(ctx, map[string]any{"state": "closed"}); err != nil || r.State != "closed" {
		return "", errors.Join(err, errors.New(r.String()))
	}
	if err := s.send(ctx, "after it was closed"); err != nil {
		return "", err
	}
	r, err := s.change(ctx, map[string]any{"state": "open"})
	return r.String(), err
}

func (s *smoke) clean(ctx context.Context) (string, error) {
	closed, err := s.change(ctx, map[string]any{"state": "closed"})
	if err != nil {
		return "", err
	}
	gone, err := s.asRepo(ctx, http.MethodDelete, "/git/refs/heads/"+s.branch.session.Branch, nil)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("pull request %s, branch %d", closed.State, gone.Status), nil
}
