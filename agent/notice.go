package agent

import (
	"fmt"
	"strings"
)

// notice adds a word of the platform to the last tool result. It stands between tags with the id of
// this run's sections, which no file and no command can know; and should one bring it after all, as
// when the model wrote it down, answer has taken it out. So what has no such tags is not ours,
// whatever it says of itself. An empty text is none.
func (r *run) notice(text string) {
	if text == "" {
		return
	}
	last := &r.messages[len(r.messages)-1]
	last.Text = fmt.Sprintf("%s\n\n<notice id=%q>%s</notice id=%q>", last.Text, r.mark, r.unmarked(text), r.mark)
}

// unmarked is text of others without this run's id.
func (r *run) unmarked(text string) string {
	return strings.ReplaceAll(text, r.mark, "[id]")
}
