package modeltest

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strings"
)

// DemoModel is the name under which the demo's script reports itself.
const DemoModel = "scripted-demo"

// Demo is a script that does visible work on any small repository for any prompt, within the bash
// policy seed, and says in its answer that it is a script. What it reads decides what it writes: it
// knows no paths.
//
// Words of the prompt steer it: "slow" adds waiting steps of about 20 s in all, "publish" ends with
// a pull request, "network" asks a package registry, "test" tries to run the tests, "endless" never comes to an end by itself. "fail",
// alone on a line or after "please", ends with a provider's failure: people write of tests that fail.
func Demo() Script { return demoScript{} }

type demoScript struct{}

func (demoScript) Name() string { return DemoModel }

// Reply replays the plan on the results so far, and answers with the first step that has none. It
// keeps nothing between two requests.
func (demoScript) Reply(req Request) Reply {
	prompt, done := readConversation(req.Messages)
	switch {
	case len(req.Tools) == 0:
		return record(req.Messages[len(req.Messages)-1].Content)
	case !offers(req, "write"):
		return investigate(prompt, done)
	}
	d := newDemo(prompt)
	for _, step := range d.plan() {
		calls := step.do()
		if len(calls) == 0 {
			continue
		}
		if len(done) == 0 {
			if failLine.MatchString(d.prompt) && d.looked {
				return Reply{Fault: ServerError}
			}
			for i := range calls {
				calls[i].ID = fmt.Sprintf("call_%d_%d", d.step, i)
			}
			return Reply{Text: step.say, Calls: calls}
		}
		step.see(done[0])
		done = done[1:]
		d.step++
	}
	return Reply{Text: d.report()}
}

// step is one request's worth of work. do says what to call, nothing to skip the step; see learns
// from the results, one for each call.
type step struct {
	say string
	do  func() []Call
	see func(results []string)
}

// readConversation finds what the person asks and the results of each round of calls.
func readConversation(messages []Message) (prompt string, rounds [][]string) {
	for _, m := range messages {
		switch m.Role {
		case "user":
			prompt = requestOf(m.Content)
			rounds = nil
		case "assistant":
			if len(m.ToolCalls) > 0 {
				rounds = append(rounds, nil)
			}
		case "tool":
			if n := len(rounds); n > 0 {
				rounds[n-1] = append(rounds[n-1], m.Content)
			}
		}
	}
	return prompt, rounds
}

// requestOf takes the request out of a composed message; another message is one as a whole.
func requestOf(content string) string {
	for _, name := range []string{"request", "task"} {
		if text := sectionOf(content, name); text != "" {
			return text
		}
	}
	return strings.TrimSpace(content)
}

// sectionOf is the text of a section, between its own tags.
func sectionOf(content, name string) string {
	for _, m := range regexp.MustCompile(`(?m)^<section name="`+name+`" id="([^"]+)">\n`).FindAllStringSubmatchIndex(content, -1) {
		end := "\n</section id=\"" + content[m[2]:m[3]] + "\">"
		if text, _, ok := strings.Cut(content[m[1]:], end); ok {
			return strings.TrimSpace(text)
		}
	}
	return ""
}

// demo is what the script knows while it replays.
type demo struct {
	prompt string
	seed   uint32 // of the prompt, so that different prompts give different work
	step   int

	looked   bool
	files    []string
	language *language
	readme   string // path
	texts    map[string]string
	defs     []match
	todos    []match
	mentions []match
	overview string // path of the page it keeps
	followUp bool   // the page was there when it came
	fix      *fix
	fixPath  string
	tested   bool

	done   []string // what the report may claim
	failed []string
}

func newDemo(prompt string) *demo {
	h := fnv.New32a()
	h.Write([]byte(prompt))
	return &demo{prompt: prompt, seed: h.Sum32(), texts: map[string]string{}}
}

// failLine is a line that asks for a failure and for nothing else.
var failLine = regexp.MustCompile(`(?im)^\W*(?:please\s+)?fail\W*$`)

// wants says that a word, or one of several patterns between bars, is in the prompt.
func (d *demo) wants(word string) bool {
	return regexp.MustCompile(`(?i)\b(` + word + `)\b`).MatchString(d.prompt)
}

// keywords are the longest words of the prompt, at most five, in their order. They are as good a
// guess as any at what it is about.
func (d *demo) keywords() []string {
	var words []string
	for _, w := range regexp.MustCompile(`[A-Za-z_]{4,}`).FindAllString(strings.ToLower(d.prompt), -1) {
		switch w {
		case "slow", "endless", "publish", "please", "should", "would", "could", "repository", "request", "pull", "with", "that", "this", "from", "into",
			"then", "they", "what", "when", "where", "which", "there", "them", "have", "your", "make", "also", "about", "some":
			continue
		}
		if !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	for len(words) > 5 {
		shortest := slices.MinFunc(words, func(a, b string) int { return len(a) - len(b) })
		words = slices.DeleteFunc(words, func(w string) bool { return w == shortest })
	}
	return words
}

// match is one line of a search.
type match struct{ path, line, text string }

var matchLine = regexp.MustCompile(`^(.+?):(\d+): ?(.*)$`)

func matchesOf(result string) []match {
	var list []match
	for line := range strings.Lines(result) {
		if m := matchLine.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			list = append(list, match{m[1], m[2], strings.TrimSpace(m[3])})
		}
	}
	return list
}

// failedCall says that a result is an error, and keeps its first line for the report.
func (d *demo) failedCall(what, result string) bool {
	if !strings.HasPrefix(result, "Error (") {
		return false
	}
	first, _, _ := strings.Cut(result, "\n")
	d.failed = append(d.failed, fmt.Sprintf("%s: %s", what, first))
	return true
}

// oneLine makes foreign text safe to stand in a heading or a sentence.
func oneLine(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if strings.ContainsRune("`*_[]<>#|\"", r) {
			return -1
		}
		return r
	}, strings.Join(strings.Fields(s), " "))
	s = strings.TrimSpace(s)
	if r := []rune(s); len(r) > limit {
		s = strings.TrimSpace(string(r[:limit])) + "…"
	}
	return s
}
