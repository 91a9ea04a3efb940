package bashpolicy

// effort bounds what judging one text may take. A launcher may stand behind a launcher, which of its words
// is the program is not always known, and a text may hold another: a line judged in every way that it can be
// read would take for ever.
type effort struct {
	left int // bytes that may still be read again
}

// Each byte of a text may be read again so often; a short one has some room besides.
const (
	readsPerByte = 32
	readsBesides = 4 << 10
)

func newEffort(src string) *effort {
	return &effort{left: readsPerByte*len(src) + readsBesides}
}

// take is asked before words or a text of n bytes are judged once more.
func (e *effort) take(n int) *Refusal {
	if e.left -= n; e.left >= 0 {
		return nil
	}
	return refuse("nesting_too_deep", "Too many commands start others in this one. Run the last of them itself, or make separate calls.")
}

// bytesOf is about as long as words were written.
func bytesOf(words []word) int {
	n := len(words)
	for _, w := range words {
		n += len(w.text)
	}
	return n
}
