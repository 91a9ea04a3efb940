package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"

	"agent-sandboxing/agent/modeltest"
)

// script is a model that does what a message says: "file NAME" writes that file; "then FAULT" fails in
// the request after it by one of modeltest's faults; "then wait" runs a command of a minute; "then
// publish" asks for the pull request; "then leak" says the platform's model key wherever it can.
type script struct{}

// canary is the model key of the product; a model that knows it is the worst case.
const canary = "sk-or-v1-canary0f3b1c5d7e9a2b4c6d8e0f1a2b3c4d5e"

func (script) Name() string { return "faults" }

var order = regexp.MustCompile(`file ([a-z0-9.-]+\.txt)(?: then ([a-z_]+))?`)

// calls are given as base64 of JSON, so that they hold whatever a model could say.
var calls = regexp.MustCompile(`calls ([A-Za-z0-9+/=]{8,})\s*(?:</section[^>]*>\s*)?$`)

// performance is a model's whole turn: one call after the other, then the answer.
type performance struct {
	Calls  []modeltest.Call
	Answer string
}

// perStep is how many calls one answer holds.
const perStep = 6

// message makes the person's message that makes the model perform it.
func (p performance) message() (string, error) {
	text, err := json.Marshal(p)
	return "calls " + base64.StdEncoding.EncodeToString(text), err
}

func performed(encoded string, rounds int) modeltest.Reply {
	var p performance
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	switch {
	case err != nil:
		return modeltest.Reply{Text: "The script cannot be read: " + err.Error()}
	case rounds*perStep < len(p.Calls):
		step := p.Calls[rounds*perStep : min(len(p.Calls), (rounds+1)*perStep)]
		for i := range step {
			step[i].ID = fmt.Sprintf("call_%d_%d", rounds, i)
		}
		return modeltest.Reply{Text: "Next.", Calls: step}
	}
	return modeltest.Reply{Text: p.Answer}
}

func (script) Reply(r modeltest.Request) modeltest.Reply {
	prompt, rounds := "", 0
	for _, m := range r.Messages {
		switch {
		case m.Role == "user":
			prompt, rounds = m.Content, 0
		case m.Role == "assistant" && len(m.ToolCalls) > 0:
			rounds++
		}
	}
	// A message holds the conversation before it; what is asked now comes last.
	if given := calls.FindStringSubmatch(prompt); given != nil {
		return performed(given[1], rounds)
	}
	found := order.FindAllStringSubmatch(prompt, -1)
	if len(found) == 0 {
		return modeltest.Reply{Text: "Nothing to do."}
	}
	name, then := found[len(found)-1][1], found[len(found)-1][2]
	call := func(tool string, arguments map[string]any) modeltest.Reply {
		c := modeltest.CallJSON(tool, arguments)
		c.ID = fmt.Sprintf("call_%d", rounds)
		return modeltest.Reply{Text: "Next.", Calls: []modeltest.Call{c}}
	}
	switch {
	case rounds == 0:
		content := "written for " + name + "\n"
		if then == "leak" {
			content += "key: " + canary + "\n"
		}
		return call("write", map[string]any{"path": name, "content": content})
	case rounds > 1 && then == "leak":
		return modeltest.Reply{Text: "The key is " + canary + "."}
	case rounds > 1 || then == "":
		return modeltest.Reply{Text: "Wrote " + name + "."}
	case then == "wait":
		return call("bash", map[string]any{"command": "sleep 60"})
	case then == "leak":
		return call("bash", map[string]any{"command": "echo " + canary + " && cat leak.txt"})
	case then == "publish":
		return call("publish_pull_request", map[string]any{"title": "Add " + name, "body": "As asked."})
	}
	return modeltest.Reply{Text: "This sentence breaks in the middle.", Fault: modeltest.Fault(then)}
}
