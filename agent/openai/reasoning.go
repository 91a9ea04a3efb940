package openai

import (
	"encoding/json"
	"strings"
)

// maxReasoning bounds what is kept of a model's reasoning, in bytes. Beyond it nothing goes back: a
// signed block that is cut is refused.
const maxReasoning = 1 << 20

// reasoning is a model's thinking while it comes in: as text, and as blocks that the model wants
// back exactly as they were.
type reasoning struct {
	text    strings.Builder
	details []map[string]json.RawMessage
	size    int
}

func (r *reasoning) add(d delta) {
	// Some endpoints send the same text under both names.
	text := contentText(d.ReasoningContent)
	if text == "" {
		text = contentText(d.Reasoning)
	}
	r.size += len(text) + len(d.ReasoningDetails)
	if r.size > maxReasoning {
		return
	}
	r.text.WriteString(text)
	var pieces []map[string]json.RawMessage
	if json.Unmarshal(d.ReasoningDetails, &pieces) != nil {
		return
	}
	for _, piece := range pieces {
		if piece == nil {
			continue
		}
		if last := len(r.details) - 1; last >= 0 && continues(r.details[last], piece) {
			join(r.details[last], piece)
		} else {
			r.details = append(r.details, piece)
		}
	}
}

// continues: both are pieces of one text. Other kinds of block come whole.
func continues(block, piece map[string]json.RawMessage) bool {
	for _, key := range []string{"type", "index"} {
		if string(block[key]) != string(piece[key]) {
			return false
		}
	}
	if isSet(block["id"]) && isSet(piece["id"]) && string(block["id"]) != string(piece["id"]) {
		return false
	}
	kind := contentText(piece["type"])
	return kind == "reasoning.text" || kind == "reasoning.summary"
}

// join adds the text of piece to block, and what else it brings, such as the signature at the end.
func join(block, piece map[string]json.RawMessage) {
	for key, value := range piece {
		if key != "text" && key != "summary" {
			if isSet(value) {
				block[key] = value
			}
			continue
		}
		if more := contentText(value); more != "" {
			// A string always has a JSON form.
			block[key], _ = json.Marshal(contentText(block[key]) + more)
		}
	}
}

// whole is what the message keeps.
func (r *reasoning) whole(replay Replay) json.RawMessage {
	if r.size > maxReasoning {
		return nil
	}
	switch {
	case replay == ReplayDetails && len(r.details) > 0:
		// Maps of JSON texts have a JSON form.
		whole, _ := json.Marshal(r.details)
		return whole
	case replay == ReplayContent && r.text.Len() > 0:
		whole, _ := json.Marshal(r.text.String())
		return whole
	}
	return nil
}
