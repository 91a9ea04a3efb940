package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"agent-sandboxing/agent"
	"agent-sandboxing/core"
)

// Whatever the path is: one that is let through is clean and inside by its text, and printed again it
// means the same file.
func FuzzWorkspacePath(f *testing.F) {
	for _, s := range []string{
		"a/b", "@a", "@@a", "./@a", "~/x", "./~", "..", "a/../b", "a/..", "/workspace/repo/a", "/workspace/repo", "/workspace/repository",
		"/tmp/x", "/tmp", "/tmpx", "//tmp/x", "/tmp/../etc", ".git/config", "a/.GIT/x", "a/", " ", "./ ", "\x00", "a\nb", "...", "..a/b..", "/workspace/repo/@a", "é\u202e", "é\u2029",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, given string) {
		if !utf8.ValidString(given) {
			return // JSON holds none
		}
		p, r := workspacePath(given, false)
		if r != nil {
			if r.Code != "invalid_path" && r.Code != "path_outside_workspace" {
				t.Fatalf("%q is refused with %q", given, r.Text)
			}
			return
		}
		inside := !path.IsAbs(p) || p == "/tmp" || strings.HasPrefix(p, "/tmp/")
		if !inside || path.Clean(p) != p || slices.Contains(strings.Split(p, "/"), "..") || strings.ContainsFunc(p, unprintable) {
			t.Fatalf("%q became %q", given, p)
		}
		again, r := workspacePath(printed(p), false)
		if r != nil && !strings.HasPrefix(printed(p), `"`) || r == nil && again != p {
			t.Fatalf("%q is printed as %q, which means %q, %v", p, printed(p), again, r)
		}
		w, r := workspacePath(given, true)
		git := strings.Contains("/"+strings.ToLower(p)+"/", "/.git/")
		if git && r == nil || r == nil && w != p || r != nil && !git && !strings.HasSuffix(given, "/") {
			t.Fatalf("%q may be written as %q, %v", given, w, r)
		}
	})
}

// Whatever a file holds: what is read of it is valid, bounded and clean, and the notes lead through
// all of it.
func FuzzShow(f *testing.F) {
	f.Add("one\ntwo\nthree", 1, 2)
	f.Add(utf8BOM+"a\r\nb\nc\r\n", 2, 1)
	f.Add(strings.Repeat("wide错", 800)+"\nlast", 1, 5)
	f.Add(strings.Repeat(strings.Repeat("x", 1500)+"\n", 60), 1, 2000)
	f.Add("nul\x00esc\x1b[31m caf\xe9\u0085\n\f\v\rend", 1, 9)
	f.Fuzz(func(t *testing.T, content string, offset, limit int) {
		limit = min(max(limit, 1), maxLines)
		text, _ := strings.CutPrefix(content, utf8BOM)
		lines := splitLines(lf(text))
		if r := show("f", content, max(offset, 1), limit, true); r.Text == "" || !utf8.ValidString(r.Text) || len(r.Text) > maxText+maxLine*utf8.UTFMax {
			t.Fatalf("%d bytes, %q", len(r.Text), r.Code)
		}
		if len(lines) == 0 {
			return
		}
		for next, pages := 1, 0; next > 0; pages++ {
			r := show("f", content, next, limit, false)
			if r.Code != "" || visible(r.Text) != r.Text || pages > len(lines) {
				t.Fatalf("page %d from line %d: %q", pages, next, r.Text)
			}
			if line := visible(strings.TrimSuffix(lines[next-1], "\n")); len(line) <= maxLine && !strings.HasPrefix(r.Text, line) {
				t.Fatalf("the page from line %d does not begin with %q", next, line)
			}
			from, to := next, 0
			if _, err := fmt.Sscanf(r.Detail, "%d–%d", &from, &to); err != nil || from != next || to < from || to-from >= limit {
				t.Fatalf("from line %d with limit %d: %s", next, limit, r.Detail)
			}
			if next = to + 1; !r.Truncated {
				if to != len(lines) {
					t.Fatalf("ends at line %d of %d", to, len(lines))
				}
				next = 0
			}
		}
	})
}

// Whatever a model sends as arguments is read or answered with what to correct.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{
		`{"path":"a","edits":"[{\"oldText\":\"a\",\"newText\":\"b\"}]"}`, `{"file_path":"a","old_string":"x","new_string":"y","replace_all":"true"}`,
		`{"path":1,"limit":"2","offset":2.0}`, `{"edits":[{"oldText":1,"newText":true}]}`, `{"edits":{"oldText":"\ud800"}}`, `{"edits":[null]}`, `{"edits":"no"}`, `[]`, `null`, `{"limit":1e400}`, `{"limit":"NaN"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, tool := range (Options{}).New(agent.Env{}) {
			if object := tool.Object(raw); !utf8.ValidString(object) {
				t.Errorf("%s acts on %q", tool.Spec().Name, object)
			}
		}
		a := parse(raw)
		limit := a.number("limit", 1, 10, 5)
		a.flag("literal")
		edits := a.edits()
		if limit < 1 || limit > 10 || len(edits) > maxEdits {
			t.Errorf("limit %d, %d edits", limit, len(edits))
		}
		r := a.failed()
		if r == nil && len(edits) == 0 || r != nil && !utf8.ValidString(r.Text) {
			t.Errorf("%s gives %v", raw, r)
		}
		for _, e := range edits {
			if r == nil && (e.old == "" || !utf8.ValidString(e.old+e.new) || strings.Contains(e.old+e.new, "\r\n")) {
				t.Errorf("%s gives %+v", raw, e)
			}
		}
	})
}

// stuck is a workspace whose search never ends by itself.
type stuck struct{ core.Workspace }

func (stuck) Search(ctx context.Context, _ core.SearchQuery) (core.SearchResult, error) {
	<-ctx.Done()
	return core.SearchResult{}, ctx.Err()
}

func TestTools_LookingAtFilesEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, tool := range (Options{}).New(agent.Env{Workspace: stuck{}}) {
			if tool.Spec().Name != "grep" {
				continue
			}
			r, err := tool.Run(t.Context(), json.RawMessage(`{"pattern":"x"}`))
			if err != nil || r.Code != "timed_out" || !strings.Contains(r.Text, "grep was stopped after 30s. Ask for less") {
				t.Errorf("%+v, %v", r, err)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(core.ErrCancelledByUser)
			if _, err := tool.Run(ctx, json.RawMessage(`{"pattern":"x"}`)); err != core.ErrCancelledByUser { //nolint:errorlint // the very cause
				t.Errorf("a cancelled turn gives %v", err)
			}
		}
	})
}

// Git must not wait for an editor, nor take an empty one for consent.
func TestBash_EditorsFail(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	git := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=x", "-c", "user.email=x@example.com"}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(quiet(), "HOME="+dir, "PATH=/usr/bin:/bin")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, args := range [][]string{{"init", "-q"}, {"commit", "-q", "--allow-empty", "-m", "one"}, {"commit", "-q", "--allow-empty", "-m", "two"}} {
		if out, err := git(args...); err != nil {
			t.Fatal(out)
		}
	}
	for _, args := range [][]string{{"commit", "--allow-empty"}, {"rebase", "-q", "-i", "HEAD~1"}} {
		if out, err := git(args...); err == nil || !strings.Contains(out, "editor") {
			t.Errorf("git %v: %v, %s", args, err, out)
		}
	}
}
