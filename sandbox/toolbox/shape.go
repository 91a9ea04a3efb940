package toolbox

import "encoding/json"

// maxDepth bounds how deep the values of a result lie in each other. The deepest is a line of a file
// of a search.
const maxDepth = 6

// shape bounds what a result may cost to decode. A few bytes of JSON can ask for many times as much
// memory: an array of empty objects, or of arrays.
type shape struct {
	bytes  int // of JSON
	values int // objects, arrays and commas
}

// decode parses a result into out; false when it is none, or one that nobody asked for.
func (s shape) decode(text []byte, out any) bool {
	return s.fits(text) && json.Unmarshal(text, out) == nil
}

func (s shape) fits(text []byte) bool {
	if len(text) > s.bytes {
		return false
	}
	values, depth := 0, 0
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			values++
		case c == '}' || c == ']':
			depth--
		case c == ',':
			values++
		}
		if values > s.values || depth > maxDepth {
			return false
		}
	}
	return true
}
