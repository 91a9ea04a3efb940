package web_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
	"agent-sandboxing/core/store/storetest"
	"agent-sandboxing/handlers"
)

// changed gives a finished session a newer diff.
func (b *browser) changed(s session, files ...core.ChangedFile) {
	b.t.Helper()
	claim := b.working(s.id)
	err := b.rig.store.SaveDiff(b.t.Context(), claim.Lease, core.Artifact{
		ID: core.NewID[core.ArtifactID](), MessageID: claim.Message.ID, Kind: core.ArtifactDiff, Name: "changes", MediaType: "text/x-diff", Data: []byte(patch),
	}, files)
	if err != nil {
		b.t.Fatal(err)
	}
	storetest.Finish(b.t, b.rig.store, claim, "Done.")
}

// working posts a message and starts its turn.
func (b *browser) working(id core.SessionID) core.Claim {
	b.t.Helper()
	if a := b.post("/chat-sessions/"+string(id)+"/messages", url.Values{"text": {"More"}}); a.status != http.StatusSeeOther {
		b.t.Fatalf("post: %d %s", a.status, a.body)
	}
	claim := storetest.Claim(b.t, b.rig.store)
	m, err := b.rig.store.StartMessage(b.t.Context(), claim.Lease, claim.Message.ID, "test-model")
	if err != nil {
		b.t.Fatal(err)
	}
	claim.Message = &m
	return claim
}

