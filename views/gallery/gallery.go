// Package gallery holds one sample of every page and state, for the tests of the markup and for
// looking at the pages without a server behind them (go run -tags gallery ./views/gallery/serve).
package gallery

import (
	"time"

	"github.com/a-h/templ"

	"agent-sandboxing/views/components"
	"agent-sandboxing/views/layout"
	"agent-sandboxing/views/pages"
)

// Sample is one page in one state.
type Sample struct {
	Name string
	Page templ.Component
}

// Samples are all of them, as they look at a moment and in a theme.
func Samples(now time.Time, theme string) []Sample {
	frame := func(title, active string) layout.Props { return frame(now, theme, title, active) }
	signedOut := frame("Sign in", "")
	signedOut.User = nil
	missing := frame("Not found", "")
	return []Sample{
		{"login", pages.Login(pages.LoginProps{Layout: signedOut, People: []string{"octo-admin", "octo-dev", "octo-reader"}})},
		{"login-expired", pages.Login(pages.LoginProps{Layout: signedOut, Tone: "warning", Notice: "That sign-in link expired. Start again.", ReturnTo: "/chat-sessions/x"})},
		{"installations", pages.Installations(installations(frame("Choose an account", "new")))},
		{"installations-none", pages.Installations(pages.InstallationsProps{Layout: frame("Choose an account", "new"), InstallURL: "https://github.com/apps/agent-sandboxing/installations/new"})},
		{"new", pages.New(newSession(frame("New session", "new"), 0))},
		{"new-branch", pages.New(newSession(frame("New session", "new"), 1))},
		{"new-ready", pages.New(newSession(frame("New session", "new"), 2))},
		{"new-moved", pages.New(newSession(frame("New session", "new"), 3))},
		{"sessions", pages.Sessions(sessions(frame("Sessions", "sessions")))},
		{"sessions-none", pages.Sessions(pages.SessionsProps{Layout: frame("Sessions", "sessions"), Fresh: true})},
		{"session-preparing", pages.Session(session(frame("Fix the rounding", ""), preparing))},
		{"session-working", pages.Session(session(frame("Fix the rounding", ""), working))},
		{"session-done", pages.Session(session(frame("Fix the rounding", ""), done))},
		{"session-failed", pages.Session(session(frame("Fix the rounding", ""), failed))},
		{"session-limited", pages.Session(session(frame("Fix the rounding", ""), limited))},
		{"session-changes", pages.Session(narrowChanges(session(frame("Fix the rounding", ""), done)))},
		{"session-closed", pages.Session(closedPull(session(frame("Fix the rounding", ""), done)))},
		{"session-network", pages.Session(narrowDetails(session(frame("Fix the rounding", ""), done)))},
		{"network", pages.NetworkLog(networkLog(frame("Network", "")))},
		{"repository-network", pages.RepositoryNetwork(repositoryNetwork(frame("Network", ""), true, ""))},
		{"repository-network-error", pages.RepositoryNetwork(repositoryNetwork(frame("Network", ""), false, "Write the host alone, such as registry.example.com, without https:// and without a path."))},
		{"repository-network-empty", pages.RepositoryNetwork(pages.RepositoryNetworkProps{Layout: frame("Network", ""), FullName: "octo-org/ledger", Effective: "none", Ceiling: "none", Modes: []string{"none"}})},
		{"diff", pages.Diff(diffPage(frame("Diff", ""), samplePatch, -1))},
		{"diff-hostile", pages.Diff(diffPage(frame("Diff", ""), hostilePatch, -1))},
		{"diff-none", pages.Diff(diffPage(frame("Diff", ""), "", -1))},
		{"publish", pages.Publish(publish(frame("Publish", ""), 0))},
		{"publish-update", pages.Publish(publish(frame("Publish", ""), 41))},
		{"artifact", pages.Artifact(artifact(frame("Output", "")))},
		{"error", pages.Error(pages.ErrorProps{Layout: missing, Status: 404, Code: "not_found", Message: "There is nothing here, or you may not see it.", RequestID: "8f2c1ab0"})},
		{"settings", pages.Settings(pages.SettingsProps{Layout: frame("Settings", "")})},
	}
}

