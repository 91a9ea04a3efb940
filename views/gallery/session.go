package gallery

import (
	"time"

	"agent-sandboxing/views/components"
	"agent-sandboxing/views/layout"
	"agent-sandboxing/views/link"
	"agent-sandboxing/views/markdown"
	"agent-sandboxing/views/pages"
)

// stage is how far the sample session has come.
type stage int

const (
	preparing stage = iota
	working
	done
	failed
	limited
)

const answer = `The parts of a split posting were each rounded **up**, so two halves of 10.01 became 5.01 twice.

### What changed
1. ` + "`Split`" + ` now rounds half to even and gives what is left to the last part.
2. A table test covers amounts that do not divide, with the old case first.

` + "```go" + `
// Split divides an amount so that the parts add up to it again.
func Split(amount int64, parts int) []int64 {
	out := make([]int64, parts)
	for i := range out {
		out[i] = amount / int64(parts) // the rest goes last
	}
	return out
}
` + "```" + `

The importer calls the same function; see [the discussion of banker's rounding](https://example.org/rounding).

| Case | Before | After |
|---|---|---|
| 10.01 / 2 | 5.01, 5.01 | 5.00, 5.01 |
| 0.01 / 3 | 0.01, 0.01, 0.01 | 0.00, 0.00, 0.01 |
`

func session(l layout.Props, s stage) pages.SessionProps {
	now := l.Now
	p := pages.SessionProps{
		Layout:   l,
		Stream:   components.StreamProps{URL: "/chat-sessions/" + id(1) + "/stream?after=42", Sequence: 42, LoginURL: "/login"},
		Composer: components.ComposerProps{SessionID: id(1), ClientKey: "0197c1d2-0000-7000-8000-000000000003", MaxBytes: 48 << 10, Model: "scripted demo model", Active: s == working || s == preparing},
		Details: components.DetailsProps{
			SessionID: id(1), Branch: "agent/" + id(1), BaseBranch: "main", BaseSHA: "3f2c1ab9d04e77c1b2a3948576aa0011bbcc2233",
			Policy: "seed", Model: "scripted demo model", Sandbox: "ready", SandboxInfo: "runc · generation 1", Usage: "41.2k in · 3.1k out",
			CreatedAt: now.Add(-9 * time.Minute), Now: now, EventsURL: "/chat-sessions/" + id(1) + "/events", CanStop: true, CanArchive: true,
		},
		Recent: []pages.RecentProps{
			{ID: id(1), Title: "Fix the rounding of half cents in split postings", State: stateOf(s), Here: true},
			{ID: id(2), Title: "Add a --json flag to the forecast command", State: "review"},
			{ID: id(3), Title: "Return 409 instead of 500 when a todo exists", State: "completed"},
			{ID: id(5), Title: "Explain how the importer deduplicates rows", State: "failed"},
		},
	}
	p.Head = components.HeadProps{
		SessionID: id(1), Title: "Fix the rounding of half cents in split postings", Repository: "octo-org/ledger", RepositoryURL: "https://github.com/octo-org/ledger",
		BaseBranch: "main", BaseSHA: "3f2c1ab9d04e77c1b2a3948576aa0011bbcc2233", Branch: "agent/" + id(1), Sandbox: "ready", CanRename: true,
	}
	p.Turns, p.Status = turns(now, s), status(now, s)
	p.Provision = provision(now, s)
	p.PullRequest = components.PullRequestProps{SessionID: id(1), Now: now}
	p.Changes = components.ChangesProps{SessionID: id(1), Now: now}
	p.Network = components.NetworkProps{SessionID: id(1), Mode: "open", Now: now, ListURL: "/installations/11/repositories/21/network"}
	if s == working {
		p.Queue = components.QueueProps{SessionID: id(1), Messages: []components.QueuedProps{{MessageID: id(4), Text: "Then add a line to the changelog."}}}
	}
	if s == done {
		p.Network = network(now)
		p.Head.CanPublish, p.Head.Files, p.Head.Additions, p.Head.Deletions = true, 4, 61, 9
		pull := components.PullRequestProps{
			SessionID: id(1), Number: 41, URL: "https://github.com/octo-org/ledger/pull/41", State: "open", Title: "Round half cents to even when a posting is split",
			HeadSHA: "77aa01c9d04e77c1b2a3948576aa0011bbcc2233", UpdatedAt: now.Add(-2 * time.Minute), Now: now, CanPublish: true, Update: true, Draft: true, Base: "main", Behind: 2,
			Outcome: "Pull request #41 is open.", LeftOut: []string{"dist/bundle.bin"},
		}
		p.Head.PullRequest, p.PullRequest = &pull, pull
		p.Changes = components.ChangesProps{
			SessionID: id(1), DiffURL: "/chat-sessions/" + id(1) + "/diffs/latest", Files: changed(), Total: 4, Additions: 61, Deletions: 9, CapturedAt: now.Add(-time.Minute), Now: now,
		}
		p.Artifacts = []components.ArtifactProps{{ID: id(9), URL: "/chat-sessions/" + id(1) + "/artifacts/" + id(9), Name: "go test ./...", Kind: "tool output", Size: 48123}}
	}
	return p
}

