package components_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/a-h/templ"
	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/views/components"
)

// render gives a component as the document that a browser would make of it.
func render(t *testing.T, c templ.Component) (*goquery.Document, string) {
	t.Helper()
	var b strings.Builder
	if err := c.Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	doc, err := goquery.NewDocumentFromReader(strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return doc, b.String()
}

func words(s *goquery.Selection) string { return strings.Join(strings.Fields(s.Text()), " ") }

func tool(name, object, state string) components.Item {
	return components.Item{Tool: &components.ToolProps{CallID: "c-" + object, Tool: name, Object: object, State: state}}
}

func TestTurnBlock_GroupsExplorations(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 5, 2, 14, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name  string
		items []components.Item
		want  []string
	}{
		{"two stay apart", []components.Item{tool("read", "a", "ok"), tool("read", "b", "ok")}, []string{"Read a", "Read b"}},
		{"three fold", []components.Item{tool("read", "a", "ok"), tool("read", "b", "ok"), tool("grep", "x", "ok")}, []string{"Explored 2 files, 1 search"}},
		{"a file that is read twice is one", []components.Item{tool("read", "a", "ok"), tool("read", "a", "ok"), tool("ls", "d", "ok")}, []string{"Explored 1 file, 1 folder"}},
		{"an edit parts them", []components.Item{tool("read", "a", "ok"), tool("read", "b", "ok"), tool("edit", "a", "ok"), tool("read", "c", "ok")}, []string{"Read a", "Read b", "Edited a", "Read c"}},
		{"what went wrong stands alone", []components.Item{tool("read", "a", "ok"), tool("read", "b", "error"), tool("read", "c", "ok")}, []string{"Read a", "Read b error", "Read c"}},
		{"the running one shows", []components.Item{tool("read", "a", "ok"), tool("read", "b", "ok"), tool("read", "c", "running")}, []string{"Exploring, 3 files: c"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			doc, _ := render(t, components.TurnBlock(components.TurnProps{MessageID: "m", State: "working", StartedAt: start, Now: start, Items: test.items}))
			var got []string
			doc.Find(".log-items > li").Each(func(_ int, s *goquery.Selection) {
				got = append(got, words(s.Find("summary").First()))
			})
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestTurnBlock_States(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 5, 2, 14, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name  string
		props components.TurnProps
		label string // of the log, "" for none
		open  bool
		spins bool
	}{
		{"queued", components.TurnProps{State: "queued"}, "", false, false},
		{"preparing", components.TurnProps{State: "preparing"}, "Waiting for the sandbox", true, true},
		{"working", components.TurnProps{State: "working", StartedAt: start}, "Working 1m 02s", true, true},
		{"done", components.TurnProps{State: "completed", StartedAt: start, FinishedAt: start.Add(192 * time.Second)}, "Done in 3m 12s", false, false},
		{"failed", components.TurnProps{State: "failed", StartedAt: start, FinishedAt: start.Add(4 * time.Second)}, "Failed after 4.0 s", true, false},
		{"cancelled", components.TurnProps{State: "cancelled", StartedAt: start, FinishedAt: start.Add(62 * time.Second)}, "Cancelled after 1m 02s", true, false},
		{"removed", components.TurnProps{State: "cancelled"}, "", false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := test.props
			p.MessageID, p.Now = "m", start.Add(62*time.Second)
			doc, _ := render(t, components.TurnBlock(p))
			log := doc.Find("details.log")
			if got := words(log.Find("summary").First()); got != test.label {
				t.Errorf("label %q, want %q", got, test.label)
			}
			if _, open := log.Attr("open"); open != test.open {
				t.Errorf("open %v, want %v", open, test.open)
			}
			if spins := doc.Find(".spinner").Length() > 0; spins != test.spins {
				t.Errorf("spins %v, want %v", spins, test.spins)
			}
			if timers := doc.Find("[data-since]").Length() > 0; timers && !test.spins {
				t.Error("a timer runs in a turn that does not")
			}
		})
	}
}

func TestToolRow_Outcomes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		props components.ToolProps
		text  string
		class string
	}{
		{"a command that failed is amber and was run", components.ToolProps{Tool: "bash", Object: "go test", State: "ok", Exit: 1, Detail: "exit 1"}, "Ran go test exit 1", "row-warn"},
		{"a refusal was not run", components.ToolProps{Tool: "bash", Object: "git push", State: "refused"}, "Run git push blocked by policy", "row-bad"},
		{"a crash leaves it interrupted", components.ToolProps{Tool: "edit", Object: "a.go", State: "interrupted"}, "Edit a.go interrupted", "row-warn"},
		{"one that runs has no outcome", components.ToolProps{Tool: "bash", Object: "make", State: "running"}, "Running make", "row-running"},
		{"a command of two lines stays in one", components.ToolProps{Tool: "bash", Object: "a &&\n  b", State: "ok"}, "Ran a && b", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			doc, _ := render(t, components.ToolRow(test.props))
			if got := words(doc.Find("summary")); got != test.text {
				t.Errorf("row %q, want %q", got, test.text)
			}
			if got := strings.TrimPrefix(doc.Find("details").AttrOr("class", ""), "row"); strings.TrimSpace(got) != test.class {
				t.Errorf("class %q, want %q", got, test.class)
			}
		})
	}
}

