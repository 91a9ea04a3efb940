package publish_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github/githubtest"
	"agent-sandboxing/core/mirror/mirrortest"
	"agent-sandboxing/core/publish"
	"agent-sandboxing/core/store/storetest"
)

// theirs is a push by somebody else to the session's branch.
func (w *world) theirs(t *testing.T, s core.ChatSession, files map[string]string) {
	t.Helper()
	commit := githubtest.Commit{Branch: s.Branch, Message: "Theirs", Files: map[string]githubtest.File{}}
	for name, text := range files {
		commit.Files[name] = githubtest.Text(text)
	}
	if _, err := w.github.Commit(t.Context(), fullName, commit); err != nil {
		t.Fatal(err)
	}
}

// published is the content of some files on the session's branch; "" where there is none.
func (w *world) published(t *testing.T, s core.ChatSession, names ...string) []string {
	t.Helper()
	var texts []string
	for _, name := range names {
		text := ""
		if w.git(t, "ls-tree", "--name-only", s.Branch, "--", name) != "" {
			text = w.git(t, "cat-file", "blob", s.Branch+":"+name)
		}
		texts = append(texts, text)
	}
	return texts
}

func read(t *testing.T, ws *mirrortest.Workspace, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(ws.Dir, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(data)
}

// Three numbered lines far enough apart that a change of one does not touch another.
func lines(first, last string) string {
	return first + "\n" + strings.Repeat("between\n", 10) + last + "\n"
}

func TestPublish_MergesWhatOthersPushed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ws := w.session(t, map[string]string{"a.txt": lines("ours", "last"), "secret.pem": "x\n"})
	w.must(t, s, ws, "Hello", "")
	w.theirs(t, s, map[string]string{"a.txt": lines("ours", "theirs"), "b.txt": "theirs\n"})
	w.theirs(t, s, map[string]string{"c.txt": "theirs, too\n"})

	write(t, ws, map[string]string{"a.txt": lines("ours again", "last")})
	result := w.must(t, s, ws, "Hello", "")
	if result.Outcome != core.PublishUpdated || result.Merged != 2 {
		t.Errorf("result = %+v", result)
	}
	want := []string{strings.TrimSpace(lines("ours again", "theirs")), "theirs", "theirs, too"}
	if diff := cmp.Diff(want, w.published(t, s, "a.txt", "b.txt", "c.txt")); diff != "" {
		t.Errorf("branch (-want +got):\n%s", diff)
	}
	if got := read(t, ws, "a.txt"); got != lines("ours again", "theirs") || read(t, ws, "b.txt") != "theirs\n" || read(t, ws, "secret.pem") != "x\n" {
		t.Errorf("workspace: a.txt = %q, b.txt = %q", got, read(t, ws, "b.txt"))
	}
	if n := w.git(t, "rev-list", "--count", "--first-parent", s.Branch, "^"+w.base); n != "4" {
		t.Errorf("%s commits in the branch's first line, want the first, two of theirs and the merge", n)
	}
	if events := strings.Join(w.events(t, s), " "); !strings.HasSuffix(events, "publication_committed publication_pushed publication_merged pull_request_updated") {
		t.Errorf("events = %s", events)
	}

	// The workspace has theirs, so taking it out again is a change of the session.
	if err := os.Remove(filepath.Join(ws.Dir, "b.txt")); err != nil {
		t.Fatal(err)
	}
	write(t, ws, map[string]string{"a.txt": lines("ours again", "last")})
	if again := w.must(t, s, ws, "Hello", ""); again.Merged != 0 {
		t.Errorf("result = %+v", again)
	}
	want = []string{strings.TrimSpace(lines("ours again", "last")), "", "theirs, too"}
	if diff := cmp.Diff(want, w.published(t, s, "a.txt", "b.txt", "c.txt")); diff != "" {
		t.Errorf("branch (-want +got):\n%s", diff)
	}
}

// deaf is a sandbox in which git apply does nothing.
type deaf struct{ *mirrortest.Workspace }

func (deaf) Run(context.Context, core.Command) (core.CommandResult, error) {
	return core.CommandResult{Exit: 1}, nil
}

