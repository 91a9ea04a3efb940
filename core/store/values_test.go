package store

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"agent-sandboxing/core"
)

// Whatever text comes in, the JSON that goes to jsonb is valid, holds no NUL and says the same.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{"", "plain", "nul \x00", `\u0000`, `\\u0000`, "\\\x00", "\xff\xfe", "\u2028\u2029<>&", `"quoted"`, strings.Repeat("\x00", 50)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := document(core.MessageQueued{Snippet: text})
		if err != nil {
			t.Fatal(err)
		}
		var back core.MessageQueued
		if err := json.Unmarshal([]byte(got), &back); err != nil {
			t.Fatalf("%s is no JSON: %v", got, err)
		}
		want := strings.ReplaceAll(string([]rune(text)), "\x00", "\uFFFD") // each invalid byte is one U+FFFD
		if back.Snippet != want {
			t.Errorf("%q came back as %q, want %q", text, back.Snippet, want)
		}
	})
}

func FuzzSnippet(f *testing.F) {
	for _, seed := range []string{"", "short", strings.Repeat("é", 300), strings.Repeat("x", core.MaxSnippet), strings.Repeat("x", core.MaxSnippet+1), strings.Repeat("\xff", 400), strings.Repeat("🙂", 126)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := snippet(text)
		if len(got) > core.MaxSnippet || !utf8.ValidString(got) || strings.Contains(got, "\x00") {
			t.Errorf("snippet(%q) = %q", text, got)
		}
		if len(clean(text)) <= core.MaxSnippet && got != clean(text) {
			t.Errorf("snippet cut %q though it fits", text)
		}
		if cut, found := strings.CutSuffix(got, "…"); found && !strings.HasPrefix(clean(text), cut) {
			t.Errorf("snippet(%q) = %q is not its beginning", text, got)
		}
	})
}
