package modeltest

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// endOfOverview is the line before which a follow-up adds its part.
const endOfOverview = "_This is the end of the overview._"

func (d *demo) writeOverview() []Call {
	if !d.followUp {
		return []Call{CallJSON("write", map[string]any{"path": d.overview, "content": d.overviewText()})}
	}
	if strings.Count(d.texts[d.overview], endOfOverview) != 1 {
		return nil
	}
	n := strings.Count(d.texts[d.overview], "\n## Follow-up ") + 1
	added := fmt.Sprintf("## Follow-up %d: %s\n\n%s\n%s", n, oneLine(d.prompt, 60), d.mentionList(), endOfOverview)
	return []Call{CallJSON("edit", map[string]any{"path": d.overview, "edits": []any{
		map[string]any{"oldText": endOfOverview, "newText": added},
	}})}
}

func (d *demo) seeOverview(results []string) {
	if d.failedCall("The overview", last(results)) {
		return
	}
	if d.followUp {
		d.done = append(d.done, fmt.Sprintf("`%s`: a new part on what you asked for.", d.overview))
		return
	}
	d.done = append(d.done, fmt.Sprintf("`%s`: new; lists the definitions of %s and %s.", d.overview, count(len(d.byFile()), "file"), count(len(d.openPoints()), "open point")))
}

// overviewText describes the code from what the searches have shown.
func (d *demo) overviewText() string {
	var b strings.Builder
	b.WriteString("# Overview of the code\n\nWritten from a search through the repository; each name is where it says.\n")
	if d.language != nil {
		fmt.Fprintf(&b, "\n## Definitions (%s)\n\n", d.language.name)
		for _, f := range d.byFile() {
			fmt.Fprintf(&b, "- `%s`: %s\n", f.path, strings.Join(f.names, ", "))
		}
		if len(d.defs) == 0 {
			b.WriteString("None of the usual form.\n")
		}
	}
	b.WriteString("\n## Open points\n\n")
	for _, m := range d.openPoints() {
		fmt.Fprintf(&b, "- `%s:%s`: %s\n", m.path, m.line, oneLine(m.text, 120))
	}
	if len(d.openPoints()) == 0 {
		b.WriteString("No TODO was found.\n")
	}
	fmt.Fprintf(&b, "\n## On the request\n\n%s\n%s\n", d.mentionList(), endOfOverview)
	return b.String()
}

func (d *demo) mentionList() string {
	words := strings.Join(d.keywords(), ", ")
	if len(d.mentions) == 0 {
		return "Nothing in the repository mentions what was asked for" + ifAny(" (", words, ")") + ".\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Words of the request (%s) are here:\n\n", words)
	for _, m := range d.mentions[:min(len(d.mentions), 8)] {
		fmt.Fprintf(&b, "- `%s:%s`: %s\n", m.path, m.line, oneLine(m.text, 100))
	}
	return b.String()
}

func ifAny(before, s, after string) string {
	if s == "" {
		return ""
	}
	return before + s + after
}

// openPoints are the TODOs outside the overview itself, without the one that was just settled.
func (d *demo) openPoints() []match {
	return slices.DeleteFunc(slices.Clone(d.todos), func(m match) bool {
		return m.path == d.overview || d.fix != nil && strings.Contains(m.text, d.fix.phrase) || !strings.Contains(m.text, "TODO") && !strings.Contains(m.text, "FIXME")
	})
}

type fileNames struct {
	path  string
	names []string
}

var definedName = regexp.MustCompile(`^(?:export )?(?:default )?(?:async )?(?:func(?: \([^)]*\))?|type|def|class|function|const|let|interface|enum)?\s*([A-Za-z_.#][\w.-]*)`)

// byFile groups the definitions by their file, without tests.
func (d *demo) byFile() []fileNames {
	var list []fileNames
	for _, m := range d.defs {
		name := definedName.FindStringSubmatch(m.text)
		if name == nil || strings.Contains(strings.ToLower(m.path), "test") {
			continue
		}
		if n := len(list); n == 0 || list[n-1].path != m.path {
			list = append(list, fileNames{path: m.path})
		}
		f := &list[len(list)-1]
		if !slices.Contains(f.names, name[1]) && len(f.names) < 12 {
			f.names = append(f.names, name[1])
		}
	}
	return list
}