// closedPull is a publish that found its pull request closed.
func closedPull(p pages.SessionProps) pages.SessionProps {
	pr := p.PullRequest
	pr.State, pr.Draft, pr.Behind, pr.Outcome, pr.LeftOut = "closed", false, 0, "", nil
	pr.Failure = &components.FailureProps{
		Title: "The pull request was not published", Code: "pull_request_closed",
		Message: "Pull request #41 was closed without being merged. Open it again, or open a new one that refers to it.",
		Safe:    "Nothing was overwritten, and the work tree is kept.",
		Choices: []components.ChoiceProps{{URL: link.PublishAgain(id(1), id(7)), Value: "reopen", Label: "Open it again and publish"}, {URL: link.PublishAgain(id(1), id(7)), Value: "new", Label: "Open a new pull request"}},
	}
	p.PullRequest, p.Head.PullRequest, p.Tab = pr, &pr, "changes"
	return p
}

func narrowChanges(p pages.SessionProps) pages.SessionProps {
	p.Tab = "changes"
	return p
}

func stateOf(s stage) string {
	return []string{"preparing", "working", "review", "failed", "failed"}[s]
}

func status(now time.Time, s stage) components.StatusProps {
	switch s {
	case preparing:
		return components.StatusProps{SessionID: id(1), State: "preparing", Label: "Preparing the sandbox", StartedAt: now.Add(-3 * time.Second), Now: now, CanCancel: true}
	case working:
		return components.StatusProps{SessionID: id(1), State: "working", Label: "Working", Detail: "9 actions", StartedAt: now.Add(-134 * time.Second), Now: now, CanCancel: true}
	case failed, limited:
		return components.StatusProps{SessionID: id(1), State: "failed", Label: "The last turn failed", Now: now}
	default:
		return components.StatusProps{SessionID: id(1), State: "completed", Label: "Done", Detail: "4 files changed", Now: now}
	}
}

func provision(now time.Time, s stage) components.ProvisionProps {
	p := components.ProvisionProps{Shown: true, Steps: []components.StepProps{
		{Name: "Create sandbox", State: "done", Duration: 412 * time.Millisecond},
		{Name: "Clone", State: "done", Detail: "octo-org/ledger", Duration: 1300 * time.Millisecond},
		{Name: "Check out", State: "running", Detail: "main @ 3f2c1ab", StartedAt: now.Add(-time.Second)},
		{Name: "Prepare branch", State: "waiting", Detail: "agent/…3d4e5f1"},
	}}
	if s != preparing {
		p.Done, p.Summary = true, "Sandbox ready in 2.1 s"
		p.Steps[2].State, p.Steps[2].Duration = "done", 380*time.Millisecond
		p.Steps[3].State, p.Steps[3].Duration = "done", 24*time.Millisecond
	}
	return p
}

func changed() []components.FileProps {
	url := "/chat-sessions/" + id(1) + "/diffs/" + id(8) + "#file-"
	return []components.FileProps{
		{Path: "internal/posting/split.go", Status: "modified", Additions: 18, Deletions: 7, URL: url + "0"},
		{Path: "internal/posting/split_test.go", Status: "added", Additions: 41, URL: url + "1"},
		{Path: "docs/rounding.md", OldPath: "docs/round.md", Status: "renamed", Additions: 2, Deletions: 2, URL: url + "2"},
		{Path: "testdata/a/rather/long/way/down/to/a/fixture/that/is/binary.bin", Status: "added", Binary: true, URL: url + "3"},
	}
}

