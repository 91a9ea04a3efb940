package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github/githubtest"
	"agent-sandboxing/core/github/githubtest/seed"
	"agent-sandboxing/e2e/person"
)

// requestRows are what people send.
func requestRows() []row {
	return []row{
		{"request: a message above 48 KiB", requestTooLong},
		{"request: a body above 1 MiB", func(ctx context.Context, b *bench) (string, error) {
			return b.refusesMessage(ctx, strings.Repeat("x", 2<<20), http.StatusRequestEntityTooLarge, "request_too_large")
		}},
		{"request: a message with a NUL", func(ctx context.Context, b *bench) (string, error) {
			return b.refusesMessage(ctx, "a\x00b", http.StatusUnprocessableEntity, "message_invalid")
		}},
		{"request: a session submitted eight times at once", requestDoubleCreate},
		{"request: a message submitted eight times at once", requestDoublePost},
		{"request: a repository that the person may not read", requestUnreadable},
		{"request: an empty repository", func(ctx context.Context, b *bench) (string, error) {
			target, err := b.owner.Target(ctx, "mdlinks")
			if err != nil {
				return "", err
			}
			in := map[string]any{"installation": target.Installation, "full_name": seed.Organization + "/scratchpad", "text": "x"}
			var made state
			return refused(b.owner.Ask(ctx, http.MethodPost, "/chat-sessions", "", in, &made), http.StatusConflict, "empty_repository")
		}},
		{"request: the branch moved between form and create", requestMoved},
		{"request: the branch moved between create and checkout", requestMovedLater},
		{"request: the branch is deleted between create and checkout", requestDeletedLater},
	}
}

func (b *bench) refusesMessage(ctx context.Context, text string, status int, code string) (string, error) {
	id, err := b.create(ctx, "mdlinks", "file "+b.newFile())
	if err != nil {
		return "", err
	}
	seen, err := refused(b.post(ctx, id, text), status, code)
	if err != nil {
		return seen, err
	}
	return seen, b.goesOn(ctx, id)
}

func requestTooLong(ctx context.Context, b *bench) (string, error) {
	if code, err := b.refusesMessage(ctx, strings.Repeat("x", core.MaxMessageBytes+1), http.StatusRequestEntityTooLarge, "message_too_large"); err != nil {
		return code, err
	}
	_, err := b.create(ctx, "mdlinks", strings.Repeat("é", core.MaxMessageBytes/2+1))
	return refused(err, http.StatusRequestEntityTooLarge, "message_too_large")
}