func frame(now time.Time, theme, title, active string) layout.Props {
	return layout.Props{
		Title:     title,
		Active:    active,
		User:      &layout.User{Login: "octo-dev", Name: "Octo Dev", Admin: true},
		Theme:     theme,
		DemoLabel: "Scripted demo model · stand-in GitHub",
		Path:      "/",
		Now:       now,
	}
}

func installations(l layout.Props) pages.InstallationsProps {
	return pages.InstallationsProps{
		Layout: l,
		Items: []pages.InstallationProps{
			{ID: 11, Account: "octo-org", Type: "Organization", AllRepos: true},
			{ID: 12, Account: "octo-dev", Type: "User"},
			{ID: 13, Account: "octo-lab", Type: "Organization", Suspended: true},
		},
		InstallURL: "https://github.com/apps/agent-sandboxing/installations/new",
		Notice:     "Could not refresh from GitHub (rate limit, resets 14:32 UTC). This is the list of 12 min ago.",
	}
}

func newSession(l layout.Props, step int) pages.NewProps {
	now := l.Now
	p := pages.NewProps{
		Layout:       l,
		Installation: pages.InstallationProps{ID: 11, Account: "octo-org", Type: "Organization"},
		Several:      true,
		ClientKey:    "0197c1d2-0000-7000-8000-000000000001",
		MaxBytes:     48 << 10,
		Policy:       "seed",
		Egress:       "open",
		Egresses:     []string{"open", "allowlist", "none"},
		Model:        "scripted demo model",
		Repositories: []pages.RepositoryProps{
			{ID: 1, FullName: "octo-org/ledger", Description: "Double-entry bookkeeping as a library", Language: "Go", DefaultBranch: "main", CanPush: true, PushedAt: now.Add(-2 * time.Hour)},
			{ID: 2, FullName: "octo-org/weather-cli", Description: "Forecasts in the terminal", Language: "Python", DefaultBranch: "main", Private: true, CanPush: true, PushedAt: now.Add(-30 * time.Hour)},
			{ID: 3, FullName: "octo-org/todo-api", Description: "A small REST service with a database, an index and rather a long description that does not fit into one line of the list", Language: "TypeScript", DefaultBranch: "trunk", CanPush: false, PushedAt: now.AddDate(0, -2, 0)},
			{ID: 4, FullName: "octo-org/attic", Description: "Old experiments", Language: "Shell", DefaultBranch: "master", Archived: true, Fork: true, CanPush: true, PushedAt: now.AddDate(-3, 0, 0)},
		},
		MoreFound: 12,
	}
	if step == 0 {
		return p
	}
	p.Repository = &p.Repositories[0]
	p.Branches = []pages.BranchProps{
		{Name: "main", Default: true, Protected: true},
		{Name: "release/1.4", Protected: true},
		{Name: "fix/rounding-of-half-cents"},
		{Name: "octo-dev/experiment"},
	}
	if step == 1 {
		p.BranchError = "The repository is empty: push a first commit, then choose it again."
		return p
	}
	p.Branch = &pages.BranchProps{Name: "main", SHA: "3f2c1ab9d04e77c1b2a3948576aa0011bbcc2233", Subject: "Keep half cents when splitting a posting", CommittedAt: now.Add(-2 * time.Hour), Protected: true, Default: true}
	if step == 3 {
		p.BranchError = "The branch main moved while you were writing: it was 9d0e77c, it is 3f2c1ab now. Check that you still want it, then start again."
		p.Text = "The half-cent test fails on the first of the month. Find out why, and fix it."
	}
	return p
}

