package components

import (
	"strconv"
	"strings"
	"time"

	"agent-sandboxing/views/text"
)

// domID is an id that is unique in the page and safe in a selector, whatever the model called the call.
func domID(prefix string, t ToolProps) string {
	call := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || (r >= '0' && r <= '9') || (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z') {
			return r
		}
		return '_'
	}, t.CallID)
	return prefix + "-" + text.ShortID(t.MessageID) + "-" + call
}

// verb is what the agent does, did, or was to do with a tool's object.
func verb(t ToolProps) string {
	running, done, plain := verbs(t.Tool)
	switch {
	case t.State == "running":
		return running
	case t.State == "ok", t.State == "error" && t.Tool == "bash":
		return done
	default:
		return plain
	}
}

func verbs(tool string) (running, done, plain string) {
	switch tool {
	case "read":
		return "Reading", "Read", "Read"
	case "write":
		return "Writing", "Wrote", "Write"
	case "edit":
		return "Editing", "Edited", "Edit"
	case "bash":
		return "Running", "Ran", "Run"
	case "grep":
		return "Searching", "Searched", "Search"
	case "find":
		return "Looking for", "Looked for", "Look for"
	case "ls":
		return "Listing", "Listed", "List"
	case "subagent":
		return "Delegating", "Delegated", "Delegate"
	case "publish_pull_request":
		return "Publishing", "Published", "Publish"
	case "environment_verify":
		return "Verifying the environment", "Verified the environment", "Verify the environment"
	case "run_checks":
		return "Running checks", "Ran checks", "Run checks"
	default:
		return tool, tool, tool
	}
}

func toolIcon(tool string) string {
	switch tool {
	case "read", "write", "edit", "bash", "grep", "find", "ls":
		return tool
	case "subagent":
		return "agent"
	case "publish_pull_request":
		return "pr"
	case "environment_verify", "run_checks":
		return "check"
	default:
		return "commit"
	}
}

// rowClass colours by outcome; a failing command is amber, because the agent reads it and goes on.
func rowClass(t ToolProps) string {
	switch t.State {
	case "running":
		return "row-running"
	case "refused":
		return "row-bad"
	case "error", "interrupted":
		return "row-warn"
	}
	if t.Exit != 0 {
		return "row-warn"
	}
	return ""
}

// rowDetail is the outcome in a word or two.
func rowDetail(t ToolProps) string {
	switch t.State {
	case "refused":
		return "blocked by policy"
	case "cancelled":
		return "cancelled"
	case "interrupted":
		return "interrupted"
	}
	if t.Detail == "" && t.State == "error" {
		return "error"
	}
	return t.Detail
}

func rowDuration(t ToolProps) string {
	if t.State == "running" || t.Duration == 0 {
		return ""
	}
	return text.Elapsed(t.Duration)
}

// isMono says that the object is code rather than a sentence.
func isMono(tool string) bool { return tool != "subagent" && tool != "publish_pull_request" }

// oneLine joins the lines of a command so that a row shows it whole.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// countParts parts "+8 −2" so that each half has its colour.
func countParts(s string) (add, del string, ok bool) {
	add, del, ok = strings.Cut(s, " ")
	return add, del, ok && strings.HasPrefix(add, "+") && strings.HasPrefix(del, "−")
}

func groupDuration(group []ToolProps) string {
	var sum time.Duration
	for _, t := range group {
		sum += t.Duration
	}
	if sum == 0 {
		return ""
	}
	return text.Elapsed(sum)
}

func eventID(sequence int64) string { return "ev-" + strconv.FormatInt(sequence, 10) }