// atOnce asks for the same thing eight times side by side and demands one id.
func atOnce(ctx context.Context, ask func(context.Context) (string, error)) (string, error) {
	ids := make([]string, 8)
	group, ctx := errgroup.WithContext(ctx)
	for i := range ids {
		group.Go(func() (err error) {
			ids[i], err = ask(ctx)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return "", err
	}
	for _, id := range ids {
		if id != ids[0] || id == "" {
			return "", fmt.Errorf("several ids: %v", ids)
		}
	}
	return ids[0], nil
}

func requestDoubleCreate(ctx context.Context, b *bench) (string, error) {
	target, err := b.owner.Target(ctx, "mdlinks")
	if err != nil {
		return "", err
	}
	key, in := core.NewID[string](), newSession{target, "file " + b.newFile()}
	create := func(ctx context.Context) (string, error) {
		var made state
		err := b.owner.Ask(ctx, http.MethodPost, "/chat-sessions", key, in, &made)
		return made.ID, err
	}
	id, err := atOnce(ctx, create)
	if err != nil {
		return "", err
	}
	b.sessions = append(b.sessions, id)
	// The answer was lost and the branch moved: the repeat still finds the session.
	if _, err := b.ended(ctx, id); err != nil {
		return "", err
	}
	if err := b.move(ctx, "mdlinks"); err != nil {
		return "", err
	}
	if again, err := create(ctx); err != nil || again != id {
		return "", fmt.Errorf("the repeat after the branch moved: %q, %w", again, err)
	}
	return "one session", b.goesOn(ctx, id)
}

func requestDoublePost(ctx context.Context, b *bench) (string, error) {
	id, err := b.create(ctx, "mdlinks", "file "+b.newFile())
	if err != nil {
		return "", err
	}
	key := core.NewID[string]()
	if _, err := atOnce(ctx, func(ctx context.Context) (string, error) {
		var m struct{ ID string }
		err := b.owner.Ask(ctx, http.MethodPost, "/chat-sessions/"+id+"/messages", key, map[string]string{"text": "file twice.txt"}, &m)
		return m.ID, err
	}); err != nil {
		return "", err
	}
	return "one message", b.goesOn(ctx, id, "twice.txt")
}

// requestUnreadable asks for everything of a session as somebody who does not see its repository.
func requestUnreadable(ctx context.Context, b *bench) (string, error) {
	name := b.newFile()
	id, err := b.create(ctx, "runbooks", "file "+name)
	if err != nil {
		return "", err
	}
	s, err := b.ended(ctx, id)
	if err != nil {
		return "", err
	}
	if s.Diff == nil {
		return "", errors.New("no diff was captured")
	}
	base := "/chat-sessions/" + id
	for _, path := range []string{"", "/events", "/stream", "/pulse", "/publish", "/diffs/latest", "/diffs/" + s.Diff.ID, "/artifacts/" + s.Diff.ID, "/artifacts/" + s.Diff.ID + "/raw"} {
		for _, accept := range []string{"application/json", "text/html", "text/event-stream"} {
			a, err := b.reader.Do(ctx, http.MethodGet, base+path, http.Header{"Accept": {accept}}, nil)
			if err != nil {
				return "", err
			}
			if a.Status != http.StatusNotFound || strings.Contains(string(a.Body), name) {
				return "", fmt.Errorf("GET %s as %s: %d", path, accept, a.Status)
			}
		}
	}
	for _, path := range []string{"/messages", "/cancel", "/publish", "/stop", "/title", "/archive", "/messages/" + s.Messages[0].ID, "/messages/" + s.Messages[0].ID + "/remove"} {
		var out any
		if code, err := refused(b.reader.Ask(ctx, http.MethodPost, base+path, "", map[string]string{"text": "x", "title": "x"}, &out), http.StatusNotFound, "not_found"); err != nil {
			return code, fmt.Errorf("POST %s: %w", path, err)
		}
	}
	target, err := b.owner.Target(ctx, "runbooks")
	if err != nil {
		return "", err
	}
	var made state
	code, err := refused(b.reader.Ask(ctx, http.MethodPost, "/chat-sessions", "", newSession{target, "x"}, &made), http.StatusNotFound, "not_found")
	if err != nil {
		return code, err
	}
	return code, b.goesOn(ctx, id, name)
}

// move adds a commit to a repository's default branch.
func (b *bench) move(ctx context.Context, repository string) error {
	b.files++
	_, err := b.github.Commit(ctx, seed.Organization+"/"+repository, githubtest.Commit{
		Message: "Move on", Files: map[string]githubtest.File{"moved.txt": githubtest.Text(fmt.Sprint(b.files, "\n"))},
	})
	return err
}

func requestMoved(ctx context.Context, b *bench) (string, error) {
	target, err := b.owner.Target(ctx, "stockroom")
	if err != nil {
		return "", err
	}
	if err := b.move(ctx, "stockroom"); err != nil {
		return "", err
	}
	_, err = b.createAt(ctx, target, "file "+b.newFile())
	code, err := refused(err, http.StatusConflict, "base_moved")
	if err != nil {
		return code, err
	}
	id, err := b.create(ctx, "stockroom", "file "+b.newFile())
	if err != nil {
		return code, err
	}
	return code, b.goesOn(ctx, id)
}

// slowGit holds the worker up between the create and the fetch. (A token may be there from before.)
func slowGit(repository string) githubtest.Fault {
	return githubtest.Fault{Pattern: "/{owner}/" + repository + ".git/", Delay: 2 * time.Second, Count: 1}
}

func requestMovedLater(ctx context.Context, b *bench) (string, error) {
	b.github.Fail(slowGit("stockroom"))
	id, err := b.create(ctx, "stockroom", "file "+b.newFile())
	if err != nil {
		return "", err
	}
	if err := b.move(ctx, "stockroom"); err != nil {
		return "", err
	}
	code, err := b.failed(ctx, id, "base_moved")
	if err != nil {
		return code, err
	}
	// The session's base is settled; what goes on is a new one, as the sentence says.
	next, err := b.create(ctx, "stockroom", "file "+b.newFile())
	if err != nil {
		return code, err
	}
	return code, b.goesOn(ctx, next)
}

func requestDeletedLater(ctx context.Context, b *bench) (string, error) {
	const name = seed.Organization + "/stockroom"
	sha, err := b.github.Commit(ctx, name, githubtest.Commit{Branch: "short-lived", Message: "Try", Files: map[string]githubtest.File{"t": githubtest.Text("t")}})
	if err != nil {
		return "", err
	}
	target, err := b.owner.Target(ctx, "stockroom")
	if err != nil {
		return "", err
	}
	b.github.Fail(slowGit("stockroom"))
	id, err := b.createAt(ctx, person.Target{Installation: target.Installation, Repository: target.Repository, Branch: "short-lived", SHA: sha}, "file "+b.newFile())
	if err != nil {
		return "", err
	}
	if err := b.github.DeleteBranch(ctx, name, "short-lived"); err != nil {
		return "", err
	}
	return b.failed(ctx, id, "branch_missing")
}