func sessions(l layout.Props) pages.SessionsProps {
	now := l.Now
	pull := func(n int, state string) *components.PullRequestProps {
		return &components.PullRequestProps{Number: n, State: state, URL: "https://github.com/octo-org/ledger/pull/41"}
	}
	return pages.SessionsProps{
		Layout: l,
		Rows: []pages.SessionRowProps{
			{ID: id(1), Title: "Fix the rounding of half cents in split postings", Repository: "octo-org/ledger", BaseBranch: "main", State: "working", StartedAt: now.Add(-134 * time.Second), Queued: 1, UpdatedAt: now.Add(-4 * time.Second)},
			{ID: id(2), Title: "Add a --json flag to the forecast command", Repository: "octo-org/weather-cli", BaseBranch: "main", State: "review", Files: 4, Additions: 118, Deletions: 12, UpdatedAt: now.Add(-26 * time.Minute)},
			{ID: id(3), Title: "Return 409 instead of 500 when a todo exists", Repository: "octo-org/todo-api", BaseBranch: "trunk", State: "completed", Files: 3, Additions: 42, Deletions: 7, PullRequest: pull(41, "open"), UpdatedAt: now.Add(-5 * time.Hour)},
			{ID: id(4), Title: "Replace the date library", Repository: "octo-org/todo-api", BaseBranch: "trunk", State: "completed", Files: 11, Additions: 204, Deletions: 190, PullRequest: pull(38, "merged"), Owner: "octo-admin", UpdatedAt: now.Add(-29 * time.Hour)},
			{ID: id(5), Title: "Explain how the importer deduplicates rows, and where a race could let two of the same through", Repository: "octo-org/ledger", BaseBranch: "release/1.4", State: "failed", UpdatedAt: now.AddDate(0, 0, -4)},
			{ID: id(6), Title: "Try the new parser", Repository: "octo-org/weather-cli", BaseBranch: "octo-dev/experiment", State: "cancelled", Archived: true, UpdatedAt: now.AddDate(0, -1, 0)},
		},
		NextURL: "/?before=1",
		PollURL: "/",
	}
}

func publish(l layout.Props, number int) pages.PublishProps {
	p := pages.PublishProps{
		Layout: l, SessionID: id(1), Session: "Fix the rounding of half cents in split postings",
		Repository: "octo-org/ledger", Branch: "agent/" + id(1), Base: "main", Draft: true,
		Title:     "Round half cents to even when a posting is split",
		Body:      "Splitting a posting rounded each part up, so that the parts could add up to more than the whole.\n\n- `Split` rounds half to even and gives the remainder to the last part\n- a test for amounts that do not divide\n",
		ClientKey: "0197c1d2-0000-7000-8000-000000000002",
		Total:     6, Included: 4, Additions: 61, Deletions: 9,
		Kept: []pages.PublishPathProps{
			{File: components.FileProps{Path: "testdata/ledger.sqlite", Status: "added", Binary: true, URL: "#"}, Rule: "new binary file"},
			{File: components.FileProps{Path: "deploy/production/.env.production.local", Status: "added", Additions: 4, URL: "#"}, Rule: "may hold secrets"},
		},
		DiffURL:  "/chat-sessions/" + id(1) + "/diffs/latest",
		Warnings: []string{"A workflow file changed (.github/workflows/test.yml): look at it before you publish."},
		Number:   number,
		Author:   "The platform commits as agent-sandboxing[bot], with octo-dev as co-author.",
	}
	for _, f := range changed() {
		p.Paths = append(p.Paths, pages.PublishPathProps{File: f, In: true})
	}
	p.Paths = append(p.Paths, pages.PublishPathProps{
		File: components.FileProps{Path: ".github/workflows/test.yml", Status: "modified", Additions: 1, Deletions: 1, URL: "#"}, Note: "The App may not change workflow files.",
	})
	if number > 0 {
		p.Behind, p.BehindBase = 3, "main"
		p.BaseError = "The base branch release is not on GitHub any more. The session's branch is pushed; publish again into another base."
	}
	return p
}

func artifact(l layout.Props) pages.ArtifactPageProps {
	lines := []string{
		"$ go test ./...",
		"\x1b[31m--- FAIL: TestSplit_HalfCents (0.00s)\x1b[0m",
		"    split_test.go:41: Split(1001, 2) = [501 501], want [500 501]",
		"ok  \toctopus.example/ledger/import\t0.412s",
		"downloading 10 %\rdownloading 100 %",
		"a line with a hidden\u200b mark and <script>alert(1)</script>",
		"FAIL",
	}
	return pages.ArtifactPageProps{
		Layout: l, SessionID: id(1), Session: "Fix the rounding of half cents in split postings",
		ID: id(9), Name: "go test ./...", Kind: "tool output", Size: 48123, CreatedAt: l.Now.Add(-3 * time.Minute),
		Redactions: 2, Truncated: true, Lines: lines, FirstLine: 1, TotalLines: 4200, Page: 1, Pages: 3,
	}
}

// id is a well-formed id for sample n.
func id(n int) string {
	return "0197c1d2-4a5b-7c6d-8e9f-a1b2c3d4e5f" + string(rune('0'+n))
}
