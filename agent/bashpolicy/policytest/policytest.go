// Package policytest reads the corpus of the shell policy, for tests that judge or run its lines.
package policytest

import (
	"os"
	"strings"
	"testing"

	"agent-sandboxing/core"
)

// Line is one command of the corpus. Of allow.txt, Rule is the rule whose refusals the command is nearly
// identical to, "" for none; of deny.txt, the rule that refuses it.
type Line struct {
	Policy  core.BashPolicy
	Rule    string
	Command string
}

// Read reads a corpus file: a line each, "@policy" before the lines of a policy, "rule<TAB>" before a
// command, # for comments, ⏎ for a newline in a command.
func Read(t testing.TB, path string) []Line {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	policy := core.PolicySeed
	var lines []Line
	for text := range strings.Lines(string(data)) {
		text = strings.TrimSuffix(text, "\n")
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		if name, ok := strings.CutPrefix(text, "@"); ok {
			policy = core.BashPolicy(name)
			continue
		}
		rule, command, ok := strings.Cut(text, "\t")
		if !ok {
			rule, command = "", text
		}
		lines = append(lines, Line{Policy: policy, Rule: rule, Command: strings.ReplaceAll(command, "⏎", "\n")})
	}
	return lines
}
