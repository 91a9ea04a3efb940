package handlers

import (
	"cmp"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"agent-sandboxing/core"
	"agent-sandboxing/core/chat"
	"agent-sandboxing/views/link"
	"agent-sandboxing/views/pages"
)

// Installations lists the accounts; with exactly one, and unless asked to stay, it goes on to the
// form.
func (h *Handlers) Installations(c echo.Context) error {
	ctx := c.Request().Context()
	if c.QueryParam("refresh") != "" {
		h.Chat.Refresh(user(c))
		return c.Redirect(http.StatusSeeOther, link.Installations+"?stay=1")
	}
	accounts, err := h.Chat.Installations(ctx, user(c))
	notice, help := "", ""
	switch {
	case err == nil:
	case isKind(err, core.Unavailable, core.RateLimited, core.Forbidden):
		notice, help = "Could not read your accounts from GitHub. "+core.MessageOf(err), linkOf(err)
	default:
		return err
	}
	list := accounts.Installations
	if len(list) == 1 && accounts.Hidden == 0 && !list[0].Suspended && len(list[0].Missing) == 0 && c.QueryParam("stay") == "" {
		return c.Redirect(http.StatusSeeOther, link.NewIn(int64(list[0].ID)))
	}
	platform, err := h.Chat.Platform(ctx)
	if err != nil {
		return err
	}
	if notice == "" && user(c).Role != core.Admin { // who reads it above all pages
		notice = platform.AppProblem
	}
	p := pages.InstallationsProps{
		Layout: h.Frame(c, "Choose an account", "installations"), InstallURL: platform.InstallURL, Notice: notice, NoticeURL: help,
		Hidden: accounts.Hidden, AgainURL: link.GitHubSignIn(link.Installations + "?stay=1"),
	}
	for _, i := range list {
		p.Items = append(p.Items, installationProps(i))
	}
	return Page(c, http.StatusOK, pages.Installations(p))
}

// New is the new-session form. Without JavaScript each choice is a reload of it.
func (h *Handlers) New(c echo.Context) error {
	if c.QueryParam("installation") == "" {
		return c.Redirect(http.StatusSeeOther, link.Installations)
	}
	form, err := readNewQuery(c)
	if err != nil {
		return err
	}
	p, err := h.newProps(c, form)
	if err != nil {
		return err
	}
	if p.Text == "" {
		p.Text = h.takeDraft(c, c.Request().URL.RequestURI()).Text
	}
	return Page(c, http.StatusOK, pages.New(p))
}

// newForm is what the form shows: a choice so far and what was typed.
type newForm struct {
	installation core.InstallationID
	repository   core.RepositoryID // 0: none chosen
	query        string
	branch       string
	branchQuery  string
	whole        bool // look at all pages of a long list
	text         string
	egress       string
	clientKey    string
}

func readNewQuery(c echo.Context) (newForm, error) {
	f := newForm{
		query: c.QueryParam("q"), branch: c.QueryParam("branch"), branchQuery: c.QueryParam("branch_q"),
		text: c.QueryParam("text"), whole: c.QueryParam("all") != "", clientKey: core.NewID[string](),
	}
	installation, err := number(c.QueryParam("installation"))
	if err != nil {
		return f, err
	}
	repository, err := number(c.QueryParam("repository"))
	if err != nil {
		return f, err
	}
	f.installation, f.repository = core.InstallationID(installation), core.RepositoryID(repository)
	return f, nil
}

// number reads an id of GitHub's; "" is 0.
func number(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, core.NotFoundError()
	}
	return n, nil
}

// newProps fills the form. What is wrong with the choice is said beside it, not as an error page.
func (h *Handlers) newProps(c echo.Context, f newForm) (pages.NewProps, error) {
	ctx, u := c.Request().Context(), user(c)
	accounts, err := h.Chat.Installations(ctx, u)
	if err != nil {
		return pages.NewProps{}, err
	}
	platform, err := h.Chat.Platform(ctx)
	if err != nil {
		return pages.NewProps{}, err
	}
	p := pages.NewProps{
		Layout: h.Frame(c, "New session", "new"), Several: len(accounts.Installations) > 1 || accounts.Hidden > 0,
		Query: f.query, BranchQuery: f.branchQuery, Text: f.text, ClientKey: f.clientKey,
		MaxBytes: core.MaxMessageBytes, Policy: string(h.Chat.BashPolicy()), Model: platform.Model,
	}
	found := false
	for _, i := range accounts.Installations {
		if i.ID == f.installation {
			p.Installation, found = installationProps(i), true
		}
	}
	if !found {
		return pages.NewProps{}, core.NotFoundError()
	}
	if f.repository == 0 {
		found, err := h.Chat.SearchRepositories(ctx, u, f.installation, f.query, f.whole)
		if err != nil {
			return pages.NewProps{}, err
		}
		p.MoreFound, p.Unread = found.More, found.Unread
		for _, r := range found.Repositories {
			p.Repositories = append(p.Repositories, repositoryProps(r))
		}
		return p, nil
	}
	repo, err := h.Chat.Repository(ctx, u, f.installation, f.repository)
	if err != nil {
		return pages.NewProps{}, err
	}
	chosen := repositoryProps(repo)
	p.Repository = &chosen
	policy, err := h.Chat.PolicyFor(ctx, repo.ID)
	if err != nil {
		return pages.NewProps{}, err
	}
	p.Policy = string(policy.Effective)
	network, err := h.Chat.NetworkFor(ctx, repo.ID)
	if err != nil {
		return pages.NewProps{}, err
	}
	p.Egress = cmp.Or(f.egress, string(network.Effective))
	for _, m := range network.Effective.Modes() {
		p.Egresses = append(p.Egresses, string(m))
	}
	return p, h.branchProps(c, &p, repo, f)
}

