package openai

import (
	"encoding/json"
	"maps"
	"strings"
)

// maxReasoning bounds what is kept of a model's reasoning, in bytes. Beyond it nothing goes back: a
// signed block that is cut is refused.
const maxReasoning = 1 << 20

// reasoning is a model's thinking while it comes in: as text, and as blocks that the model wants
// back exactly as they were.
type reasoning struct {
	text   strings.Builder
	blocks []*block
	size   int
}

// block is one of reasoning_details. What comes in pieces, its text or summary, is kept apart from the rest.
type block struct {
	fields map[string]json.RawMessage
	texts  map[string]*strings.Builder
}

func (r *reasoning) add(d delta) {
	// Some endpoints send the same text under both names.
	text := contentText(d.ReasoningContent)
	if text == "" {
		text = contentText(d.Reasoning)
	}
	var pieces []map[string]json.RawMessage
	_ = json.Unmarshal(d.ReasoningDetails, &pieces) // what is no list of blocks is none
	r.size += len(text)
	for _, piece := range pieces {
		if r.size > maxReasoning {
			break
		}
		if piece == nil {
			continue
		}
		last := len(r.blocks) - 1
		if last < 0 || !r.blocks[last].goesOn(piece) {
			r.blocks = append(r.blocks, &block{fields: map[string]json.RawMessage{}, texts: map[string]*strings.Builder{}})
			last++
		}
		r.size += r.blocks[last].join(piece)
	}
	if r.size <= maxReasoning {
		r.text.WriteString(text)
	}
}

// goesOn says that piece belongs to the same text as b. Other kinds of block come whole.
func (b *block) goesOn(piece map[string]json.RawMessage) bool {
	for _, key := range []string{"type", "index"} {
		if string(b.fields[key]) != string(piece[key]) {
			return false
		}
	}
	if isSet(b.fields["id"]) && isSet(piece["id"]) && string(b.fields["id"]) != string(piece["id"]) {
		return false
	}
	kind := contentText(piece["type"])
	return kind == "reasoning.text" || kind == "reasoning.summary"
}

// join adds the text of piece to b, and what else it brings, such as the signature at the end. It returns
// how many bytes more are kept.
func (b *block) join(piece map[string]json.RawMessage) int {
	size := 0
	for key, value := range piece {
		var text string
		isText := (key == "text" || key == "summary") && isSet(value) && json.Unmarshal(value, &text) == nil
		switch before, known := b.fields[key]; {
		case isText:
			if b.texts[key] == nil {
				b.texts[key] = &strings.Builder{}
			}
			b.texts[key].WriteString(text)
			size += len(text)
		case !known, isSet(value) && string(value) != string(before):
			b.fields[key] = value
			size += len(key) + len(value)
		}
	}
	return size
}

// whole is b as one block.
func (b *block) whole() map[string]json.RawMessage {
	fields := maps.Clone(b.fields)
	for key, text := range b.texts {
		fields[key], _ = json.Marshal(text.String()) // a string always has a JSON form
	}
	return fields
}

// whole is what the message keeps.
func (r *reasoning) whole(replay Replay) json.RawMessage {
	var out json.RawMessage
	switch {
	case r.size > maxReasoning:
	case replay == ReplayDetails && len(r.blocks) > 0:
		blocks := make([]map[string]json.RawMessage, len(r.blocks))
		for i, b := range r.blocks {
			blocks[i] = b.whole()
		}
		out, _ = json.Marshal(blocks) // maps of JSON texts have a JSON form
	case replay == ReplayContent && r.text.Len() > 0:
		out, _ = json.Marshal(r.text.String())
	}
	return out
}
