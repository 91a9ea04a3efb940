package modeltest

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// slowSteps times two seconds is how long a slow turn waits.
const slowSteps = 9

// endlessSteps are more than any limit allows.
const endlessSteps = 2000

// plan is everything that the demo may do, in order.
func (d *demo) plan() []step {
	steps := []step{
		{"I'll look at the layout of the repository first.", d.look, d.seeLayout},
		{"Now the README and some of the source.", d.readSome, d.seeTexts},
		{"Which definitions and open points are there?", d.search, d.seeSearch},
	}
	steps = append(steps, step{"A helper may look for every place that the request touches.", d.delegate, d.seeReport})
	if d.wants("slow") {
		for i := range slowSteps {
			steps = append(steps, step{"", func() []Call { return d.wait(i + 1) }, func([]string) {}})
		}
	}
	steps = append(steps,
		step{"The request speaks of the network: what can be reached from here?", d.connect, d.seeConnect},
		step{"Does the README already lead to an overview of the code?", d.checkReadme, d.seeCheck},
		step{"One of the open points can be settled now. I'll read it in its context.", d.readFix, d.seeFix},
		step{"The change is small.", d.applyFix, d.seeApplied},
		step{"Next, the overview.", d.writeOverview, d.seeOverview},
		step{"The README should lead there.", d.linkReadme, d.seeLink},
		step{"And a small helper, in the style of the code around it.", d.writeHelper, d.seeHelper},
		step{"Let me see whether the tests may be run here.", d.runTests, d.seeTests},
	)
	if d.wants("endless") {
		for i := range endlessSteps {
			steps = append(steps, step{"", func() []Call { return d.lookAgain(i + 1) }, func([]string) {}})
		}
	}
	return append(steps,
		step{"A last look at the whole change.", d.verify, d.seeVerify},
		step{"Now the pull request, as asked.", d.publish, d.seePublish},
	)
}

func (d *demo) look() []Call {
	return []Call{
		CallJSON("ls", map[string]any{"path": "."}),
		CallJSON("find", map[string]any{"pattern": "*", "limit": 400}),
	}
}

func (d *demo) seeLayout(results []string) {
	d.looked = true
	for line := range strings.Lines(last(results)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "[") && line != "No files found" {
			d.files = append(d.files, line)
		}
	}
	d.language = languageOf(d.files)
	d.overview = "OVERVIEW.md"
	for _, f := range d.files {
		if strings.HasPrefix(f, "docs/") {
			d.overview = "docs/overview.md"
		}
		if strings.EqualFold(f, "readme.md") {
			d.readme = f
		}
	}
	d.followUp = slices.Contains(d.files, d.overview)
}

// sources are the files of the main language that are no tests.
func (d *demo) sources() []string {
	var list []string
	for _, f := range d.files {
		if d.language != nil && path.Ext(f) == d.language.ext && !strings.Contains(strings.ToLower(f), "test") {
			list = append(list, f)
		}
	}
	return list
}

func (d *demo) readSome() []Call {
	var calls []Call
	read := func(p string) {
		calls = append(calls, CallJSON("read", map[string]any{"path": p, "limit": 400}))
	}
	if d.readme != "" {
		read(d.readme)
	}
	if d.followUp {
		read(d.overview)
	}
	if s := d.sources(); len(s) > 0 {
		first := int(d.seed) % len(s)
		read(s[first])
		if len(s) > 1 {
			read(s[(first+1)%len(s)])
		}
	}
	return calls
}

// seeTexts keeps what was read, by the order of readSome.
func (d *demo) seeTexts(results []string) {
	for i, call := range d.readSome() {
		if i < len(results) && !strings.HasPrefix(results[i], "Error (") {
			d.texts[pathOf(call)] = withoutNotes(results[i])
		}
	}
}

func (d *demo) search() []Call {
	calls := []Call{CallJSON("grep", map[string]any{"pattern": `TODO|FIXME|` + fixPhrases(), "limit": 40})}
	if d.language != nil {
		calls = append(calls, CallJSON("grep", map[string]any{"pattern": d.language.definition, "glob": "*" + d.language.ext, "limit": 120}))
	}
	if words := d.keywords(); len(words) > 0 {
		calls = append(calls, CallJSON("grep", map[string]any{"pattern": strings.Join(words, "|"), "ignoreCase": true, "limit": 20}))
	}
	return calls
}