// attempt asks for a publish by the form and lets a worker end it as failed with a code.
func (b *browser) attempt(s session, code string, pr *core.PullRequest) core.PublicationID {
	b.t.Helper()
	base := "/chat-sessions/" + string(s.id)
	if a := b.post(base+"/publish", url.Values{"title": {"Add a comment"}, "body": {"Words."}, "client_key": {string(core.NewID[core.PublicationID]())}}); a.status != http.StatusSeeOther {
		b.t.Fatalf("publish: %d %s", a.status, a.body)
	}
	claim := storetest.Claim(b.t, b.rig.store)
	p := *claim.Publication
	p.Step, p.FailureCode, p.FailureText = core.PublishFailed, code, "What happened."
	if pr != nil {
		if err := b.rig.store.SavePullRequest(b.t.Context(), claim.Lease, *pr); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := b.rig.store.SavePublication(b.t.Context(), claim.Lease, p); err != nil {
		b.t.Fatal(err)
	}
	if err := b.rig.store.Release(b.t.Context(), claim.Lease); err != nil {
		b.t.Fatal(err)
	}
	return p.ID
}

func TestPublish_OffersEachPathAndKeepsTheChoice(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	s := b.finished()
	b.changed(s,
		core.ChangedFile{Path: "main.go", Status: "modified", Additions: 1}, core.ChangedFile{Path: "logo.bin", Status: "added", Binary: true, Rule: "new binary file"},
		core.ChangedFile{Path: "odd\nname", Status: "added", Rule: "name with control characters"}, core.ChangedFile{Path: ".github/workflows/ci.yml", Status: "modified", Additions: 2},
	)
	path := "/chat-sessions/" + string(s.id) + "/publish"
	page := b.get(path)
	action, values := formOf(page, `form[action="`+path+`"]`)
	if diff := cmp.Diff([]string{"main.go", ".github/workflows/ci.yml"}, values["path"]); diff != "" {
		t.Errorf("ticked (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"logo.bin", "main.go", ".github/workflows/ci.yml"}, values["offered"]); diff != "" {
		t.Errorf("offered (-want +got):\n%s", diff)
	}
	for _, text := range []string{"2 of 4 files", "new binary file", "name with control characters", "may not change workflow files", "leave them out below"} {
		if !strings.Contains(page.html().Text(), text) {
			t.Errorf("the page does not say %q", text)
		}
	}
	values["path"] = []string{"main.go", "logo.bin", "never-offered"}
	values.Set("title", "")
	again := b.post(action, values) // a form that is refused keeps what was ticked
	if _, kept := formOf(again, `form[action="`+path+`"]`); !slices.Equal(kept["path"], []string{"logo.bin", "main.go"}) {
		t.Errorf("after a refusal: %v", kept["path"])
	}
	values.Set("title", "Add a comment")
	values.Del("draft")
	if a := b.post(action, values); a.status != http.StatusSeeOther {
		t.Fatalf("publish: %d %s", a.status, a.body)
	}
	choices, err := r.store.PathChoices(t.Context(), s.id)
	if diff := cmp.Diff(core.PathChoices{"logo.bin": true, ".github/workflows/ci.yml": false}, choices); err != nil || diff != "" {
		t.Errorf("kept (-want +got), %v:\n%s", err, diff)
	}
	claim := storetest.Claim(t, r.store)
	if claim.Publication.Draft || claim.Publication.Base != "" {
		t.Errorf("publication = %+v", claim.Publication)
	}
}

func TestPublish_BySomethingElseThanAForm(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	s := b.finished()
	path := "/chat-sessions/" + string(s.id) + "/publish"
	if a := b.json(http.MethodPost, path, handlers.PublishForm{Title: "T", Base: "nowhere"}); a.status != http.StatusUnprocessableEntity || a.code() != "base_invalid" {
		t.Errorf("into a branch that is not there: %d %s", a.status, a.body)
	}
	if a := b.json(http.MethodPost, path, handlers.PublishForm{Title: "T", Base: "main", Paths: core.PathChoices{"main.go": false, "other.go": false}}); a.status != http.StatusAccepted {
		t.Fatalf("publish: %d %s", a.status, a.body)
	}
	claim := storetest.Claim(t, r.store)
	choices, err := r.store.PathChoices(t.Context(), s.id)
	if err != nil || !claim.Publication.Draft || claim.Publication.Base != "" || !cmp.Equal(choices, core.PathChoices{"main.go": false}) {
		t.Errorf("publication = %+v, choices = %v, %v", claim.Publication, choices, err)
	}
}

func TestPublish_AsksWhatBecomesOfIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	s := b.finished()
	base := "/chat-sessions/" + string(s.id)
	pr := core.PullRequest{Number: 7, URL: "https://github.com/octo-org/web-app/pull/7", State: core.PullClosed, HeadSHA: storetest.BaseSHA, Base: "main"}
	for _, test := range []struct {
		code    string
		choices []string // values of the buttons
		action  string   // begin of the link, "" for none
	}{
		{core.CodePullClosed, []string{"reopen", "new"}, ""},
		{core.CodeBranchDeleted, []string{"new"}, ""},
		{core.CodeReopenRefused, []string{"new"}, ""},
		{core.CodePullMerged, nil, "/new?"},
		{core.CodeBaseMissing, nil, base + "/publish#base"},
		{"rules_rejected", nil, base + "/publish"},
	} {
		id := b.attempt(s, test.code, &pr)
		card := b.get(base).html().Find("#pr [data-testid=failure]")
		var choices []string
		card.Find("form input[name=choice]").Each(func(_ int, f *goquery.Selection) { choices = append(choices, f.AttrOr("value", "")) })
		if link := card.Find("a.btn").AttrOr("href", ""); !slices.Equal(choices, test.choices) || !strings.HasPrefix(link, test.action) || (link == "") != (test.action == "") {
			t.Errorf("%s: buttons %v, link %q", test.code, choices, link)
		}
		again := base + "/publications/" + string(id) + "/again"
		if a := b.post(again, url.Values{"choice": {"everything"}}, "Accept", "application/json"); a.status != http.StatusConflict || a.code() != "choice_not_offered" {
			t.Errorf("%s: %d %s", test.code, a.status, a.body)
		}
		for _, choice := range test.choices[:min(len(test.choices), 1)] {
			for range 2 {
				if a := b.post(again, url.Values{"choice": {choice}}); a.status != http.StatusSeeOther {
					t.Fatalf("%s: %d %s", test.code, a.status, a.body)
				}
			}
			claim := storetest.Claim(t, r.store)
			p := *claim.Publication
			if string(p.Choice) != choice || p.Title != "Add a comment" || p.Body != "Words." {
				t.Errorf("%s: publication = %+v", test.code, p)
			}
			p.Step, p.FailureCode = core.PublishFailed, "publish_failed"
			if err := r.store.SavePublication(t.Context(), claim.Lease, p); err != nil {
				t.Fatal(err)
			}
			if err := r.store.Release(t.Context(), claim.Lease); err != nil {
				t.Fatal(err)
			}
		}
	}
	if a := r.signedIn(t, reader).post(base+"/publications/"+string(core.NewID[core.PublicationID]())+"/again", url.Values{"choice": {"new"}}); a.status != http.StatusForbidden {
		t.Errorf("a reader: %d", a.status)
	}
}

func TestPublish_CanBeCancelledUntilItIsSent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	s := b.finished()
	base := "/chat-sessions/" + string(s.id)
	b.json(http.MethodPost, base+"/publish", handlers.PublishForm{Title: "T"})
	action, _ := formOf(b.get(base), `#pr form`)
	if a := b.post(action, nil); a.status != http.StatusSeeOther {
		t.Fatalf("cancel: %d %s", a.status, a.body)
	}
	if text := b.get(base).html().Find("#pr").Text(); !strings.Contains(text, "publish_cancelled") || !strings.Contains(text, "before anything was sent") {
		t.Errorf("the card: %s", text)
	}
}
