package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"go.uber.org/goleak"

	"agent-sandboxing/agent"
	"agent-sandboxing/agent/tools"
	"agent-sandboxing/core"
	"agent-sandboxing/prompts"
	"agent-sandboxing/sandbox/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type bench struct {
	t    *testing.T
	repo string
	set  map[string]agent.Tool
}

func setup(t *testing.T, files map[string]string) *bench {
	t.Helper()
	return setupWith(t, tools.Options{}, files)
}

func setupWith(t *testing.T, o tools.Options, files map[string]string) *bench {
	t.Helper()
	dir := t.TempDir()
	ws, err := memory.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ws.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := ws.Seed(files); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, repo: filepath.Join(dir, "workspace", "repo"), set: map[string]agent.Tool{}}
	env := agent.Env{Workspace: ws, Policy: core.PolicySeed, MessageID: core.NewID[core.MessageID](), Publisher: refusing{}}
	for _, tool := range o.New(env) {
		b.set[tool.Spec().Name] = tool
	}
	return b
}

type refusing struct{}

func (refusing) PublishPullRequest(context.Context, string, string) (core.PublishResult, error) {
	return core.PublishResult{}, core.Fail(core.Conflict, "nothing_to_publish", "There is nothing to publish. Change something first.")
}

func (b *bench) call(tool string, args map[string]any) agent.Result {
	b.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		b.t.Fatal(err)
	}
	r, err := b.set[tool].Run(b.t.Context(), raw)
	if err != nil {
		b.t.Fatal(err)
	}
	if r.Text == "" || r.Outcome == "" {
		b.t.Errorf("%s %s gives an empty result", tool, raw)
	}
	return r
}

