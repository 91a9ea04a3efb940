// Package redact keeps secrets out of everything that is stored or shown: events, artifacts,
// traces, summaries and pull request texts. A Redactor knows the secrets of this process, in the
// forms in which they tend to leak, and the shapes of common tokens. Text is redacted first and
// cut afterwards; the other way round a cut could leave half a secret that nothing recognises.
//
// The package also cleans terminal output and cuts text at rune boundaries, because every caller
// needs the three together and in that order: Clean, Text, Cut.
package redact

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Mark stands where a secret was.
const Mark = "[redacted]"

// minSecret is the length in bytes below which a value is not taken as a secret: replacing every
// "a" would destroy the text and hide nothing.
const minSecret = 6

// Redactor replaces known secrets and token shapes. It is safe for concurrent use.
type Redactor struct {
	mu       sync.RWMutex
	forms    map[string]time.Time // until when each is secret; zero is for ever
	replacer *strings.Replacer
}

// New makes a Redactor that knows secrets. Values shorter than 6 bytes are ignored.
func New(secrets ...string) *Redactor {
	r := &Redactor{forms: map[string]time.Time{}, replacer: strings.NewReplacer()}
	r.Add(secrets...)
	return r
}

// Add makes more secrets known, from the next call of Text on.
func (r *Redactor) Add(secrets ...string) { r.add(time.Time{}, secrets) }

// AddUntil makes a secret known that is worthless after end, so that it can be forgotten then.
func (r *Redactor) AddUntil(end time.Time, secret string) { r.add(end, []string{secret}) }

func (r *Redactor) add(end time.Time, secrets []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(r.forms, func(_ string, end time.Time) bool { return !end.IsZero() && end.Before(now) })
	for _, s := range secrets {
		for _, form := range forms(strings.TrimSpace(s)) {
			if known, ok := r.forms[form]; !ok || !known.IsZero() {
				r.forms[form] = end
			}
		}
	}
	// Replacer prefers earlier pairs at the same position: the longest form has to win.
	all := make([]string, 0, len(r.forms))
	for form := range r.forms {
		all = append(all, form)
	}
	slices.SortFunc(all, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	pairs := make([]string, 0, 2*len(all))
	for _, form := range all {
		pairs = append(pairs, form, Mark)
	}
	r.replacer = strings.NewReplacer(pairs...)
}

// Text returns s with every known secret and every token shape replaced by Mark, and how many
// there were.
func (r *Redactor) Text(s string) (string, int) {
	r.mu.RLock()
	replacer := r.replacer
	r.mu.RUnlock()

	out := replacer.Replace(s)
	n := 0
	if out != s {
		n = max(1, strings.Count(out, Mark)-strings.Count(s, Mark))
	}
	out, shaped := shapes(out)
	return out, n + shaped
}

// Bytes is Text for bytes. It returns b itself when nothing was found.
func (r *Redactor) Bytes(b []byte) ([]byte, int) {
	out, n := r.Text(string(b))
	if n == 0 {
		return b, 0
	}
	return []byte(out), n
}
