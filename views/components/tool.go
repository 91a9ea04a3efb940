package components

import (
	"strconv"
	"strings"
	"time"

	"agent-sandboxing/views/text"
)

// verb is what the agent does, or did, with a tool's object.
func verb(t ToolProps) string {
	now := t.State == "running"
	pick := func(running, done string) string {
		if now {
			return running
		}
		return done
	}
	switch t.Tool {
	case "read":
		return pick("Reading", "Read")
	case "write":
		return pick("Writing", "Wrote")
	case "edit":
		return pick("Editing", "Edited")
	case "bash":
		return pick("Running", "Ran")
	case "grep":
		return pick("Searching", "Searched")
	case "find":
		return pick("Looking for", "Looked for")
	case "ls":
		return pick("Listing", "Listed")
	case "subagent":
		return pick("Delegating", "Delegated")
	case "publish_pull_request":
		return pick("Publishing", "Published")
	case "environment_verify":
		return pick("Verifying the environment", "Verified the environment")
	case "run_checks":
		return pick("Running checks", "Ran checks")
	default:
		return t.Tool
	}
}

// attempt is the verb of a call that did not do it.
func attempt(t ToolProps) string {
	switch t.State {
	case "refused", "cancelled", "interrupted":
		t.State = "running"
		return verb(t)
	case "error":
		if t.Tool != "bash" {
			t.State = "running"
		}
		return verb(t)
	default:
		return verb(t)
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