func TestToolRow_ForeignTextIsText(t *testing.T) {
	t.Parallel()
	for _, a := range []string{`<script>alert(1)</script>`, `<hx-partial hx-target="#status">x</hx-partial>`, `"><img src=x onerror=alert(1)>`, "a\rid: 9\r\rb", "\u202e"} {
		doc, out := render(t, components.ToolRow(components.ToolProps{
			CallID: a, MessageID: "m", Tool: "bash", Object: a, State: "refused", Detail: a, Code: a, Message: a, Input: a, Output: a,
		}))
		if n := doc.Find("script, img, hx-partial, [onerror]").Length(); n > 0 {
			t.Errorf("%q became %d elements", a, n)
		}
		if strings.Contains(strings.ToLower(out), "<hx-") {
			t.Errorf("%q would be taken for a fragment", a)
		}
		id, _ := doc.Find("li").Attr("id")
		if strings.ContainsAny(id, " \"'<>#.:/\r\n") {
			t.Errorf("id %q is not safe in a selector", id)
		}
	}
}

func TestPartials_WrapOneElementOfTheirTarget(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		c      templ.Component
		target string
		swap   string
	}{
		{components.AppendTurn(components.TurnProps{MessageID: "m"}), "#timeline", "beforeend"},
		{components.ReplaceTurn(components.TurnProps{MessageID: "m"}), "#msg-m", "outerMorph"},
		{components.ReplaceAnswer(components.AnswerProps{MessageID: "m"}), "#answer-m", "outerMorph"},
		{components.ReplaceHead(components.HeadProps{}), "#head", "outerMorph"},
		{components.ReplaceProvision(components.ProvisionProps{}), "#provision", "outerMorph"},
		{components.ReplaceStatus(components.StatusProps{}), "#status", "outerMorph"},
		{components.ReplaceQueue(components.QueueProps{}), "#queue", "outerMorph"},
		{components.ReplaceComposerState(components.ComposerProps{}), "#composer-state", "outerMorph"},
		{components.ReplaceChanges(components.ChangesProps{}), "#changes", "outerMorph"},
		{components.ReplacePullRequest(components.PullRequestProps{}), "#pr", "outerMorph"},
		{components.ReplaceArtifacts(nil), "#artifacts", "outerMorph"},
		{components.ReplaceDetails(components.DetailsProps{}), "#details", "outerMorph"},
		{components.EndStream("over"), "#stream", "outerHTML"},
	} {
		doc, _ := render(t, test.c)
		part := doc.Find("hx-partial")
		if part.Length() != 1 || part.AttrOr("hx-target", "") != test.target || part.AttrOr("hx-swap", "") != test.swap {
			t.Errorf("%s: %d partials, target %q, swap %q", test.target, part.Length(), part.AttrOr("hx-target", ""), part.AttrOr("hx-swap", ""))
		}
		if n := part.Children().Length(); n != 1 {
			t.Errorf("%s: %d elements inside", test.target, n)
		}
		if id := "#" + part.Children().First().AttrOr("id", ""); test.swap == "outerMorph" && id != test.target {
			t.Errorf("%s: the element inside is %s", test.target, id)
		}
	}
}

