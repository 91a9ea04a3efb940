package openai

import "encoding/json"

// minimalSchema leaves of a JSON Schema what every endpoint bears. The limits that are lost are
// checked in code anyway.
func minimalSchema(raw json.RawMessage) (json.RawMessage, error) {
	var schema map[string]json.RawMessage
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, err
	}
	out := map[string]json.RawMessage{}
	for _, key := range []string{"type", "required", "description"} {
		if value, ok := schema[key]; ok {
			out[key] = value
		}
	}
	if raw, ok := schema["items"]; ok {
		items, err := minimalSchema(raw)
		if err != nil {
			return nil, err
		}
		out["items"] = items
	}
	if raw, ok := schema["properties"]; ok {
		var properties map[string]json.RawMessage
		if err := json.Unmarshal(raw, &properties); err != nil {
			return nil, err
		}
		for name, property := range properties {
			small, err := minimalSchema(property)
			if err != nil {
				return nil, err
			}
			properties[name] = small
		}
		small, err := json.Marshal(properties)
		if err != nil {
			return nil, err
		}
		out["properties"] = small
	}
	return json.Marshal(out)
}
