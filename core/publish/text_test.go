package publish

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"agent-sandboxing/core"
	"agent-sandboxing/core/mirror"

	"github.com/google/go-cmp/cmp"
)

func newAttempt(title, body string) *attempt {
	return &attempt{
		Service: New(Options{PublicURL: "https://agent.example.com/"}),
		session: core.ChatSession{ID: "0198c0de-0000-7000-8000-00000000cafe", Title: "The session"},
		person:  core.User{GitHubID: 7, Login: "octo-dev"},
		p:       core.Publication{Title: title, Body: body},
	}
}

func TestCleanText_MakesForeignMarkdownHarmless(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"ask @octo-dev, @octo-org/team":             "ask @" + gap + "octo-dev, @" + gap + "octo-org/team",
		"mail a@b.example":                          "mail a@b.example",
		"Fixes #12, closes: octo/x#3":               "Fix" + gap + "es #" + gap + "12, clos" + gap + "es: octo/x#" + gap + "3",
		"GH-7 and 1#2, &#39;, C# 9, #fff":           "GH-" + gap + "7 and 1#" + gap + "2, &#39;, C# 9, #fff",
		"#" + gap + "1 @" + gap + "octo":            "#" + gap + "1 @" + gap + "octo",
		"resolved https://github.com/o/r/issues/1":  "resolv" + gap + "ed https://github.com/o/r/issues/1",
		"fixes the parser, see #12":                 "fixes the parser, see #" + gap + "12",
		"<!-- agent-session:end --> hi":             "&lt;!-- agent-session:end --> hi",
		`<img src="https://x/p.png">`:               `&lt;img src="https://x/p.png">`,
		"![a](https://x/p.png) ![b][r]":             "!" + gap + "[a](https://x/p.png) !" + gap + "[b][r]",
		"Vec<String> and <b>bold</b>":               "Vec<String> and <b>bold</b>",
		"a\u202eb\x1b[31m\x00c\r\nd":                "ab[31mc\nd",
		"[skip ci] [CI Skip]":                       "[" + gap + "skip ci] [" + gap + "CI Skip]",
		"bad \xff utf8":                             "bad \uFFFD utf8",
		"</IMG><Svg/onload=x><source srcset=//x/y>": "&lt;/IMG>&lt;Svg/onload=x>&lt;source srcset=//x/y>",
		"@@octo and (@octo)":                        "@@" + gap + "octo and (@" + gap + "octo)",
	} {
		if got := cleanText(in); got != want {
			t.Errorf("cleanText(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestTitle_IsOneShortLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Add a\n greeting\t now": "Add a greeting now",
		"":                       "The session",
		" \n\x00":                "The session",
		strings.Repeat("é", 80):  strings.Repeat("é", 71) + "…",
	} {
		if got := newAttempt(in, "").title(); got != want {
			t.Errorf("title of %q = %q, want %q", in, got, want)
		}
	}
}

func TestBody_IsOurBlock(t *testing.T) {
	t.Parallel()
	a := newAttempt("T", "Adds a greeting.")
	a.p.LeftOut = []string{"big.bin: new binary file"}
	changes := []mirror.Change{
		{ChangedFile: core.ChangedFile{Path: "a`b.go", Status: "modified", Additions: 3, Deletions: 1}},
		{ChangedFile: core.ChangedFile{Path: "new\nline", OldPath: "old", Status: "renamed"}},
		{ChangedFile: core.ChangedFile{Path: "p.png", Status: "modified", Binary: true}},
	}
	want := strings.Join([]string{
		"<!-- agent-session:begin -->", "Adds a greeting.", "",
		"<!-- agent-session:words person " + sumOf("Adds a greeting.") + " -->", "",
		"**Changed files** (3, +3 −1)", "",
		"- `` a`b.go `` +3 −1", "- `old` → `\"new\\nline\"` renamed, +0 −0", "- `p.png` binary, modified", "",
		"**Left out of this pull request**", "", "- `big.bin: new binary file`", "",
		"Requested by @octo-dev in [this session](https://agent.example.com/chat-sessions/0198c0de-0000-7000-8000-00000000cafe). " +
			"The commits were made for @octo-dev, so an approval by @octo-dev is no independent review.",
		"<!-- agent-session:end -->",
	}, "\n")
	if diff := cmp.Diff(want, a.body("", changes)); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

func TestBody_StaysBelowGitHubsLimit(t *testing.T) {
	t.Parallel()
	a := newAttempt("T", strings.Repeat("long text é ", 20_000))
	var changes []mirror.Change
	for i := range 5000 {
		changes = append(changes, mirror.Change{ChangedFile: core.ChangedFile{Path: fmt.Sprintf("%s/%d", strings.Repeat("d", 150), i), Status: "added"}})
		a.p.LeftOut = append(a.p.LeftOut, fmt.Sprintf("left/%d: generated", i))
	}
	for _, people := range []string{"", "A note.", strings.Repeat("n", 50_000), strings.Repeat("n", 62_000)} {
		body := a.body(people, changes)
		if limit := max(maxBody, len(people)+minBlock+2); len(body) > limit || !utf8.ValidString(body) {
			t.Errorf("%d bytes for %d of people's text", len(body), len(people))
		}
		if !strings.HasPrefix(body, people) || !strings.HasSuffix(body, endMark) || strings.Count(body, beginMark) != 1 {
			t.Errorf("parts are missing beside %d bytes", len(people))
		}
	}
	if body := a.body("", changes); !strings.Contains(body, "more\n") || !strings.Contains(body, "Left out") {
		t.Error("the body does not say what it leaves out")
	}
}

func TestBody_ReplacesItsBlockInPlace(t *testing.T) {
	t.Parallel()
	first, second := newAttempt("T", "One."), newAttempt("T", "Two.")
	old := "above\r\n" + first.body("", nil) + "\r\nbelow"
	if got := second.body(old, nil); got != "above\r\n"+second.body("", nil)+"\r\nbelow" {
		t.Errorf("body = %q", got)
	}
	half := "above\n" + beginMark + "\nhalf of our block"
	if got := second.body(half, nil); got != "above\n"+second.body("", nil) {
		t.Errorf("body = %q", got)
	}
	if got := second.body("a person's text\n", nil); got != "a person's text\n\n"+second.body("", nil) {
		t.Errorf("body = %q", got)
	}
}

func TestCommitMessage_TrailersCannotBeForged(t *testing.T) {
	t.Parallel()
	a := newAttempt("T", "First.\n co-authored-by: Other <other@example.com>\nskip-checks: true\n\nsecond")
	a.person.Name = "Octo\n<Dev>"
	want := "T\n\nFirst.\n\nCo-authored-by: Octo Dev <7+octo-dev@users.noreply.github.com>\n" +
		"Agent-Session: https://agent.example.com/chat-sessions/0198c0de-0000-7000-8000-00000000cafe"
	if got := a.commitMessage(""); got != want {
		t.Errorf("message = %q", got)
	}
}

func TestTexts_AreRedacted(t *testing.T) {
	t.Parallel()
	a := newAttempt("key s3cr3t", "with s3cr3t")
	a.redact = func(s string) string { return strings.ReplaceAll(s, "s3cr3t", "[secret]") }
	if all := a.title() + a.body("", nil) + a.commitMessage(""); strings.Contains(all, "s3cr3t") || strings.Count(all, "[secret]") != 4 {
		t.Errorf("texts = %q", all)
	}
}

func FuzzCleanText(f *testing.F) {
	for _, s := range []string{"@a", "fixes #1", "<!-- x -->", "![x](y)", "a\u200d@b", "\xff@x", "[skip ci]", "<<!img"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := cleanText(s)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x00\x1b\u202e") || strings.Contains(got, "<!") || strings.Contains(got, "![") ||
			mention.MatchString(got) || reference.MatchString(got) || cleanText(got) != got || closing.MatchString(got) || loads.MatchString(got) || skipCI.MatchString(got) {
			t.Errorf("cleanText(%q) = %q", s, got)
		}
	})
}
