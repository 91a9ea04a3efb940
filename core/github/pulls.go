package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	gh "github.com/google/go-github/v62/github"

	"agent-sandboxing/core"
)

// Codes of a refused pull request.
const (
	CodeNothingToPublish = "nothing_to_publish"
	CodeBranchNotVisible = "branch_not_visible"
	CodeBodyTooLong      = "body_too_long"
)

// headWaits are the pauses before GitHub is asked again, when it does not see a branch that was
// pushed a moment ago.
var headWaits = [...]time.Duration{time.Second, 3 * time.Second, 8 * time.Second}

// FindPullRequests lists the pull requests whose head is that branch of the repository itself, in
// every state, newest first.
func (a *App) FindPullRequests(ctx context.Context, token core.RepoToken, repo core.Repository, branch string) ([]core.PullRequest, error) {
	client, err := newClient(a.http, a.bases, token.Value)
	if err != nil {
		return nil, err
	}
	// Without the owner GitHub ignores head and answers all pull requests, so every head is checked too.
	list, _, err := client.PullRequests.List(ctx, repo.Owner, repo.Name, &gh.PullRequestListOptions{
		State: "all", Head: repo.Owner + ":" + branch, Sort: "created", Direction: "desc",
		ListOptions: gh.ListOptions{PerPage: pageSize},
	})
	if err != nil {
		return nil, classify(ctx, err, byInstallation, a.now())
	}
	var found []core.PullRequest
	for _, p := range list {
		if p.GetHead().GetRef() != branch || p.GetHead().GetRepo().GetID() != int64(repo.ID) || p.GetBase().GetRepo().GetID() != int64(repo.ID) {
			continue
		}
		pr, err := pullRequest(a.bases, p)
		if err != nil {
			return nil, unavailable().Because(err)
		}
		found = append(found, pr)
	}
	return found, nil
}

// OpenPullRequest opens one. When one from that head is open already (an earlier answer was lost) it
// is returned as it stands. Codes: nothing_to_publish, base_missing, branch_not_visible, body_too_long.
func (a *App) OpenPullRequest(ctx context.Context, token core.RepoToken, repo core.Repository, text core.PullRequestText) (core.PullRequest, error) {
	client, err := newClient(a.http, a.bases, token.Value)
	if err != nil {
		return core.PullRequest{}, err
	}
	ask := &gh.NewPullRequest{Title: &text.Title, Body: &text.Body, Head: &text.Head, Base: &text.Base, Draft: &text.Draft}
	for try := 0; ; try++ {
		p, _, err := client.PullRequests.Create(ctx, repo.Owner, repo.Name, ask)
		if err == nil {
			return a.checked(p, repo, text.Head)
		}
		err = classify(ctx, err, byInstallation, a.now())
		cause, ok := errors.AsType[*RequestError](err)
		if !ok || cause.Status != http.StatusUnprocessableEntity {
			return core.PullRequest{}, err
		}
		switch {
		case cause.says("already exists"):
			return a.adopt(ctx, token, repo, text, err)
		case cause.says("No commits between"):
			return core.PullRequest{}, core.Fail(core.Conflict, CodeNothingToPublish, "There is nothing on the branch that "+text.Base+" has not already.").Because(cause)
		case cause.field("base"):
			return core.PullRequest{}, baseMissing(text.Base).Because(cause)
		case cause.says("body is too long"):
			return core.PullRequest{}, bodyTooLong().Because(cause)
		case cause.says("Draft pull requests are not supported") && ask.GetDraft():
			ask.Draft = new(false)
		case cause.field("head") && try < len(headWaits):
			if err := a.confirm(ctx, client, repo, text.Head, headWaits[try]); err != nil {
				return core.PullRequest{}, err
			}
		case cause.field("head"):
			return core.PullRequest{}, core.Fail(core.Unavailable, CodeBranchNotVisible, "The branch was pushed, but GitHub does not show it yet. Publish again in a minute.").Because(cause)
		default:
			return core.PullRequest{}, err
		}
	}
}