func TestStream_EndsByConnectingToNothing(t *testing.T) {
	t.Parallel()
	_, open := render(t, components.Stream(components.StreamProps{URL: "/chat-sessions/x/stream?after=7", Sequence: 7}))
	for _, want := range []string{`hx-sse:connect="/chat-sessions/x/stream?after=7"`, `hx-swap="none"`, `data-seq="7"`} {
		if !strings.Contains(open, want) {
			t.Errorf("no %s in %s", want, open)
		}
	}
	if _, over := render(t, components.StreamEnded("over")); strings.Contains(over, "hx-sse") || !strings.Contains(over, `id="stream"`) {
		t.Errorf("the end still connects: %s", over)
	}
}

func TestTurnBlock_TwoHundredActionsStaySmall(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 5, 2, 14, 0, 0, 0, time.UTC)
	var items []components.Item
	for i := range 200 {
		items = append(items, components.Item{Tool: &components.ToolProps{CallID: fmt.Sprint("call_", i), Tool: "edit", Object: "internal/posting/split.go", State: "ok", Detail: "+8 −2", Output: strings.Repeat("x", 60), Duration: time.Second}})
	}
	_, out := render(t, components.TurnBlock(components.TurnProps{MessageID: "m", State: "completed", StartedAt: start, FinishedAt: start, Items: items}))
	if len(out) > 150<<10 {
		t.Errorf("200 actions are %d bytes", len(out))
	}
}

func TestPullRequestCard_LeadsOnlyWhileSomethingIsUnpublished(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		props   components.PullRequestProps
		primary string
		says    string
	}{
		"none yet":    {components.PullRequestProps{SessionID: "s", CanPublish: true, Update: true}, "Create pull request", ""},
		"new work":    {components.PullRequestProps{SessionID: "s", Number: 41, CanPublish: true, Update: true}, "Update pull request", ""},
		"up to date":  {components.PullRequestProps{SessionID: "s", Number: 41, CanPublish: true}, "", "has all chosen changes of this session"},
		"not allowed": {components.PullRequestProps{SessionID: "s", Number: 41, Update: true, Blocked: "You may not push."}, "", "You may not push."},
	} {
		doc, _ := render(t, components.PullRequestCard(tt.props))
		if got := words(doc.Find(".btn-primary")); got != tt.primary || !strings.Contains(doc.Text(), tt.says) {
			t.Errorf("%s: button %q, want %q; text %q", name, got, tt.primary, doc.Text())
		}
	}
}

func TestComposer_OffersNoKeysToWhoMayNotWrite(t *testing.T) {
	t.Parallel()
	if doc, _ := render(t, components.Composer(components.ComposerProps{SessionID: "s"})); doc.Find("kbd").Length() != 2 {
		t.Errorf("%d keys are shown", doc.Find("kbd").Length())
	}
	doc, _ := render(t, components.Composer(components.ComposerProps{SessionID: "s", Disabled: "Read-only: only @octo-dev may write here."}))
	if doc.Find("kbd").Length() != 0 || doc.Find("#composer-state .truncate").Length() != 0 || !strings.Contains(doc.Text(), "Read-only") {
		t.Errorf("the reason is cut or keys are shown: %s", doc.Text())
	}
}