func turns(now time.Time, s stage) []components.TurnProps {
	first := components.TurnProps{
		SessionID: id(1), MessageID: id(1), Author: "octo-dev", CreatedAt: now.Add(-5 * time.Minute), Now: now, State: "completed",
		Text:      "The half-cent test fails on the first of the month.\nFind out why, and fix it.",
		StartedAt: now.Add(-5 * time.Minute), FinishedAt: now.Add(-108 * time.Second),
	}
	switch s {
	case preparing:
		first.State, first.StartedAt, first.FinishedAt = "preparing", time.Time{}, time.Time{}
		return []components.TurnProps{first}
	case working:
		first.State, first.FinishedAt = "working", time.Time{}
		first.StartedAt = now.Add(-134 * time.Second)
		first.Items = Items(now, true)
		first.Answer = components.AnswerProps{MessageID: id(1), HTML: markdown.Render("The parts of a split posting were each rounded **up**, so"), Growing: true}
		queued := components.TurnProps{SessionID: id(1), MessageID: id(4), Author: "octo-dev", Text: "Then add a line to the changelog.", CreatedAt: now.Add(-20 * time.Second), Now: now, State: "queued", QueueNote: "runs next", CanEdit: true}
		return []components.TurnProps{first, queued}
	case failed:
		first.State = "failed"
		first.Items = Items(now, false)[:6]
		first.Failure = &components.FailureProps{Message: "The model did not answer: too many requests. Wait a minute, then send a new message.", Code: "model_rate_limited", RequestID: "8f2c1ab0", Safe: "The sandbox and your changes are still there."}
		cancelled := components.TurnProps{SessionID: id(1), MessageID: id(6), Author: "octo-dev", Text: "Never mind, look at the importer instead.", CreatedAt: now.Add(-time.Minute), Now: now, State: "cancelled", StartedAt: now.Add(-time.Minute), FinishedAt: now.Add(-20 * time.Second), Items: Items(now, false)[:3]}
		removed := components.TurnProps{SessionID: id(1), MessageID: id(7), Author: "octo-dev", Text: "And the docs.", CreatedAt: now.Add(-time.Minute), Now: now, State: "cancelled"}
		return []components.TurnProps{first, cancelled, removed}
	case limited:
		first.State = "failed"
		first.Items = Items(now, false)[:4]
		first.Failure = &components.FailureProps{
			Message: "The agent stopped at a limit: 60 steps. Its changes are kept. Send another message to go on.", Code: "agent_limit_reached",
			Safe:        "The sandbox and the changes are still there.",
			ContinueURL: "/chat-sessions/" + id(1) + "/messages/" + id(1) + "/continue", Continue: "Continue with a higher limit", ContinueFor: "Up to 120 steps and 60 minutes.",
			Action: "Edit and send again", ActionURL: "/chat-sessions/" + id(1) + "?resend=" + id(1) + "#composer",
		}
		first.Records = &components.RecordsProps{
			DiffURL: "/chat-sessions/" + id(1) + "/diffs/" + id(8), Files: changed(), Additions: 61, Deletions: 9, Usage: "412.0k in · 31.0k out · about $1.24 · scripted demo model",
		}
		return []components.TurnProps{first}
	default:
		first.Items = Items(now, false)
		first.Answer = components.AnswerProps{MessageID: id(1), HTML: markdown.Render(answer)}
		first.Records = &components.RecordsProps{
			DiffURL: "/chat-sessions/" + id(1) + "/diffs/" + id(8), Files: changed(), Additions: 61, Deletions: 9, Usage: "41.2k in · 3.1k out · scripted demo model",
			PullRequest: &components.PullRequestProps{Number: 41, State: "open", Title: "Round half cents to even when a posting is split", URL: "https://github.com/octo-org/ledger/pull/41"},
		}
		second := components.TurnProps{
			SessionID: id(1), MessageID: id(2), Author: "octo-dev", Text: "Is the importer affected too?", CreatedAt: now.Add(-90 * time.Second), Now: now, State: "completed",
			StartedAt: now.Add(-88 * time.Second), FinishedAt: now.Add(-70 * time.Second), Items: Items(now, false)[:4],
			Answer:  components.AnswerProps{MessageID: id(2), HTML: markdown.Render("Yes: it calls `Split` for every row, so it is right now too. Nothing else rounds.")},
			Records: &components.RecordsProps{NoChange: true, Usage: "12.0k in · 0.4k out · scripted demo model"},
		}
		return []components.TurnProps{first, second}
	}
}

