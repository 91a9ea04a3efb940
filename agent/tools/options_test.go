package tools_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/agent"
	"agent-sandboxing/agent/tools"
)

func TestOptions_ReadNumbersLinesWhenWished(t *testing.T) {
	t.Parallel()
	b := setupWith(t, tools.Options{NumberLines: true}, map[string]string{"a.txt": "one\n\nthree\n"})
	b.wants(b.call("read", args{"path": "a.txt"}), "", "1\tone\n2\t\n3\tthree\n")
	b.wants(b.call("read", args{"path": "a.txt", "offset": 2, "limit": 1}), "", "2\t\n\n[lines 2-2 of 3. Use offset=3 to continue.]")
	for name, numbered := range map[string]bool{"behind its number": true, "without line numbers": false} {
		for _, o := range []tools.Options{{}, {NumberLines: true}} {
			if read := o.New(agent.Env{})[0].Spec(); read.Name != "read" || strings.Contains(read.Description, name) != (numbered == o.NumberLines) {
				t.Errorf("numbered %v: the model is told %q", o.NumberLines, read.Description)
			}
		}
	}
	// A model that copies the numbers is told so.
	b.wants(b.call("edit", args{"path": "a.txt", "oldText": "1\tone\n2\t", "newText": "x"}), "not_found", "Remove line numbers.")
}

func TestOptions_EditIsExactWhenWished(t *testing.T) {
	t.Parallel()
	files := map[string]string{"spaces.txt": "a  \nb\n", "indent.txt": "\tif x {\n\t\ty\n\t}\n", "crlf.txt": "a\r\nb\r\n"}
	loose := map[string]args{
		"spaces.txt": {"path": "spaces.txt", "oldText": "a\nb", "newText": "c"},
		"indent.txt": {"path": "indent.txt", "oldText": "if x {\n\ty\n}\n", "newText": "z\n"},
	}
	exact, ladder := setupWith(t, tools.Options{ExactEdits: true}, files), setup(t, files)
	for name, a := range loose {
		exact.wants(exact.call("edit", a), "not_found", "Read the file and copy the text as it is.")
		if got := exact.file(name); got != files[name] {
			t.Errorf("%s has become %q", name, got)
		}
		ladder.wants(ladder.call("edit", a), "", "Replaced 1 block")
	}
	// Line endings are no difference in either.
	exact.wants(exact.call("edit", args{"path": "crlf.txt", "oldText": "a\nb", "newText": "a\nc"}), "", "Replaced 1 block")
}

// A field that a tool does not know changes nothing and is known afterwards; the names that other
// harnesses use are no such fields.
func TestTools_UnknownFieldsAreIgnoredAndNoted(t *testing.T) {
	t.Parallel()
	b := setup(t, map[string]string{"a.txt": "one\n", "b.txt": "two\n"})
	tests := map[string]struct {
		args args
		want []string
	}{
		"read": {args{"file_path": "a.txt", "encoding": "utf-8", "explain": true}, []string{"encoding", "explain"}},
		"edit": {args{"path": "a.txt", "edits": []args{{"old_string": "one", "new_string": "1", "regex": false}}, "dry_run": true}, []string{"dry_run", "edits[0].regex"}},
		"bash": {args{"command": "true", "description": "Do nothing"}, []string{"description"}},
		"ls":   {args{"path": "."}, nil},
		"grep": {args{"pattern": "two", "include": "*.txt", "-n": true}, []string{"-n"}},
		"find": {args{"glob": "*.txt"}, nil},
	}
	for tool, test := range tests {
		r := b.call(tool, test.args)
		if r.Outcome != "ok" {
			t.Errorf("%s: %s", tool, r.Text)
		}
		if diff := cmp.Diff(test.want, r.Ignored); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tool, diff)
		}
	}
	if got := b.file("a.txt"); got != "1\n" {
		t.Errorf("the edit gives %q", got)
	}
}