func (b *bench) file(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.repo, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

type args = map[string]any

// wants checks a result's code ("" for ok) and a part of its text.
func (b *bench) wants(r agent.Result, code, part string) {
	b.t.Helper()
	if r.Code != code || !strings.Contains(r.Text, part) {
		b.t.Errorf("got %q: %.300q, want %q with %q", r.Code, r.Text, code, part)
	}
}

func TestTools_AreDeclaredAsSpecified(t *testing.T) {
	t.Parallel()
	profiles, err := prompts.Profiles()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, tool := range (tools.Options{}).New(agent.Env{}) {
		spec := tool.Spec()
		known[spec.Name] = true
		var schema jsonschema.Schema
		if err := json.Unmarshal(spec.Parameters, &schema); err != nil {
			t.Fatalf("%s: %v", spec.Name, err)
		}
		if _, err := schema.Resolve(nil); err != nil {
			t.Errorf("%s: %v", spec.Name, err)
		}
		if len(spec.Description) < 40 {
			t.Errorf("%s has no description", spec.Name)
		}
	}
	for name, p := range profiles {
		for _, tool := range p.Tools {
			if !known[tool] {
				t.Errorf("profile %s names %s", name, tool)
			}
		}
	}
	if _, ok := profiles["main"]; !ok {
		t.Error("there is no profile main")
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	var long strings.Builder
	for i := range 4312 {
		fmt.Fprintf(&long, "line %d\n", i+1)
	}
	b := setup(t, map[string]string{
		"a.txt": "one\ntwo\nthree\n", "long.txt": long.String(), "wide.txt": strings.Repeat("é", 3000) + "\nnext\n",
		"crlf.txt": "\xEF\xBB\xBFa\r\nb\r\n", "empty.txt": "", "bin": "a\x00b", "latin.txt": "caf\xe9\n", "src/config.ts": "x\n", "src/": "",
		"big.txt": strings.Repeat(strings.Repeat("x", 99)+"\n", 600),
	})
	b.wants(b.call("read", args{"path": "a.txt"}), "", "one\ntwo\nthree\n")
	b.wants(b.call("read", args{"file_path": "@/workspace/repo/a.txt", "offset": "2", "limit": 1.0}), "", "two\n\n[lines 2-2 of 3. Use offset=3 to continue.]")
	b.wants(b.call("read", args{"path": "a.txt", "offset": 3}), "", "three\n\n[lines 3-3 of 3.]")
	b.wants(b.call("read", args{"path": "long.txt"}), "", "line 2000\n\n[lines 1-2000 of 4312. Use offset=2001 to continue.]")
	b.wants(b.call("read", args{"path": "wide.txt"}), "", "… [line is 3,000 chars; use bash: sed -n '1p' FILE | head -c 20000]\nnext")
	b.wants(b.call("read", args{"path": "crlf.txt"}), "", "a\nb\n\n[CRLF line endings]\n[UTF-8 BOM]")
	b.wants(b.call("read", args{"path": "empty.txt"}), "", "[empty file]")
	b.wants(b.call("read", args{"path": "latin.txt"}), "", "caf\uFFFD\n\n[not UTF-8")
	if r := b.call("read", args{"path": "big.txt"}); len(r.Text) > 51<<10 || !r.Truncated || !strings.Contains(r.Text, "[lines 1-512 of 600. Use offset=513") {
		t.Errorf("%d bytes, ends %q", len(r.Text), r.Text[len(r.Text)-80:])
	}
	b.wants(b.call("read", args{"path": "bin"}), "binary_file", "3 bytes")
	b.wants(b.call("read", args{"path": "a.txt", "offset": 9}), "offset_past_end", "3 lines")
	b.wants(b.call("read", args{"path": "src/confg.ts"}), "not_found", "Similar names there: src/config.ts.")
	b.wants(b.call("read", args{"path": "src/config.js"}), "not_found", "src/config.ts")
	b.wants(b.call("read", args{"path": "src"}), "is_directory", "Use ls")
	b.wants(b.call("read", args{"path": "a.txt", "limit": 5000}), "invalid_arguments", "limit must be a whole number from 1 to 2000")
	b.wants(b.call("read", args{}), "invalid_arguments", "path is missing")
}

func TestPaths_StayInside(t *testing.T) {
	t.Parallel()
	b := setup(t, map[string]string{"a.txt": "x\n", ".git/config": "[core]\n"})
	if err := os.Symlink("/etc", filepath.Join(b.repo, "out")); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"/etc/passwd", "../x", "a/../../x", "/workspace/home/x", "/workspace/repository", "/workspace/repo/../home", "out/passwd", "/tmp/../etc/passwd"} {
		b.wants(b.call("read", args{"path": p}), "path_outside_workspace", "")
		b.wants(b.call("write", args{"path": p, "content": "x"}), "path_outside_workspace", "")
		b.wants(b.call("ls", args{"path": p}), "path_outside_workspace", "")
	}
	for _, p := range []string{" ", "a\x00b", "a\nb", "@", strings.Repeat("x/", 3000)} {
		b.wants(b.call("read", args{"path": p}), "invalid_path", "")
	}
	b.wants(b.call("write", args{"path": ".git/config", "content": "x"}), "git_dir_protected", "")
	b.wants(b.call("edit", args{"path": "sub/.git/config", "oldText": "a", "newText": "b"}), "git_dir_protected", "")
	b.wants(b.call("read", args{"path": ".git/config"}), "", "[core]")
	b.wants(b.call("write", args{"path": "/tmp/scratch.txt", "content": "x\n"}), "", "Created /tmp/scratch.txt")
	b.wants(b.call("read", args{"path": "/tmp/scratch.txt"}), "", "x\n")
}

func TestWrite(t *testing.T) {
	t.Parallel()
	b := setup(t, map[string]string{"a.txt": "old\n", "crlf.txt": "\xEF\xBB\xBFa\r\nb\r\n", "doc.md": "... the rest of the day\n"})
	b.wants(b.call("write", args{"path": "new/dir/x.txt", "content": "one\ntwo\n"}), "", "Created new/dir/x.txt (2 lines, 8 bytes)")
	b.wants(b.call("write", args{"path": "a.txt", "content": "new\n"}), "not_read", "Read it first")
	b.call("read", args{"path": "a.txt"})
	b.wants(b.call("write", args{"path": "a.txt", "content": "new\n"}), "", "Overwrote a.txt")
	b.wants(b.call("write", args{"path": "./a.txt", "content": "newer\n"}), "", "Overwrote a.txt")
	b.wants(b.call("write", args{"path": "a.txt", "content": "newer\n"}), "", "already has this content")
	if err := os.WriteFile(filepath.Join(b.repo, "a.txt"), []byte("changed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.wants(b.call("write", args{"path": "a.txt", "content": "lost\n"}), "changed_since_read", "Read it again")
	if got := b.file("a.txt"); got != "changed\n" {
		t.Errorf("a.txt is %q", got)
	}
	b.call("read", args{"path": "crlf.txt"})
	b.wants(b.call("write", args{"path": "crlf.txt", "content": "c\nd\n"}), "", "Kept CRLF line endings")
	if got := b.file("crlf.txt"); got != "\xEF\xBB\xBFc\r\nd\r\n" {
		t.Errorf("crlf.txt is %q", got)
	}
	b.wants(b.call("write", args{"path": "."}), "invalid_arguments", "content is missing")
	b.wants(b.call("write", args{"path": "new", "content": "x"}), "is_directory", "")
	b.wants(b.call("write", args{"path": "big.txt", "content": strings.Repeat("x", 1<<20+1)}), "file_too_large", "")
	for _, line := range []string{"// ... rest of the code", "# existing imports ...", "    // the rest of the file", "… existing code …", "/* remaining methods... */", "<!-- rest of the file unchanged -->"} {
		b.wants(b.call("write", args{"path": "x.go", "content": "package x\n" + line + "\n"}), "omission_placeholder", "line 2")
	}
	for i, line := range []string{"// The rest is history.", "func rest() {}", "see the remaining parts below", "x := list[...]", "# Existing users", "fmt.Println(args...)"} {
		b.wants(b.call("write", args{"path": fmt.Sprintf("ok%d.go", i), "content": line + "\n"}), "", "Created")
	}
	b.call("read", args{"path": "doc.md"})
	b.wants(b.call("write", args{"path": "doc.md", "content": "# Day\n... the rest of the day\n"}), "", "Overwrote")
}

func TestEdit_TakesWhatModelsSend(t *testing.T) {
	t.Parallel()
	b := setup(t, map[string]string{"a.txt": "a\nb\nc\nd\ne\nf\n", "latin.txt": "caf\xe9\n", "script.sh": "#!/bin/sh\necho a\n"})
	if err := os.Chmod(filepath.Join(b.repo, "script.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.wants(b.call("edit", args{"path": "a.txt", "edits": []args{{"oldText": "a", "newText": "A"}}}), "", "@@ -1,4 +1,4 @@\n-a\n+A\n b")
	b.wants(b.call("edit", args{"path": "a.txt", "edits": `[{"oldText":"b","newText":"B"}]`}), "", "Replaced 1 block")
	b.wants(b.call("edit", args{"filePath": "a.txt", "old_string": "c", "new_string": "C"}), "", "Replaced 1 block")
	b.wants(b.call("edit", args{"path": "a.txt", "edits": args{"oldText": "d", "newText": "D"}}), "", "Replaced 1 block")
	b.wants(b.call("edit", args{"path": "a.txt", "edits": []args{{"oldText": "e", "newText": ""}}}), "", "Replaced 1 block")
	if got := b.file("a.txt"); got != "A\nB\nC\nD\n\nf\n" {
		t.Errorf("a.txt is %q", got)
	}
	b.wants(b.call("write", args{"path": "a.txt", "content": "x\n"}), "", "Overwrote") // an edit has seen the file
	b.wants(b.call("edit", args{"path": "a.txt", "edits": []args{{"oldText": "", "newText": "x"}}}), "invalid_arguments", "use write")
	b.wants(b.call("edit", args{"path": "a.txt", "edits": []args{}}), "invalid_arguments", "1 to 20")
	b.wants(b.call("edit", args{"path": "a.txt"}), "invalid_arguments", "edits is missing")
	b.wants(b.call("edit", args{"path": "b.txt", "oldText": "a", "newText": "b"}), "not_found", "Similar names there: a.txt")
	b.wants(b.call("edit", args{"path": "latin.txt", "oldText": "caf", "newText": "b"}), "not_utf8", "bash")
	b.put("large.txt", strings.Repeat("x\n", 1<<19)+"end\n")
	b.wants(b.call("edit", args{"path": "large.txt", "oldText": "end", "newText": ""}), "file_too_large", "large.txt has 1.0 MiB; files up to 1 MiB can be edited.")
	b.wants(b.call("edit", args{"path": "script.sh", "oldText": "echo a", "newText": "echo b"}), "", "Replaced")
	if info, err := os.Stat(filepath.Join(b.repo, "script.sh")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestSearchTools(t *testing.T) {
	t.Parallel()
	b := setup(t, map[string]string{
		"src/a.ts": "one\nconst x = 1\nthree\n", "src/b.ts": "const X = 2\n", "README.md": "# x(\n", ".env.example": "A=1\n", "empty/": "",
	})
	b.wants(b.call("grep", args{"pattern": "const x"}), "", "src/a.ts:2: const x = 1")
	b.wants(b.call("grep", args{"pattern": "CONST", "ignoreCase": "true", "glob": "*.ts"}), "", "src/b.ts:1: const X = 2")
	b.wants(b.call("grep", args{"pattern": "const x", "context": 1}), "", "src/a.ts-1- one\nsrc/a.ts:2: const x = 1\nsrc/a.ts-3- three")
	b.wants(b.call("grep", args{"pattern": "x(", "literal": true}), "", "README.md:1: # x(")
	b.wants(b.call("grep", args{"pattern": "const", "limit": 1}), "", "[1 match shown; more exist.")
	b.wants(b.call("grep", args{"pattern": "nowhere"}), "", "No matches found")
	if r := b.call("grep", args{"pattern": "x("}); r.Outcome != agent.OutcomeError {
		t.Errorf("a broken pattern gives %+v", r)
	}
	b.wants(b.call("find", args{"pattern": "*.ts"}), "", "src/a.ts\nsrc/b.ts")
	b.wants(b.call("find", args{"pattern": "*.go"}), "", "No files found")
	b.wants(b.call("find", args{"pattern": "*.ts", "limit": 1}), "", "[1 file shown; more exist.")
	for pattern, hint := range map[string]string{
		"./b/a.ts":          "A pattern with a slash is matched from . on; **/b/a.ts looks below it too.",
		".github/flow/*.ts": "A pattern with a slash is matched from . on; **/.github/flow/*.ts looks below it too.",
		"/b.ts":             "A pattern with a slash is matched from . on; **/b.ts looks below it too.",
		"src/":              "Only files are found; src/** finds those in it.",
		"**/b/a.ts":         "",
		"./none.ts":         "", // has no slash but this
		"!**":               "",
	} {
		want := "No files found"
		if hint != "" {
			want += "\n[" + hint + "]"
		}
		if r := b.call("find", args{"pattern": pattern}); r.Text != want {
			t.Errorf("%s gives %q, want %q", pattern, r.Text, want)
		}
	}
	b.wants(b.call("ls", nil), "", ".env.example\nREADME.md\nempty/\nsrc/")
	b.wants(b.call("ls", args{"path": "empty"}), "", "[empty directory]")
	b.wants(b.call("ls", args{"path": "README.md"}), "not_a_directory", "Use read")
	b.wants(b.call("ls", args{"path": "nowhere"}), "not_found", "")
}

// hurried is a workspace that has no time to look at anything.
type hurried struct{ core.Workspace }

func (hurried) Find(context.Context, core.FindQuery) (core.FindResult, error) {
	return core.FindResult{More: true}, nil
}

func (hurried) Search(context.Context, core.SearchQuery) (core.SearchResult, error) {
	return core.SearchResult{More: true}, nil
}

func TestSearchTools_NothingInAPartIsNotNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	for _, tool := range (tools.Options{}).New(agent.Env{Workspace: hurried{}}) {
		b.set[tool.Spec().Name] = tool
	}
	for tool, want := range map[string]string{
		"grep": "No matches found\n[Not all of src was searched: it is too large. Narrow the path or glob.]",
		"find": "No files found\n[Not all of src was looked at: it is too large. Name a directory in it.]",
	} {
		if r := b.call(tool, args{"pattern": "x", "path": "src"}); r.Text != want || !r.Truncated {
			t.Errorf("%s gives %q, truncated %v", tool, r.Text, r.Truncated)
		}
	}
}

func TestBash(t *testing.T) {
	t.Parallel()
	var lines strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&lines, "%d\n", i)
	}
	b := setup(t, map[string]string{"a.txt": "one\n", "lines.txt": lines.String()})
	b.wants(b.call("bash", args{"command": "cat a.txt"}), "", "one")
	r := b.call("bash", args{"command": "cat a.txt && cat missing"})
	b.wants(r, "", "\n\n[exit code 1]")
	if r.Exit == nil || *r.Exit != 1 || r.Detail != "exit 1" || r.Outcome != agent.OutcomeOK {
		t.Errorf("%+v", r)
	}
	b.wants(b.call("bash", args{"command": "true"}), "", "(no output)")
	r = b.call("bash", args{"command": "cat lines.txt"})
	b.wants(r, "", "\n399\n\n[… 1,000 lines omitted. Full output (13.6 KiB): /tmp/agent-out/")
	b.wants(r, "", " — read it with offset/limit or grep it.]\n\n1400\n")
	_, log, _ := strings.Cut(r.Text, "Full output (13.6 KiB): ")
	log, _, _ = strings.Cut(log, " ")
	b.wants(b.call("read", args{"path": log, "offset": 401, "limit": 2}), "", "400\n401\n\n[lines 401-402 of 3000.")
	if !r.Truncated || string(r.Full) != lines.String() {
		t.Errorf("truncated %v, %d bytes kept", r.Truncated, len(r.Full))
	}
	b.wants(b.call("bash", args{"command": "sleep 5", "timeout": 1}), "timed_out", "[timed out after 1 s; processes killed]")
	r = b.call("bash", args{"command": "ls; pwd"})
	b.wants(r, "separator_not_allowed", "Error (separator_not_allowed): One statement per call.")
	if r.Outcome != agent.OutcomeRefused || r.Refusal == nil || r.Refusal.Command != "ls; pwd" {
		t.Errorf("%+v", r)
	}
	b.wants(b.call("bash", args{"command": strings.Repeat("x", 9000)}), "invalid_arguments", "8192")
}

func TestPublish(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.wants(b.call("publish_pull_request", args{"title": "Say more", "body": "x"}), "nothing_to_publish", "Change something first")
	b.wants(b.call("publish_pull_request", args{"title": strings.Repeat("x", 121), "body": "x"}), "invalid_arguments", "title")
	b.wants(b.call("publish_pull_request", args{"title": "x", "body": strings.Repeat("x", 9000)}), "invalid_arguments", "body")
	b.wants(b.call("publish_pull_request", args{"title": "x"}), "invalid_arguments", "body is missing")
}

func TestTools_CancelAndLostSandboxEndTheTurn(t *testing.T) {
	t.Parallel()
	b := setup(t, map[string]string{"a.txt": "x\n"})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(core.ErrCancelledByUser)
	for name, raw := range map[string]string{
		"read": `{"path":"a.txt"}`, "write": `{"path":"b.txt","content":"x"}`, "edit": `{"path":"a.txt","oldText":"x","newText":"y"}`,
		"bash": `{"command":"ls"}`, "grep": `{"pattern":"x"}`, "find": `{"pattern":"*"}`, "ls": `{}`,
	} {
		if _, err := b.set[name].Run(ctx, json.RawMessage(raw)); err != core.ErrCancelledByUser { //nolint:errorlint // the very cause
			t.Errorf("%s gives %v", name, err)
		}
	}
	for code, ends := range map[string]bool{"sandbox_lost": true, "disk_full": false, "github_unavailable": false} {
		r, err := agent.FailedBy(t.Context(), core.Fail(core.Unavailable, code, "It is so."))
		if (err != nil) != ends || !ends && r.Code != code {
			t.Errorf("%s gives %+v, %v", code, r, err)
		}
	}
	if _, err := agent.FailedBy(t.Context(), core.ErrLeaseLost); err == nil {
		t.Error("a lost lease is a result")
	}
}