// confirm looks whether a branch that a new pull request was refused for is there at all, and waits.
func (a *App) confirm(ctx context.Context, client *gh.Client, repo core.Repository, branch string, pause time.Duration) error {
	_, _, err := client.Git.GetRef(ctx, repo.Owner, repo.Name, "heads/"+branch)
	if err = classify(ctx, err, byInstallation, a.now()); err != nil && core.KindOf(err) != core.NotFound {
		return err
	}
	return a.wait(ctx, pause) // one that is not found may be there in a moment: what was pushed spreads
}

// adopt finds the open pull request that stood in the way of a new one.
func (a *App) adopt(ctx context.Context, token core.RepoToken, repo core.Repository, text core.PullRequestText, refused error) (core.PullRequest, error) {
	found, err := a.FindPullRequests(ctx, token, repo, text.Head)
	if err != nil {
		return core.PullRequest{}, err
	}
	for _, pr := range found {
		if pr.State == "open" {
			return pr, nil
		}
	}
	return core.PullRequest{}, refused
}

// UpdatePullRequest rewrites title, body and base; an empty one stays as it is, and so does the head.
// Codes: base_missing, nothing_to_publish, body_too_long.
func (a *App) UpdatePullRequest(ctx context.Context, token core.RepoToken, repo core.Repository, number int, text core.PullRequestText) (core.PullRequest, error) {
	client, err := newClient(a.http, a.bases, token.Value)
	if err != nil {
		return core.PullRequest{}, err
	}
	change := &gh.PullRequest{}
	if text.Title != "" {
		change.Title = &text.Title
	}
	if text.Body != "" {
		change.Body = &text.Body
	}
	if text.Base != "" {
		change.Base = &gh.PullRequestBranch{Ref: &text.Base}
	}
	p, err := a.edit(ctx, client, repo, number, change)
	if cause, ok := errors.AsType[*RequestError](err); ok && cause.Status == http.StatusUnprocessableEntity {
		switch {
		case cause.says("body is too long"):
			err = bodyTooLong().Because(cause)
		case cause.says("no new commits"):
			err = core.Fail(core.Conflict, CodeNothingToPublish, "There is nothing on the branch that "+text.Base+" has not already.").Because(cause)
		case text.Base != "" && cause.field("base"):
			err = baseMissing(text.Base).Because(cause)
		}
	}
	return p, err
}

// ReopenPullRequest opens a closed one again. reopen_refused when its branch has moved, was made anew or
// is gone since it was closed, or its base is.
func (a *App) ReopenPullRequest(ctx context.Context, token core.RepoToken, repo core.Repository, number int) (core.PullRequest, error) {
	client, err := newClient(a.http, a.bases, token.Value)
	if err != nil {
		return core.PullRequest{}, err
	}
	p, err := a.edit(ctx, client, repo, number, &gh.PullRequest{State: new("open")})
	if cause, ok := errors.AsType[*RequestError](err); ok && cause.Status == http.StatusUnprocessableEntity {
		err = core.Fail(core.Conflict, core.CodeReopenRefused, fmt.Sprintf(
			"GitHub does not open pull request #%d again, because its branch or its base has changed since it was closed. Open a new one.", number)).Because(cause)
	}
	return p, err
}

// Behind counts the commits of a branch that the commit head has not.
func (a *App) Behind(ctx context.Context, token core.RepoToken, repo core.Repository, branch, head string) (int, error) {
	client, err := newClient(a.http, a.bases, token.Value)
	if err != nil {
		return 0, err
	}
	// One commit a page: only the figures beside the list are wanted.
	c, _, err := client.Repositories.CompareCommits(ctx, repo.Owner, repo.Name, branch, head, &gh.ListOptions{PerPage: 1})
	if err != nil {
		return 0, classify(ctx, err, byInstallation, a.now())
	}
	return max(c.GetBehindBy(), 0), nil
}

