package modeltest

import (
	"fmt"
	"strings"
)

// report is the last answer: what the results have shown, and no more.
func (d *demo) report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "I looked through %s", count(len(d.files), "file"))
	if d.language != nil {
		fmt.Fprintf(&b, ", mostly %s", d.language.name)
	}
	fmt.Fprintf(&b, ", with your request in mind: “%s”.\n\n", oneLine(d.prompt, 160))
	if len(d.done) > 0 {
		b.WriteString("**Done**\n\n")
		for _, line := range d.done {
			b.WriteString("- " + line + "\n")
		}
		b.WriteString("\n")
	}
	if len(d.failed) > 0 {
		b.WriteString("**Not done**\n\n")
		for _, line := range d.failed {
			b.WriteString("- " + line + "\n")
		}
		b.WriteString("\n")
	}
	if !d.tested {
		b.WriteString("**Not verified:** no tests were run.\n\n")
	}
	b.WriteString("> This answer comes from the *scripted demo model*, not from a language model: it really used the tools and " +
		"really changed the files above, but it does not understand the request. Set `OPENROUTER_API_KEY` to work with a real one.")
	return b.String()
}
