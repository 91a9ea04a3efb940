package publish_test

import (
	"bytes"
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

// What others pushed is theirs: no rule of the publish set judges it, neither when it comes nor later.
func TestPublish_JudgesNothingThatOthersPushed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ws := w.session(t, map[string]string{"a.txt": lines("ours", "last")})
	w.must(t, s, ws, "Hello", "")
	files := map[string]string{
		"a.txt": lines("ours", "theirs"), ".github/workflows/ci.yml": "on: pull_request\n", "logo.bin": "\x00\x01",
		"large.bin": strings.Repeat("\x00", 1<<20+1), "deploy/key.pem": "x\n", "app.min.js": "x\n",
	}
	w.theirs(t, s, files)
	write(t, ws, map[string]string{"own.bin": "\x00\x02", "b.txt": "ours\n"})
	leftOut := []string{"own.bin: new binary file"}
	for _, merged := range []int{1, 0} {
		result := w.must(t, s, ws, "Hello", "")
		if result.Merged != merged || !cmp.Equal(result.LeftOut, leftOut) {
			t.Fatalf("%d commits of others, left out %v; want %d and %v", result.Merged, result.LeftOut, merged, leftOut)
		}
		for name, text := range files {
			if read(t, ws, name) != text {
				t.Fatalf("the workspace has not their %s", name)
			}
		}
		write(t, ws, map[string]string{"a.txt": lines("ours", "theirs and ours")}) // a line of theirs
		files["a.txt"] = lines("ours", "theirs and ours")
	}

	// Changing what they brought is a change like any other, and leaving it out takes nothing of theirs away.
	write(t, ws, map[string]string{"logo.bin": "\x00\x03", "app.min.js": "ours\n", "large.bin": "ours\n"})
	w.askFor(t, s, core.Publication{Title: "Hello"}, core.PathChoices{"app.min.js": false, ".github/workflows/ci.yml": false})
	if _, err := w.serve(t, w.options, s, ws); err != nil {
		t.Fatal(err)
	}
	want := []string{"\x00\x03", "x", "ours", "on: pull_request", "x", ""}
	if diff := cmp.Diff(want, w.published(t, s, "logo.bin", "app.min.js", "large.bin", ".github/workflows/ci.yml", "deploy/key.pem", "own.bin")); diff != "" {
		t.Errorf("branch (-want +got):\n%s", diff)
	}
	write(t, ws, map[string]string{".github/workflows/ci.yml": "on: push\n"})
	w.askFor(t, s, core.Publication{Title: "Hello"}, core.PathChoices{})
	_, err := w.serve(t, w.options, s, ws)
	wantCode(t, err, "workflow_permission_missing")
}

// A volume that is lost after a publish is rebuilt from the newest checkpoint. Whether that has what others
// pushed or has no room for it, the next publish takes nothing of theirs back.
func TestPublish_ALostVolumeUndoesNothingOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, missing := range map[string][]string{"kept": nil, "no room": {"b.txt"}} {
		s, ws := w.session(t, map[string]string{"a.txt": "ours\n"})
		w.must(t, s, ws, "Hello", "")
		var archive bytes.Buffer // of the last turn
		info, err := ws.Checkpoint(t.Context(), &archive, core.MaxCheckpoint)
		if err != nil {
			t.Fatal(err)
		}
		w.theirs(t, s, map[string]string{"b.txt": "theirs\n", "README.md": "# Theirs\n"})
		ws.Missing = missing
		w.must(t, s, ws, "Hello", "")
		last, err := w.store.Checkpoint(t.Context(), s.ID, 0)
		if err != nil || (last != nil) != (missing == nil) {
			t.Errorf("%s: checkpoint = %v, %v", name, last != nil, err)
		}
		if last != nil {
			info = last.Info
			archive = *bytes.NewBuffer(last.Archive)
		}
		if err := ws.Restore(t.Context(), info, &archive); err != nil {
			t.Fatal(err)
		}
		write(t, ws, map[string]string{"a.txt": "ours again\n"})
		w.must(t, s, ws, "Hello", "")
		if diff := cmp.Diff([]string{"ours again", "theirs", "# Theirs"}, w.published(t, s, "a.txt", "b.txt", "README.md")); diff != "" {
			t.Errorf("%s: branch (-want +got):\n%s", name, diff)
		}
	}
}

// A publish that only brought what others pushed moves the session's line as one that pushed does.
func TestPublish_MergesFromWhatAnUnchangedPublishBrought(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ws := w.session(t, map[string]string{"a.txt": lines("ours", "last")})
	w.must(t, s, ws, "Hello", "")
	w.theirs(t, s, map[string]string{"a.txt": lines("ours", "theirs"), "x.txt": "theirs\n"})
	if result := w.must(t, s, ws, "Hello", ""); result.Outcome != core.PublishUnchanged || read(t, ws, "x.txt") != "theirs\n" {
		t.Fatalf("result = %+v", result)
	}
	w.theirs(t, s, map[string]string{"y.txt": "theirs\n"})
	write(t, ws, map[string]string{"a.txt": lines("ours", "theirs and ours")})
	if err := os.Remove(filepath.Join(ws.Dir, "x.txt")); err != nil {
		t.Fatal(err)
	}
	if result := w.must(t, s, ws, "Hello", ""); result.Merged != 1 {
		t.Errorf("result = %+v", result)
	}
	want := []string{strings.TrimSpace(lines("ours", "theirs and ours")), "", "theirs"}
	if diff := cmp.Diff(want, w.published(t, s, "a.txt", "x.txt", "y.txt")); diff != "" {
		t.Errorf("branch (-want +got):\n%s", diff)
	}
}

