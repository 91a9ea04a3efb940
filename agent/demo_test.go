package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"agent-sandboxing/agent"
	"agent-sandboxing/agent/modeltest"
	"agent-sandboxing/core"
)

// smallRepositories stand for what people try the demo on.
func smallRepositories() map[string]map[string]string {
	return map[string]map[string]string{
		"go": {
			"README.md": "# Links\n\nFinds links.\n\n## License\n\nMIT\n", "go.mod": "module example.org/links\n",
			"internal/markdown/link.go": "// Package markdown finds links.\npackage markdown\n\n// TODO: images\n\n// Links finds links.\nfunc Links(text string) []string { return nil }\n",
			"main.go":                   "package main\n\nfunc main() {}\n", "main_test.go": "package main\n", "docs/usage.md": "# Usage\n",
		},
		"python": {
			"README.md": "# Stock\n\nSays what to order.\n", "stock/__init__.py": "",
			"stock/reorder.py": "def plan(items):\n    orders = []\n    for item in items:\n        if item.is_low:\n            needed = item.target - item.quantity\n" +
				"            # One package too many when the need is an exact multiple of the pack.\n            orders.append(Order(item, needed // item.pack + 1))\n    return orders\n",
			"tests/test_reorder.py": "import unittest\n",
		},
		"typescript":   {"README.md": "# Labels\n\nPrice labels.\n", "package.json": "{}\n", "src/money.ts": "export interface Money {\n  cents: number;\n}\n\nexport function format(money: Money): string {\n  return String(money.cents);\n}\n"},
		"notes":        {"README.md": "# Notes\n\nOne file a book.\n", "index.sh": "#!/bin/sh\nset -eu\n", "notes/tides.md": "# Tides\n\nTODO: why one tide a day?\n"},
		"no readme":    {"style.css": "body { margin: 0; }\n", "index.html": "<p>Hello</p>\n"},
		"no code":      {"README.md": "# Plans\n\nNothing yet.\n"},
		"nothing":      {},
		"odd contents": {"README.md": "# A\n\nsame\n\nsame\n", "sp ace.py": "def f(): pass\n", "Ünïcode.py": "def g(): pass\n"},
	}
}

func TestDemo_DoesVisibleWorkOnAnyRepository(t *testing.T) {
	t.Parallel()
	for name, files := range smallRepositories() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, modeltest.Demo(), agent.Limits{}, files)
			first, err := b.run(t.Context(), "Describe how links and orders are handled, then publish")
			if err != nil {
				t.Fatal(err)
			}
			if first.Model != modeltest.DemoModel || !strings.Contains(first.Answer, "scripted demo model") || !strings.Contains(strings.ToLower(first.Answer), "overview.md") {
				t.Errorf("model %q, answer %q", first.Model, first.Answer)
			}
			results := strings.Join(b.rec.results(), "\n")
			for _, want := range []string{"ls ok", "find ok", "subagent ok 2 steps", "bash ok exit ", "write ok", "publish_pull_request ok"} {
				if !strings.Contains(results, want) {
					t.Errorf("no %q in\n%s", want, results)
				}
			}
			if strings.Contains(results, " error ") || strings.Contains(results, " refused ") {
				t.Errorf("the script ran into errors:\n%s", results)
			}
			if len(b.publisher.titles) != 1 {
				t.Errorf("published %d times", len(b.publisher.titles))
			}

			// The second message of a session has something new to show.
			writes := func() int {
				s := strings.Join(b.rec.results(), "\n")
				return strings.Count(s, "edit ok") + strings.Count(s, "write ok")
			}
			before := writes()
			if _, err := b.run(t.Context(), "And what about the tests?"); err != nil {
				t.Fatal(err)
			}
			if after := writes(); after <= before {
				t.Errorf("the second message changed nothing:\n%s", strings.Join(b.rec.results(), "\n"))
			}
		})
	}
}

func TestDemo_RepairsWhatARepositoryCallsOpen(t *testing.T) {
	t.Parallel()
	b := setup(t, modeltest.Demo(), agent.Limits{}, smallRepositories()["python"])
	if _, err := b.run(t.Context(), "Look around"); err != nil {
		t.Fatal(err)
	}
	if text := b.file(t, "stock/reorder.py"); !strings.Contains(text, "packages = -(-needed // item.pack)") || strings.Contains(text, "too many") {
		t.Errorf("reorder.py is\n%s", text)
	}
}

func TestDemo_WordsSteerIt(t *testing.T) {
	t.Parallel()
	files := smallRepositories()["python"]
	t.Run("fail", func(t *testing.T) {
		t.Parallel()
		b := setup(t, modeltest.Demo(), agent.Limits{}, files)
		_, err := b.run(t.Context(), "Please fail")
		if core.CodeOf(err) != core.CodeModelUnavailable || len(b.rec.results()) == 0 {
			t.Errorf("%v after %q", err, b.rec.results())
		}
	})
	for _, prompt := range []string{"Fix the failing tests", "Fix the tests that fail, please", "Which tests\nfail after the change?"} {
		t.Run("no fail in "+prompt, func(t *testing.T) {
			t.Parallel()
			b := setup(t, modeltest.Demo(), agent.Limits{}, files)
			if _, err := b.run(t.Context(), prompt); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("test", func(t *testing.T) {
		t.Parallel()
		b := setup(t, modeltest.Demo(), agent.Limits{}, files)
		got, err := b.run(t.Context(), "Run the tests")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(b.rec.results(), "\n"), "bash refused test_runner_not_allowed") || !strings.Contains(got.Answer, "Not done") {
			t.Errorf("%q, answer %q", b.rec.results(), got.Answer)
		}
	})
	t.Run("endless", func(t *testing.T) {
		t.Parallel()
		b := setup(t, modeltest.Demo(), agent.Limits{Steps: 25}, files)
		got, err := b.run(t.Context(), "An endless task")
		if core.CodeOf(err) != core.CodeLimitReached || got.Steps != 25 {
			t.Errorf("%v after %d steps", err, got.Steps)
		}
		if s := strings.Join(b.rec.results(), "\n"); !strings.Contains(s, "write ok") {
			t.Errorf("it changed nothing before the limit:\n%s", s)
		}
	})
	t.Run("no publish", func(t *testing.T) {
		t.Parallel()
		b := setup(t, modeltest.Demo(), agent.Limits{}, files)
		if _, err := b.run(t.Context(), "Look around"); err != nil || len(b.publisher.titles) > 0 {
			t.Errorf("%v, published %d times", err, len(b.publisher.titles))
		}
	})
	t.Run("slow can be cancelled", func(t *testing.T) {
		t.Parallel()
		b := setup(t, modeltest.Demo(), agent.Limits{}, files)
		ctx, cancel := context.WithCancelCause(t.Context())
		b.rec.onCall = func(e core.AgentToolCall) {
			if e.Tool == "bash" {
				cancel(core.ErrCancelledByUser)
			}
		}
		if _, err := b.run(ctx, "Take it slow"); !errors.Is(err, core.ErrCancelledByUser) {
			t.Errorf("got %v", err)
		}
	})
}
