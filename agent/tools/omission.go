package tools

import (
	"regexp"
	"strings"

	"agent-sandboxing/agent"
)

// maxPlaceholder bounds the lines that may be one: longer ones are text. Bytes.
const maxPlaceholder = 200

// Pieces of a line that only says that text was left out.
const (
	dots    = `(?:\.{3}|…)`
	comment = `(?://+|#+|/\*+|<!--|--|;+|%|\{/\*)\s*`
	closing = `\s*(?:\*+/\}?|-->)?\s*$`
	noun    = `(?:code|files?|functions?|class(?:es)?|methods?|modules?|imports?|contents?|implementation|logic|lines?|text|` +
		`script|components?|body|sections?|tests?|fields?|handlers?|routes?|styles?|definitions?|options|properties|props|` +
		`jsx|html|markup|query|cases|entries|items|config(?:uration)?|document|page|program)`
	subject = `(?:keep )?(?:all )?(?:the )?(?:rest of (?:the |this |your )?|(?:remaining|existing|other|previous|original|same|unchanged) )(?:[\w-]+ ){0,2}` + noun
	state   = `(?: (?:code|is|are|remains?|stays?|goes|go|left|kept))?(?: (?:unchanged|the same|same|as is|as before|as it was|omitted|here))+`
	opening = `[(\[<]?\s*`
	ending  = `\s*[)\]>]?\s*\.?`
)

// elision finds such a line: "// ... rest of the code", "# existing imports ...", "<!-- rest of the
// file unchanged -->", "… existing code …". Dots alone are not enough: "...rest" spreads a value.
var elision = regexp.MustCompile(`(?i)^\s*(?:` +
	comment + opening + dots + `\s*` + opening + subject + `\b.*` +
	`|` + comment + opening + dots + `\s*` + opening + `(?:unchanged|same as (?:before|above)|omitted|rest(?: unchanged| omitted)?)` + ending + `\s*` + dots + `?` + ending + closing +
	`|` + comment + opening + subject + `(?:` + state + `)?` + `\s*` + dots + ending + closing +
	`|` + comment + opening + subject + state + ending + closing +
	`|` + comment + opening + `(?:the )?rest of (?:the |this )?` + noun + ending + closing +
	`|` + opening + dots + `\s+` + opening + subject + `(?:` + state + `)?` + ending + `\s*` + dots + `?` + ending + `\s*$` +
	`|` + `[(\[<]\s*` + subject + state + `\s*[)\]>]\s*$` +
	`)`)

// placeholder returns the number of the first line of content that stands for left-out text and is
// not in old, 0 when there is none.
func placeholder(content, old string) int {
	n := 0
	for line := range strings.Lines(content) {
		n++
		line = strings.TrimSpace(line)
		if len(line) < maxPlaceholder && elision.MatchString(line) && !strings.Contains(old, line) {
			return n
		}
	}
	return 0
}

// omitted refuses text of the field with a placeholder at line.
func omitted(field string, line int) *agent.Result {
	r := agent.Failed("omission_placeholder", "line %d of %s stands for text that is left out. Write the full text, or use edit for the part that changes.", line, field)
	return &r
}
