package tools

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"agent-sandboxing/agent"
)

// arguments reads the fields of a call. It takes what models send in place of what was asked for:
// the field names of other tools, numbers and booleans as strings, a list as a string of JSON.
// Fields that are not known are ignored, and it is known which. Problems are collected and answered
// together.
type arguments struct {
	fields   map[string]json.RawMessage
	asked    map[string]bool
	unknown  []string // of lists inside
	problems []string
}

func parse(raw json.RawMessage) *arguments {
	a := &arguments{asked: map[string]bool{}}
	if err := json.Unmarshal(raw, &a.fields); err != nil {
		a.fields = nil
	}
	return a
}

// get finds a field under any of its names; null is absent.
func (a *arguments) get(names ...string) json.RawMessage {
	for _, name := range names {
		a.asked[name] = true
		if raw, ok := a.fields[name]; ok && string(raw) != "null" {
			return raw
		}
	}
	return nil
}

// need is text that must be there, under the first name or an alias.
func (a *arguments) need(names ...string) string {
	if a.get(names...) == nil {
		a.problems = append(a.problems, names[0]+" is missing")
		return ""
	}
	return a.text(names...)
}

// text is text that may be absent.
func (a *arguments) text(names ...string) string {
	raw := a.get(names...)
	if raw == nil {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var scalar any
	if json.Unmarshal(raw, &scalar) == nil {
		switch scalar.(type) {
		case float64, bool:
			return string(raw)
		}
	}
	a.problems = append(a.problems, names[0]+" must be text")
	return ""
}

// number is an integer between low and high, or fallback when it is absent.
func (a *arguments) number(name string, low, high, fallback int) int {
	raw := a.get(name)
	if raw == nil {
		return fallback
	}
	f, err := strconv.ParseFloat(strings.Trim(string(raw), `" `), 64)
	n := int(f)
	if err != nil || float64(n) != f || n < low || n > high {
		a.problems = append(a.problems, fmt.Sprintf("%s must be a whole number from %d to %d", name, low, high))
		return fallback
	}
	return n
}

// flag is true or false, also as a string; absent is false.
func (a *arguments) flag(names ...string) bool {
	raw := a.get(names...)
	if raw == nil {
		return false
	}
	b, err := strconv.ParseBool(strings.ToLower(strings.Trim(string(raw), `" `)))
	if err != nil {
		a.problems = append(a.problems, names[0]+" must be true or false")
	}
	return b
}

// path reads the path field. Without one it is fallback; "" as fallback means that it must be there.
func (a *arguments) path(fallback string) string {
	if p := a.text("path", "file_path", "filePath", "filename"); p != "" {
		return p
	}
	if fallback == "" {
		a.problems = append(a.problems, "path is missing")
	}
	return fallback
}

// ignored are the fields that nobody asked for, sorted.
func (a *arguments) ignored() []string {
	names := slices.Clone(a.unknown)
	for name := range a.fields {
		if !a.asked[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// failed is the answer to arguments that cannot be used, nil when they can.
func (a *arguments) failed() *agent.Result {
	if len(a.problems) == 0 {
		return nil
	}
	r := agent.Failed("invalid_arguments", "%s. Correct the call and send it again.", strings.Join(a.problems, "; "))
	return &r
}
