package main

import (
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
