package tools

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"agent-sandboxing/agent"
	"agent-sandboxing/core"
)

func TestSubagent(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 20_001)
	tests := map[string]struct {
		args   string
		report agent.Report
		want   string
		detail string
	}{
		"report":    {`{"task":"Where?"}`, agent.Report{Text: "In a.go:1.", Steps: 9}, "In a.go:1.\n\n[subagent: 9 steps]", "9 steps"},
		"other key": {`{"prompt":"Where?"}`, agent.Report{Text: "There.", Steps: 1}, "There.\n\n[subagent: 1 step]", "1 step"},
		"too long": {
			`{"task":"Where?"}`,
			agent.Report{Text: long, Steps: 2},
			long[:40_000] + "\n[The report had 20001 characters; the rest is left out.]\n\n[subagent: 2 steps]", "2 steps",
		},
		"limit": {
			`{"task":"Where?"}`,
			agent.Report{Text: "So far: b.go.", Steps: 20, Failure: "reached 20 steps."},
			"Error (subagent_failed): reached 20 steps. Ask a smaller question, or look yourself.\nThe last that it said:\nSo far: b.go.", "20 steps",
		},
		"no task":    {`{}`, agent.Report{}, "Error (invalid_arguments): task is missing. Correct the call and send it again.", "invalid_arguments"},
		"empty task": {`{"task":"  "}`, agent.Report{}, "Error (invalid_arguments): task must have 1 to 4000 characters. Send the call again with such a task.", "invalid_arguments"},
		"long task":  {`{"task":"` + strings.Repeat("x", 4001) + `"}`, agent.Report{}, "Error (invalid_arguments): task must have 1 to 4000 characters. Send the call again with such a task.", "invalid_arguments"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool := called{tool: &subagentTool{investigate: func(_ context.Context, task string) (agent.Report, error) {
				if task != "Where?" {
					t.Errorf("task %q", task)
				}
				return test.report, nil
			}}}
			got, err := tool.Run(t.Context(), json.RawMessage(test.args))
			if err != nil || got.Text != test.want || got.Detail != test.detail {
				t.Errorf("%v, detail %q, text %q", err, got.Detail, got.Text)
			}
		})
	}
	tool := called{tool: &subagentTool{investigate: func(context.Context, string) (agent.Report, error) {
		return agent.Report{}, core.ErrLeaseLost
	}}}
	if _, err := tool.Run(t.Context(), json.RawMessage(`{"task":"x"}`)); !errors.Is(err, core.ErrLeaseLost) {
		t.Errorf("got %v", err)
	}
	if got := tool.Object(json.RawMessage(`{"task":"Find\n it"}`)); got != "Find it" {
		t.Errorf("object %q", got)
	}
}
