package publish

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"agent-sandboxing/core/redact"
)

// words are the text in our block above the list of files. A person stands behind them when one sent
// the form or changed them on GitHub: then the agent leaves them and the title as they are.
type words struct {
	text   string
	person bool
	sum    string // of the text as we wrote it last, "" for words that were never written
}

// wordsMark ends the words in our block and says who wrote them; the sum shows a later change.
var wordsMark = regexp.MustCompile(`<!-- agent-session:words (person|agent) ([0-9a-f]{12}) -->`)

func (w words) mark() string {
	author := "agent"
	if w.person {
		author = "person"
	}
	return fmt.Sprintf("<!-- agent-session:words %s %s -->", author, sumOf(w.text))
}

// sumOf ignores how a browser's form ends lines.
func sumOf(text string) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(ownText(text))))
	return hex.EncodeToString(sum[:6])
}

// readWords finds the words in our block of a pull request's text; ok is false without a block that
// says whose they are.
func readWords(body string) (w words, ok bool) {
	_, block, found := strings.Cut(body, beginMark)
	if !found {
		return words{}, false
	}
	block, _, _ = strings.Cut(block, endMark)
	at := wordsMark.FindStringSubmatchIndex(block)
	if at == nil {
		return words{}, false
	}
	w.text = strings.TrimSpace(strings.ReplaceAll(block[:at[0]], "\r\n", "\n"))
	w.sum = block[at[4]:at[5]]
	w.person = block[at[2]:at[3]] == "person" || sumOf(w.text) != w.sum
	return w, true
}

// asked are the words of this attempt.
func (a *attempt) asked() words {
	w := words{person: a.p.MessageID == ""}
	w.text = strings.TrimSpace(voice(w.person)(a.redact(a.p.Body)))
	return w
}

// voice is what may stand in a text: everything that a person wrote, of the agent's only what is harmless.
func voice(person bool) func(string) string {
	if person {
		return ownText
	}
	return cleanText
}

// words chooses what stands above the list in the place of existing: what was asked for, unless
// nothing new was, or the agent would take away what a person wrote.
func (a *attempt) words(existing string) words {
	asked := a.asked()
	standing, ok := readWords(existing)
	switch {
	case ok && sumOf(asked.text) == standing.sum:
		standing.person = standing.person || asked.person
		return standing
	case ok && standing.person && !asked.person:
		return standing
	}
	return asked
}

// cut shortens the words to limit bytes.
func (w words) cut(limit int) words {
	w.text = redact.Cut(w.text, limit)
	return w
}