// Items is a turn's activity; the last call is still running when running is set.
func Items(now time.Time, running bool) []components.Item {
	tool := func(t components.ToolProps) components.Item { return components.Item{Tool: &t} }
	items := []components.Item{
		tool(components.ToolProps{CallID: "c1", Tool: "grep", Object: `"HalfCents"`, State: "ok", Detail: "14 matches", Output: "internal/posting/split_test.go:41:\tTestSplit_HalfCents", Duration: 212 * time.Millisecond}),
		tool(components.ToolProps{CallID: "c2", Tool: "read", Object: "internal/posting/split.go", State: "ok", Detail: "120 lines", Output: "package posting\n\n// Split divides an amount.\n", Duration: 31 * time.Millisecond}),
		tool(components.ToolProps{CallID: "c3", Tool: "read", Object: "internal/posting/split_test.go", State: "ok", Detail: "88 lines", Duration: 28 * time.Millisecond}),
		tool(components.ToolProps{CallID: "c4", Tool: "bash", Object: "go test ./internal/posting", State: "ok", Detail: "exit 1", Exit: 1, Input: "go test ./internal/posting", Output: "\x1b[31m--- FAIL\x1b[0m: TestSplit_HalfCents (0.00s)\n    split_test.go:41: got [501 501], want [500 501]\nFAIL", Truncated: true, ArtifactURL: "/chat-sessions/" + id(1) + "/artifacts/" + id(9), Duration: 3200 * time.Millisecond}),
		{Note: &components.NoteProps{Sequence: 17, Tone: "warning", Text: "The model's answer broke off; the request was sent again", Detail: "0.8 s"}},
		tool(components.ToolProps{CallID: "c5", Tool: "edit", Object: "internal/posting/split.go", State: "ok", Detail: "+18 −7", Output: "-\tout[i] = ceil(amount, parts)\n+\tout[i] = amount / int64(parts)", Duration: 44 * time.Millisecond}),
		tool(components.ToolProps{CallID: "c6", Tool: "write", Object: "internal/posting/split_table_test.go", State: "ok", Detail: "+41 −0", Duration: 52 * time.Millisecond}),
		tool(components.ToolProps{CallID: "c7", Tool: "bash", Object: "git push origin HEAD", State: "refused", Code: "git_push", Message: "git push is not allowed. Publishing is done from this page.", Input: "git push origin HEAD"}),
		tool(components.ToolProps{CallID: "c8", Tool: "subagent", Object: "find every caller of Split outside the package", State: "ok", Detail: "6 steps", Duration: 21 * time.Second}),
		tool(components.ToolProps{CallID: "c9", Tool: "edit", Object: "docs/rounding.md", State: "error", Detail: "not found", Code: "old_text_not_found", Message: "The text to replace is not in the file.", Duration: 12 * time.Millisecond}),
	}
	if running {
		return append(items, tool(components.ToolProps{CallID: "c10", Tool: "bash", Object: "go vet ./... && go test ./internal/posting -run 'Split|Round' -count=1", State: "running", Input: "go vet ./... && go test ./internal/posting -run 'Split|Round' -count=1", StartedAt: now.Add(-4 * time.Second)}))
	}
	return append(items,
		tool(components.ToolProps{CallID: "c10", Tool: "bash", Object: "go test ./internal/posting", State: "ok", Detail: "exit 0", Output: "ok  \toctopus.example/ledger/internal/posting\t0.012s", Duration: 2900 * time.Millisecond}),
		components.Item{Note: &components.NoteProps{Sequence: 31, Tone: "info", Text: "Checkpoint saved", Detail: "4 files"}},
	)
}