func TestPublish_KeepsWhatOthersPushedThoughTheWorkspaceCannotHaveIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ws := w.session(t, map[string]string{"a.txt": "ours\n"})
	w.must(t, s, ws, "Hello", "")
	for round, text := range []string{"ours 2\n", "ours 3\n", "ours 4\n"} {
		if round < 2 {
			w.theirs(t, s, map[string]string{"b.txt": "theirs " + text})
		}
		write(t, ws, map[string]string{"a.txt": text})
		w.ask(t, s, "Hello", "")
		result, err := w.serve(t, w.options, s, deaf{ws})
		if err != nil {
			t.Fatal(err)
		}
		// Those that the workspace has not are merged again each time; the platform's own merges do not count.
		if theirs := []int{1, 2, 2}[round]; result.Merged != theirs {
			t.Errorf("round %d: %d commits of others, want %d", round, result.Merged, theirs)
		}
		want := []string{strings.TrimSpace(text), "theirs " + []string{"ours 2", "ours 3", "ours 3"}[round]}
		if diff := cmp.Diff(want, w.published(t, s, "a.txt", "b.txt")); diff != "" {
			t.Errorf("round %d, branch (-want +got):\n%s", round, diff)
		}
	}
	// Nothing new of ours: theirs stays, and so does the pull request.
	w.ask(t, s, "Hello", "")
	result, err := w.serve(t, w.options, s, deaf{ws})
	if err != nil || result.Outcome != core.PublishUnchanged {
		t.Errorf("result = %+v, %v", result, err)
	}
	// As soon as the workspace can have it, it gets it.
	w.must(t, s, ws, "Hello", "")
	if got := read(t, ws, "b.txt"); got != "theirs ours 3\n" {
		t.Errorf("b.txt = %q", got)
	}
}

// The names of these conflicts are longer together than a command's arguments may be.
func TestPublish_AConflictOfVeryManyFilesIsOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ws := w.session(t, map[string]string{"a.txt": "one\n"})
	w.must(t, s, ws, "Hello", "")
	deep := strings.Repeat(strings.Repeat("d", 249)+"/", 14)
	ours, theirs := map[string]string{}, map[string]string{}
	for i := range 800 {
		name := fmt.Sprintf("%s%03d", deep, i)
		ours[name], theirs[name] = "ours\n", "theirs\n"
	}
	w.theirs(t, s, theirs)
	write(t, ws, ours)
	_, err := w.publish(t, s, ws, "Hello", "")
	wantCode(t, err, "sync_conflict")
	if message := core.MessageOf(err); !strings.Contains(message, "and 797 more") {
		t.Errorf("message = %q", message)
	}
}

func TestPublish_NamesConflictsAndOverwritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ws := w.session(t, map[string]string{"a.txt": "one\n", "odd name-```": "one\n"})
	w.must(t, s, ws, "Hello", "")
	w.theirs(t, s, map[string]string{"a.txt": "theirs\n", "odd name-```": "theirs\n", "free.txt": "theirs\n"})
	before := w.git(t, "rev-parse", s.Branch)
	write(t, ws, map[string]string{"a.txt": "ours\n", "odd name-```": "ours\n"})
	w.ask(t, s, "Hello", "")
	claim, err := w.store.Claim(t.Context(), w.worker, storetest.Lease, core.Budgets{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = publish.New(w.options).Publish(t.Context(), claim, *claim.Publication, ws)
	wantCode(t, err, "sync_conflict")
	if err := w.store.Release(t.Context(), claim.Lease); err != nil {
		t.Fatal(err)
	}
	if message := core.MessageOf(err); !strings.Contains(message, "a.txt") || strings.Contains(message, "\n") || strings.Contains(message, "free.txt") {
		t.Errorf("message = %q", message)
	}
	if w.git(t, "rev-parse", s.Branch) != before || read(t, ws, "a.txt") != "ours\n" {
		t.Error("something was changed")
	}
	last, err := w.store.Publication(t.Context(), s.ID, claim.Publication.ID)
	if err != nil || len(last.Conflicts) != 2 || !strings.Contains(last.ConflictPatch, "+theirs") || strings.Contains(last.ConflictPatch, "free.txt") {
		t.Errorf("ledger = %+v, %v", last, err)
	}
	// Once the session has theirs, both go together.
	write(t, ws, map[string]string{"a.txt": "theirs\n", "odd name-```": "theirs\n", "b.txt": "ours\n"})
	if result := w.must(t, s, ws, "Hello", ""); result.Merged != 1 {
		t.Errorf("result = %+v", result)
	}
	if diff := cmp.Diff([]string{"theirs", "ours", "theirs"}, w.published(t, s, "a.txt", "b.txt", "free.txt")); diff != "" {
		t.Errorf("branch (-want +got):\n%s", diff)
	}
}