// A first push that was never recorded is found in what others pushed on top of it, by the attempt itself
// and by the one after it.
func TestPublish_FindsAnUnrecordedPushUnderThoseOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, failed := range []bool{false, true} {
		s, ws := w.session(t, map[string]string{"a.txt": "ours\n"})
		c := &crash{at: 4} // the push
		o := w.options
		o.Store, o.Mirror = crashStore{w.store, c}, crashMirror{w.mirror, c}
		w.ask(t, s, "Hello", "")
		if _, err := w.serve(t, o, s, ws); err == nil || c.calls[3] != "push" {
			t.Fatalf("no crash at the push: %v, %v", c.calls, err)
		}
		w.theirs(t, s, map[string]string{"b.txt": "theirs\n"})
		if failed {
			claim, err := w.store.Claim(t.Context(), w.worker, storetest.Lease, core.Budgets{})
			if err != nil {
				t.Fatal(err)
			}
			if err := publish.New(w.options).Fail(t.Context(), claim, *claim.Publication, core.Fail(core.Unavailable, "github_unavailable", "Gone.")); err != nil {
				t.Fatal(err)
			}
			if err := w.store.Release(t.Context(), claim.Lease); err != nil {
				t.Fatal(err)
			}
			w.ask(t, s, "Hello", "")
		}
		write(t, ws, map[string]string{"a.txt": "ours again\n"})
		if _, err := w.serve(t, w.options, s, ws); err != nil {
			t.Fatalf("failed %v: %v", failed, err)
		}
		if diff := cmp.Diff([]string{"ours again", "theirs"}, w.published(t, s, "a.txt", "b.txt")); diff != "" {
			t.Errorf("failed %v: branch (-want +got):\n%s", failed, diff)
		}
	}
}

// resolve completes the turn that asks the agent to resolve a conflict.
func (w *world) resolve(t *testing.T, s core.ChatSession, conflict core.PublicationID) {
	t.Helper()
	asked, err := w.store.PostMessage(t.Context(), core.NewMessage{SessionID: s.ID, OwnerID: w.owner.ID, Text: "Resolve", ClientKey: core.ResolveKey + string(conflict), MaxActive: 10})
	if err != nil {
		t.Fatal(err)
	}
	for done := false; !done; {
		claim := storetest.Claim(t, w.store)
		if _, err := w.store.StartMessage(t.Context(), claim.Lease, claim.Message.ID, "test-model"); err != nil {
			t.Fatal(err)
		}
		done = claim.Message.ID == asked.ID
		storetest.Finish(t, w.store, claim, "Both hold.")
	}
}

func TestPublish_AConflictIsResolvedByCombining(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, ws := w.session(t, map[string]string{"a.txt": lines("one", "last"), "gone.txt": "one\n"})
	w.must(t, s, ws, "Hello", "")
	conflict := func(text string) core.PublicationID {
		t.Helper()
		before := w.git(t, "rev-parse", s.Branch)
		write(t, ws, map[string]string{"a.txt": lines(text, "last")})
		id := w.askFor(t, s, core.Publication{Title: "Hello"}, nil)
		_, err := w.serve(t, w.options, s, ws)
		wantCode(t, err, "sync_conflict")
		if w.git(t, "rev-parse", s.Branch) != before {
			t.Error("something was pushed")
		}
		return id
	}
	w.theirs(t, s, map[string]string{"a.txt": lines("theirs", "last"), "gone.txt": "theirs\n", "free.txt": "theirs\n"})
	if err := os.Remove(filepath.Join(ws.Dir, "gone.txt")); err != nil {
		t.Fatal(err)
	}
	conflict("ours")
	first := conflict("theirs and ours") // nobody has said that this is what it looks like
	w.resolve(t, s, first)

	// What they push after that is not in what the agent made of it.
	w.theirs(t, s, map[string]string{"a.txt": lines("theirs again", "last")})
	second := conflict("theirs and ours")
	w.resolve(t, s, second)
	w.theirs(t, s, map[string]string{"a.txt": lines("theirs again", "theirs"), "late.txt": "theirs\n"})
	write(t, ws, map[string]string{"a.txt": lines("theirs again and ours", "last")})
	if result := w.must(t, s, ws, "Hello", ""); result.Merged != 3 {
		t.Errorf("result = %+v", result)
	}
	want := []string{strings.TrimSpace(lines("theirs again and ours", "theirs")), "", "theirs", "theirs"}
	if diff := cmp.Diff(want, w.published(t, s, "a.txt", "gone.txt", "free.txt", "late.txt")); diff != "" {
		t.Errorf("branch (-want +got):\n%s", diff)
	}

	// The next publish begins at this one again.
	w.theirs(t, s, map[string]string{"a.txt": lines("theirs at last", "theirs")})
	if result := w.must(t, s, ws, "Hello", ""); result.Merged != 1 || read(t, ws, "a.txt") != lines("theirs at last", "theirs") {
		t.Errorf("result = %+v, a.txt = %q", result, read(t, ws, "a.txt"))
	}
}
