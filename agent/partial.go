package agent

import (
	"strings"
	"time"
	"unicode"

	"agent-sandboxing/core"
	"agent-sandboxing/core/redact"
)

const (
	partialEvery = 100 * time.Millisecond
	// holdBack bounds the unfinished last word, in bytes. Until it is whole a secret in it cannot be
	// recognised, so it is not shown.
	holdBack = 256
	// maxEarlier is what is kept of earlier responses of the turn, in bytes: all of it is written and
	// sent again and again while the answer grows.
	maxEarlier = 256 << 10
)

// partial is the answer while it grows: everything that the model has said in this turn. It shows
// redacted text only, at most every 100 ms.
type partial struct {
	rec    core.TurnRecorder
	redact *redact.Redactor
	now    func() time.Time
	text   strings.Builder
	last   time.Time
}

// begin starts the text of another response. Of very long earlier ones the end is kept, from a line on.
func (p *partial) begin() {
	s := p.text.String()
	if len(s) > maxEarlier {
		_, rest, _ := strings.Cut(redact.Tail(s, maxEarlier), "\n")
		p.text.Reset()
		p.text.WriteString("[…]\n\n" + rest)
	}
	if s != "" && !strings.HasSuffix(s, "\n\n") {
		p.text.WriteString("\n\n")
	}
}

func (p *partial) add(delta string) {
	p.text.WriteString(delta)
	if now := p.now(); now.Sub(p.last) >= partialEvery {
		p.last = now
		p.show(wholeWords(p.text.String()))
	}
}

// flush shows all of it. Nothing follows, or what follows is another word.
func (p *partial) flush() {
	if s := strings.TrimSpace(p.text.String()); s != "" {
		p.show(s)
	}
}

func (p *partial) show(s string) {
	s, _ = p.redact.Text(redact.Clean(s))
	p.rec.Partial(s)
}

// wholeWords cuts s before its last word, which may still grow. A very long one is shown up to its
// last bytes.
func wholeWords(s string) string {
	tail := redact.Tail(s, holdBack)
	if i := strings.LastIndexFunc(tail, unicode.IsSpace); i >= 0 {
		return s[:len(s)-len(tail)+i]
	}
	return s[:len(s)-len(tail)]
}