func (h *Handlers) branchProps(c echo.Context, p *pages.NewProps, repo core.Repository, f newForm) error {
	ctx, u := c.Request().Context(), user(c)
	switch {
	case repo.Archived:
		p.RepoError = "This repository is archived on GitHub and cannot be changed."
		return nil
	case !repo.CanPush:
		p.RepoError = "You may read this repository but not push to it. Ask for write access on GitHub."
		return nil
	}
	name := f.branch
	if name == "" {
		name = repo.DefaultBranch
	}
	branch, err := h.Chat.ResolveBranch(ctx, u, repo, name)
	switch {
	case err == nil:
		b := branchProps(branch, repo)
		p.Branch = &b
	case core.CodeOf(err) == "empty_repository":
		p.RepoError = core.MessageOf(err)
		return nil
	case isKind(err, core.Invalid, core.Conflict, core.NotFound):
		p.BranchError = core.MessageOf(err)
	default:
		return err
	}
	list, more, err := h.Chat.Branches(ctx, u, repo, f.branchQuery)
	switch {
	case err == nil:
	case isKind(err, core.Conflict): // an empty repository has none
		return nil
	default:
		return err
	}
	p.MoreBranches = more
	for _, b := range list {
		p.Branches = append(p.Branches, branchProps(b, repo))
	}
	return nil
}

// CreateForm is a new session as a form or as JSON.
type CreateForm struct {
	Installation int64  `form:"installation" json:"installation"`
	Repository   int64  `form:"repository" json:"repository"`
	FullName     string `form:"full_name" json:"full_name"` // owner/name, instead of the id
	Branch       string `form:"branch" json:"branch"`
	SHA          string `form:"sha" json:"sha"` // the commit that the person saw
	Text         string `form:"text" json:"text"`
	Egress       string `form:"egress" json:"egress"` // open, allowlist or none; "" is the loosest that is allowed
	ClientKey    string `form:"client_key" json:"client_key"`
}

// Create starts a session and goes to it at once; its page shows the preparation.
func (h *Handlers) Create(c echo.Context) error {
	var form CreateForm
	if err := bind(c, &form); err != nil {
		return err
	}
	session, err := h.create(c, form)
	if err != nil {
		return h.createFailed(c, form, err)
	}
	path := link.Session(string(session.ID))
	if WantsJSON(c.Request()) {
		c.Response().Header().Set("Location", path)
		return h.sessionJSON(c, http.StatusCreated, session.ID)
	}
	return seeOther(c, path)
}

func (h *Handlers) create(c echo.Context, form CreateForm) (core.ChatSession, error) {
	ctx, u := c.Request().Context(), user(c)
	if form.FullName != "" && form.Repository == 0 {
		repo, err := h.Chat.RepositoryNamed(ctx, u, core.InstallationID(form.Installation), form.FullName)
		if err != nil {
			return core.ChatSession{}, err
		}
		form.Repository = int64(repo.ID)
	}
	return h.Chat.Create(ctx, u, chat.CreateRequest{
		Installation: core.InstallationID(form.Installation), Repository: core.RepositoryID(form.Repository),
		Branch: form.Branch, ShownSHA: form.SHA, Text: form.Text, Egress: core.EgressMode(form.Egress), ClientKey: idempotencyKey(c, form.ClientKey),
	})
}

// createFailed shows the form again with what was typed and what is wrong.
func (h *Handlers) createFailed(c echo.Context, form CreateForm, cause error) error {
	status := StatusOf(cause)
	if WantsJSON(c.Request()) || status >= 500 || status == http.StatusUnauthorized || status == http.StatusNotFound {
		return cause
	}
	branch := form.Branch
	if core.CodeOf(cause) == "branch_not_found" {
		branch = ""
	}
	p, err := h.newProps(c, newForm{
		installation: core.InstallationID(form.Installation), repository: core.RepositoryID(form.Repository),
		branch: branch, text: form.Text, egress: form.Egress, clientKey: form.ClientKey,
	})
	if err != nil {
		return cause
	}
	message := core.MessageOf(cause)
	switch core.CodeOf(cause) {
	case "message_empty", "message_too_large", "message_invalid":
		p.TextError = message
	case "base_moved", "branch_not_found", "empty_repository":
		p.BranchError = message
	case "repository_archived", "push_required":
		p.RepoError = message
	default:
		p.Error = message
	}
	return Page(c, status, pages.New(p))
}

func installationProps(i core.Installation) pages.InstallationProps {
	p := pages.InstallationProps{
		ID: int64(i.ID), Account: i.Account, Type: i.AccountType, AllRepos: i.AllRepos, Suspended: i.Suspended, Missing: i.Missing, SettingsURL: i.SettingsURL,
	}
	if i.AccountID != 0 {
		p.AvatarURL = link.Avatar(i.AccountID)
	}
	return p
}

func repositoryProps(r core.Repository) pages.RepositoryProps {
	return pages.RepositoryProps{
		ID: int64(r.ID), FullName: r.FullName(), Description: r.Description, Language: r.Language,
		DefaultBranch: r.DefaultBranch, Private: r.Private, Archived: r.Archived, Fork: r.Fork,
		CanPush: r.CanPush, PushedAt: r.PushedAt, Fixture: r.IsFixture(),
	}
}

func branchProps(b core.Branch, r core.Repository) pages.BranchProps {
	return pages.BranchProps{
		Name: b.Name, SHA: b.SHA, Subject: b.Subject, CommittedAt: b.CommittedAt,
		Protected: b.Protected, Default: b.Name == r.DefaultBranch,
	}
}