// edit changes one pull request and checks that the answer is about it.
func (a *App) edit(ctx context.Context, client *gh.Client, repo core.Repository, number int, change *gh.PullRequest) (core.PullRequest, error) {
	p, _, err := client.PullRequests.Edit(ctx, repo.Owner, repo.Name, number, change)
	if err != nil {
		return core.PullRequest{}, classify(ctx, err, byInstallation, a.now())
	}
	if p.GetNumber() != number {
		return core.PullRequest{}, unavailable().Because(fmt.Errorf("asked for pull request %d, got %d", number, p.GetNumber()))
	}
	return a.checked(p, repo, "")
}

// PullRequest reads one with the person's token.
func (u *User) PullRequest(ctx context.Context, t core.UserToken, repo core.Repository, number int) (core.PullRequest, error) {
	client, err := u.client(t)
	if err != nil {
		return core.PullRequest{}, err
	}
	p, _, err := client.PullRequests.Get(ctx, repo.Owner, repo.Name, number)
	if err != nil {
		return core.PullRequest{}, classify(ctx, err, byPerson, u.now())
	}
	pr, err := pullRequest(u.bases, p)
	if err == nil && (pr.Number != number || p.GetBase().GetRepo().GetID() != int64(repo.ID)) {
		err = errors.New("the answer is about another pull request")
	}
	if err != nil {
		return core.PullRequest{}, unavailable().Because(err)
	}
	return pr, nil
}

// checked makes sure that the answer is about our repository and, when it is given, our head.
func (a *App) checked(p *gh.PullRequest, repo core.Repository, head string) (core.PullRequest, error) {
	if p.GetBase().GetRepo().GetID() != int64(repo.ID) || head != "" && p.GetHead().GetRef() != head {
		return core.PullRequest{}, unavailable().Because(errors.New("the answer is about another pull request"))
	}
	pr, err := pullRequest(a.bases, p)
	if err != nil {
		return core.PullRequest{}, unavailable().Because(err)
	}
	return pr, nil
}

// pullRequest believes an answer only when it names one that can exist.
func pullRequest(b Bases, p *gh.PullRequest) (core.PullRequest, error) {
	state := p.GetState()
	if p.MergedAt != nil || p.GetMerged() {
		state = "merged"
	}
	pr := core.PullRequest{
		Number: p.GetNumber(), URL: p.GetHTMLURL(), State: state, Draft: p.GetDraft(), HeadSHA: p.GetHead().GetSHA(), Base: p.GetBase().GetRef(),
		Title: p.GetTitle(), Body: p.GetBody(), UpdatedAt: p.GetUpdatedAt().Time,
	}
	switch {
	case pr.Number <= 0 || !validSHA(pr.HeadSHA):
		return core.PullRequest{}, errors.New("a pull request without number or head")
	case !strings.HasPrefix(pr.URL, b.Web+"/"):
		return core.PullRequest{}, errors.New("a pull request on another site")
	case state != "open" && state != "closed" && state != "merged":
		return core.PullRequest{}, errors.New("a pull request in an unknown state")
	}
	return pr, nil
}

func baseMissing(base string) *core.Error {
	return core.Fail(core.Conflict, core.CodeBaseMissing, "The base branch "+base+" is not on GitHub any more. The session's branch is pushed; publish again into another base.")
}

func bodyTooLong() *core.Error {
	return core.Fail(core.Invalid, CodeBodyTooLong, "GitHub takes no description of this length. Shorten what people wrote around the session's part of it, and publish again.")
}

// says looks for a text in GitHub's message and in those of its fields.
func (e *RequestError) says(text string) bool {
	if strings.Contains(e.Text, text) {
		return true
	}
	for _, f := range e.Fields {
		if strings.Contains(f.Message, text) {
			return true
		}
	}
	return false
}

// field says that GitHub found this field of a pull request invalid.
func (e *RequestError) field(name string) bool {
	for _, f := range e.Fields {
		if f.Resource == "PullRequest" && f.Field == name && f.Code == "invalid" {
			return true
		}
	}
	return false
}
