package main

import (
	"fmt"
	"regexp"

	"agent-sandboxing/agent/modeltest"
)

// script is a model that does what a message says: "file NAME" writes that file; "then FAULT" fails in
// the request after it by one of modeltest's faults; "then wait" runs a command of a minute; "then
// publish" asks for the pull request.
type script struct{}

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
		return call("write", map[string]any{"path": name, "content": "written for " + name + "\n"})
	case rounds > 1 || then == "":
		return modeltest.Reply{Text: "Wrote " + name + "."}
	case then == "wait":
		return call("bash", map[string]any{"command": "sleep 60"})
	case then == "publish":
		return call("publish_pull_request", map[string]any{"title": "Add " + name, "body": "As asked."})
	}
	return modeltest.Reply{Text: "This sentence breaks in the middle.", Fault: modeltest.Fault(then)}
}