func (d *demo) seeSearch(results []string) {
	for i, call := range d.search() {
		if i >= len(results) {
			return
		}
		found := matchesOf(results[i])
		switch {
		case i == 0:
			d.todos = found
		case d.language != nil && strings.Contains(call.Arguments, `"glob"`):
			d.defs = found
		default:
			d.mentions = found
		}
	}
}

// delegate has the words of the prompt looked up in a context of its own. Without any there is
// nothing to ask.
func (d *demo) delegate() []Call {
	words := d.keywords()
	if len(words) == 0 {
		return nil
	}
	pattern := "(?i)" + strings.Join(words, "|")
	return []Call{CallJSON("subagent", map[string]any{
		"task": "Which files and lines match /" + pattern + "/? Report each as path:line with what stands there, and how many there are in all.",
	})}
}

func (d *demo) seeReport(results []string) {
	if !d.failedCall("The helper", last(results)) {
		first, _, _ := strings.Cut(last(results), "\n")
		d.done = append(d.done, "A helper looked for what the request touches: "+oneLine(first, 120))
	}
}

func (d *demo) wait(n int) []Call {
	return []Call{CallJSON("bash", map[string]any{"command": fmt.Sprintf("sleep 2 && echo 'slow step %d of %d'", n, slowSteps)})}
}

// lookAgain is a call that differs from the one before, so that only a limit ends it.
func (d *demo) lookAgain(n int) []Call {
	return []Call{CallJSON("bash", map[string]any{"command": fmt.Sprintf("echo 'endless step %d'", n)})}
}

// checkReadme is a command that fails when there is nothing to find.
func (d *demo) checkReadme() []Call {
	if d.readme == "" {
		return []Call{CallJSON("bash", map[string]any{"command": "ls README.md"})}
	}
	word := path.Base(d.overview)
	if d.followUp {
		word = "Follow-up " + fmt.Sprint(d.seed%1000)
	}
	return []Call{CallJSON("bash", map[string]any{"command": fmt.Sprintf("grep -n '%s' %s", word, d.readme)})}
}

func (d *demo) seeCheck([]string) {}

// verify is a command that passes.
func (d *demo) verify() []Call {
	calls := []Call{
		CallJSON("bash", map[string]any{"command": "wc -l " + d.overview}),
		CallJSON("bash", map[string]any{"command": "git status --short && git diff --stat"}),
	}
	if check := d.languageCheck(); check != "" {
		calls = append(calls, CallJSON("bash", map[string]any{"command": check}))
	}
	return calls
}

func (d *demo) seeVerify(results []string) {
	for i, call := range d.verify() {
		if i < len(results) {
			d.done = append(d.done, fmt.Sprintf("Ran `%s`: %s.", argument(call, "command"), exitOf(results[i])))
		}
	}
}

func (d *demo) runTests() []Call {
	if d.language == nil || d.language.test == "" || !d.wants("tests?|testing") {
		return nil
	}
	return []Call{CallJSON("bash", map[string]any{"command": d.language.test})}
}

func (d *demo) seeTests(results []string) {
	if d.failedCall("`"+d.language.test+"`", last(results)) {
		return
	}
	d.tested = true
	d.done = append(d.done, fmt.Sprintf("Ran `%s`: %s.", d.language.test, exitOf(last(results))))
}

func (d *demo) publish() []Call {
	if !d.wants("publish|pull request") {
		return nil
	}
	title := "Describe the code in an overview"
	if d.followUp {
		title = "Extend the overview of the code"
	}
	if d.fix != nil {
		title = d.fix.title
	}
	body := "## What\n\n- " + strings.Join(d.done, "\n- ") +
		"\n\n## Why\n\n" + oneLine(d.prompt, 300) +
		"\n\n## Not verified\n\nNo person has read this yet; it was made by the scripted demo model."
	return []Call{CallJSON("publish_pull_request", map[string]any{"title": title, "body": body})}
}

func (d *demo) seePublish(results []string) {
	if !d.failedCall("Publishing", last(results)) {
		first, _, _ := strings.Cut(last(results), "\n")
		d.done = append(d.done, first)
	}
}
