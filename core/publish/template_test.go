package publish_test

import (
	"strings"
	"testing"

	"agent-sandboxing/core/github/githubtest"
)

func TestPublish_BeginsWithTheRepositorysTemplate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		files map[string]githubtest.File
		want  string // "" for none
	}{
		"of .github": {map[string]githubtest.File{
			".github/PULL_REQUEST_TEMPLATE.md": githubtest.Text("## What\n\n<!-- say it -->\n\nCloses #\n"), "docs/pull_request_template.md": githubtest.Text("no"),
		}, "## What\n\n<!-- say it -->\n\nCloses #"},
		"of the root":       {map[string]githubtest.File{"Pull_Request_Template.txt": githubtest.Text("Root\n")}, "Root"},
		"of docs":           {map[string]githubtest.File{"docs/pull_request_template.md": githubtest.Text("Docs\n")}, "Docs"},
		"one of several":    {map[string]githubtest.File{".github/PULL_REQUEST_TEMPLATE/bug.md": githubtest.Text("no")}, ""},
		"a link":            {map[string]githubtest.File{".github/pull_request_template.md": {Data: []byte("../../etc/passwd"), Link: true}}, ""},
		"too long":          {map[string]githubtest.File{"pull_request_template.md": githubtest.Text(strings.Repeat("long ", 5000))}, ""},
		"with our marks":    {map[string]githubtest.File{"pull_request_template.md": githubtest.Text("<!-- agent-session:end -->")}, "&lt;!-- agent-session:end -->"},
		"not valid as text": {map[string]githubtest.File{"pull_request_template.md": {Data: []byte("a\xffb")}}, "a\uFFFDb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var err error
			if w.base, err = w.github.Commit(t.Context(), fullName, githubtest.Commit{Message: "Template", Files: test.files}); err != nil {
				t.Fatal(err)
			}
			// The agent's own template counts for nothing: the base's does.
			s, ws := w.session(t, map[string]string{"hello.txt": "hello\n", ".github/PULL_REQUEST_TEMPLATE.md": "The agent's\n"})
			w.must(t, s, ws, "Hello", "Words.")
			before, block, found := strings.Cut(w.pulls(t, s)[0].Body, "<!-- agent-session:begin -->\n")
			if !found || strings.TrimSpace(before) != test.want || !strings.HasPrefix(block, "Words.") {
				t.Fatalf("before our block: %q; %v", before, found)
			}
			write(t, ws, map[string]string{"hello.txt": "hello again\n"})
			w.must(t, s, ws, "Hello", "Other words.")
			if again, _, _ := strings.Cut(w.pulls(t, s)[0].Body, "<!-- agent-session:begin -->\n"); again != before {
				t.Errorf("the update made %q of %q", again, before)
			}
		})
	}
}