// linkReadme adds a section to the README, before its license when it has one.
func (d *demo) linkReadme() []Call {
	text := d.texts[d.readme]
	if d.followUp || text == "" {
		return nil
	}
	part := fmt.Sprintf("## Finding your way\n\nWhat is defined where, and what is open: [%s](%s).", path.Base(d.overview), d.overview)
	old, edited := "## License", part+"\n\n## License"
	if strings.Count(text, old) != 1 {
		old = lastLines(text)
		edited = old + "\n\n" + part
	}
	if old == "" || strings.Count(text, old) != 1 {
		return nil
	}
	return []Call{CallJSON("edit", map[string]any{"path": d.readme, "edits": []any{map[string]any{"oldText": old, "newText": edited}}})}
}

func (d *demo) seeLink(results []string) {
	if !d.failedCall("The README", last(results)) {
		d.done = append(d.done, fmt.Sprintf("`%s`: a section that leads there.", d.readme))
	}
}

// lastLines is the end of a text, from a paragraph on that makes it the only such place.
func lastLines(text string) string {
	text = strings.TrimSpace(text)
	for at := len(text); at > 0; {
		at = max(0, strings.LastIndex(text[:at], "\n\n"))
		if end := strings.TrimSpace(text[at:]); strings.Count(text, end) == 1 {
			return end
		}
	}
	return text
}

// nextHelper is the first helper, counted from one that the prompt decides, that is not there yet.
func (d *demo) nextHelper() (p string, h helper, ok bool) {
	s := d.sources()
	if d.language == nil || len(s) == 0 {
		return "", helper{}, false
	}
	dir := path.Dir(s[int(d.seed)%len(s)])
	n := len(d.language.helpers)
	for i := range n {
		h = d.language.helpers[(int(d.seed)+i)%n]
		p = path.Join(dir, h.file+d.language.ext)
		if !slices.Contains(d.files, p) {
			return p, h, true
		}
	}
	return "", helper{}, false
}

var goPackage = regexp.MustCompile(`(?m)^package (\w+)`)

func (d *demo) writeHelper() []Call {
	p, h, ok := d.nextHelper()
	if !ok {
		return nil
	}
	code := h.code
	if d.language.name == "Go" {
		m := goPackage.FindStringSubmatch(d.texts[d.sources()[int(d.seed)%len(d.sources())]])
		if m == nil {
			return nil
		}
		code = fmt.Sprintf(code, m[1])
	}
	return []Call{CallJSON("write", map[string]any{"path": p, "content": code})}
}

func (d *demo) seeHelper(results []string) {
	p, h, _ := d.nextHelper()
	if !d.failedCall("The helper", last(results)) {
		d.done = append(d.done, fmt.Sprintf("`%s`: new; %s. Nothing uses it yet.", p, h.does))
	}
}

func last(results []string) string {
	if len(results) == 0 {
		return ""
	}
	return results[len(results)-1]
}

func argument(c Call, name string) string {
	var fields map[string]any
	if json.Unmarshal([]byte(c.Arguments), &fields) != nil {
		return ""
	}
	s, _ := fields[name].(string)
	return s
}

func pathOf(c Call) string { return argument(c, "path") }

// withoutNotes takes the footer off a text that was read.
func withoutNotes(text string) string {
	if i := strings.LastIndex(text, "\n\n[lines "); i >= 0 {
		return text[:i+1]
	}
	return text
}

var exitNote = regexp.MustCompile(`\[exit code (\d+)`)

// exitOf says how a command ended.
func exitOf(result string) string {
	if strings.HasPrefix(result, "Error (") {
		return "refused"
	}
	if m := exitNote.FindStringSubmatch(result); m != nil {
		return "exit " + m[1]
	}
	return "exit 0"
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
