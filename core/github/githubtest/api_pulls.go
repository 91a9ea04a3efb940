package githubtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxPullBody is GitHub's limit, in characters.
const maxPullBody = 65536

func (s *Server) listPulls(w http.ResponseWriter, r *http.Request, c caller, repo repository) error {
	if !c.may(s, repo, "pull_requests", "read") {
		return notAccessible("pull_requests", "read")
	}
	pulls, err := s.pulls(r.Context(), repo)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	state := q.Get("state")
	pulls = slices.DeleteFunc(pulls, func(p pull) bool {
		// Without an owner prefix GitHub ignores head and answers every pull request.
		if owner, branch, ok := strings.Cut(q.Get("head"), ":"); ok && (!strings.EqualFold(owner, repo.Owner) || branch != p.Head) {
			return true
		}
		if q.Get("base") != "" && q.Get("base") != p.Base {
			return true
		}
		return state != "all" && p.Closed != (state == "closed")
	})
	if q.Get("direction") != "asc" {
		slices.Reverse(pulls)
	}
	list := []object{}
	for _, p := range page(w, r, pulls) {
		list = append(list, s.pullJSON(r, repo, p))
	}
	return reply(w, http.StatusOK, list)
}

func (s *Server) getPull(w http.ResponseWriter, r *http.Request, c caller, repo repository) error {
	if !c.may(s, repo, "pull_requests", "read") {
		return notAccessible("pull_requests", "read")
	}
	p, err := s.pullOf(r, repo)
	if err != nil {
		return err
	}
	return s.replyPull(w, r, http.StatusOK, repo, p)
}

func (s *Server) createPull(w http.ResponseWriter, r *http.Request, c caller, repo repository) error {
	if err := writable(s, c, repo); err != nil {
		return err
	}
	var ask struct {
		Title, Head, Base, Body string
		Draft                   bool
	}
	if err := decodeBody(r, &ask); err != nil {
		return err
	}
	owner, branch, ok := strings.Cut(ask.Head, ":")
	if !ok {
		owner, branch = repo.Owner, ask.Head
	}
	p := pull{RepositoryID: repo.ID, Title: ask.Title, Body: ask.Body, Head: branch, Base: ask.Base, Draft: ask.Draft, Author: c.login()}
	if !strings.EqualFold(owner, repo.Owner) {
		return invalid(object{"resource": "PullRequest", "field": "head", "code": "invalid"})
	}
	if err := s.checkNewPull(r.Context(), repo, &p); err != nil {
		return err
	}
	err := s.update(func(st *state) error {
		for _, have := range st.Pulls {
			if have.RepositoryID == repo.ID && !have.Closed && have.Head == p.Head && have.Base == p.Base {
				return invalid(object{"resource": "PullRequest", "code": "custom", "message": fmt.Sprintf("A pull request already exists for %s:%s.", repo.Owner, p.Head)})
			}
			if have.RepositoryID == repo.ID {
				p.Number = max(p.Number, have.Number)
			}
		}
		p.Number++
		p.ID = s.nextID()
		p.CreatedAt, p.UpdatedAt = s.now(), s.now()
		st.Pulls = append(st.Pulls, p)
		return nil
	})
	if err != nil {
		return err
	}
	w.Header().Set("Location", fmt.Sprintf("%s/pulls/%d", s.repoAPI(r, repo), p.Number))
	return s.replyPull(w, r, http.StatusCreated, repo, p)
}

// checkNewPull resolves both branches and refuses what GitHub refuses.
func (s *Server) checkNewPull(ctx context.Context, repo repository, p *pull) error {
	if p.Title == "" {
		return invalid(object{"resource": "PullRequest", "field": "title", "code": "missing_field"})
	}
	if len([]rune(p.Body)) > maxPullBody {
		return invalid(object{"resource": "Issue", "field": "body", "code": "custom", "message": "body is too long (maximum is 65536 characters)"})
	}
	var err error
	if p.BaseSHA, err = s.branch(ctx, repo.ID, p.Base); err != nil {
		return invalid(object{"resource": "PullRequest", "field": "base", "code": "invalid"})
	}
	if p.HeadSHA, err = s.branch(ctx, repo.ID, p.Head); err != nil {
		return invalid(object{"resource": "PullRequest", "field": "head", "code": "invalid"})
	}
	n, err := s.ahead(ctx, repo.ID, p.BaseSHA, p.HeadSHA)
	if err != nil {
		return err
	}
	if n == 0 {
		return invalid(object{"resource": "PullRequest", "code": "custom", "message": fmt.Sprintf("No commits between %s and %s", p.Base, p.Head)})
	}
	return nil
}

func (s *Server) updatePull(w http.ResponseWriter, r *http.Request, c caller, repo repository) error {
	if err := writable(s, c, repo); err != nil {
		return err
	}
	var ask struct{ Title, Body, State, Base *string }
	if err := decodeBody(r, &ask); err != nil {
		return err
	}
	p, err := s.pullOf(r, repo)
	if err != nil {
		return err
	}
	if ask.Body != nil && len([]rune(*ask.Body)) > maxPullBody {
		return invalid(object{"resource": "Issue", "field": "body", "code": "custom", "message": "body is too long (maximum is 65536 characters)"})
	}
	if ask.Base != nil {
		base, err := s.branch(r.Context(), repo.ID, *ask.Base)
		if err != nil {
			return invalid(object{"resource": "PullRequest", "field": "base", "code": "invalid"})
		}
		if n, err := s.ahead(r.Context(), repo.ID, base, p.HeadSHA); err != nil || n == 0 {
			return invalid(object{"resource": "PullRequest", "field": "base", "code": "custom", "message": fmt.Sprintf("There are no new commits between base branch '%s' and head branch '%s'", *ask.Base, p.Head)})
		}
	}
	reopen := ask.State != nil && *ask.State == "open" && p.Closed
	if reopen {
		head, err := s.branch(r.Context(), repo.ID, p.Head)
		if _, baseErr := s.branch(r.Context(), repo.ID, p.Base); err != nil || baseErr != nil || head != p.HeadSHA || p.MergeSHA != "" {
			return invalid(object{"resource": "PullRequest", "field": "state", "code": "custom", "message": "state cannot be changed. The " + p.Head + " branch was force-pushed or recreated."})
		}
	}
	err = s.changePull(repo.ID, p.Number, func(p *pull) {
		if ask.Title != nil {
			p.Title = *ask.Title
		}
		if ask.Body != nil {
			p.Body = *ask.Body
		}
		if ask.Base != nil {
			p.Base = *ask.Base
		}
		if ask.State != nil && *ask.State == "closed" && !p.Closed {
			p.Closed, p.ClosedAt = true, s.now()
		}
		if reopen {
			p.Closed, p.ClosedAt = false, time.Time{}
		}
		p.UpdatedAt = s.now()
	})
	if err != nil {
		return err
	}
	if p, err = s.pullOf(r, repo); err != nil {
		return err
	}
	return s.replyPull(w, r, http.StatusOK, repo, p)
}

func writable(s *Server, c caller, repo repository) error {
	if !c.may(s, repo, "pull_requests", "write") {
		return notAccessible("pull_requests", "write")
	}
	if repo.Archived {
		return fail(http.StatusForbidden, "Repository was archived so is read-only.")
	}
	return nil
}

func (s *Server) pullOf(r *http.Request, repo repository) (pull, error) {
	number, err := strconv.Atoi(r.PathValue("number"))
	if err != nil {
		return pull{}, notFound()
	}
	pulls, err := s.pulls(r.Context(), repo)
	if err != nil {
		return pull{}, err
	}
	i := slices.IndexFunc(pulls, func(p pull) bool { return p.Number == number })
	if i < 0 {
		return pull{}, notFound()
	}
	return pulls[i], nil
}

// pulls returns a repository's pull requests by number, after following their branches: a moved head
// is taken over, a deleted one closes, and so does a deleted base.
func (s *Server) pulls(ctx context.Context, repo repository) ([]pull, error) {
	refs, err := s.branches(ctx, repo.ID, "")
	if err != nil {
		return nil, err
	}
	heads := map[string]string{}
	for _, ref := range refs {
		heads[ref.Name] = ref.SHA
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var pulls []pull
	changed := false
	for i := range s.state.Pulls {
		p := &s.state.Pulls[i]
		if p.RepositoryID != repo.ID {
			continue
		}
		before := *p
		head := heads[p.Head]
		switch {
		case p.Closed:
		case head == "" || heads[p.Base] == "":
			p.Closed, p.ClosedAt, p.UpdatedAt = true, s.now(), s.now()
		case head != p.HeadSHA:
			p.HeadSHA, p.UpdatedAt = head, s.now()
		}
		if base := heads[p.Base]; base != "" && !p.Closed {
			p.BaseSHA = base
		}
		changed = changed || *p != before
		pulls = append(pulls, *p)
	}
	if changed {
		err = s.save()
	}
	return pulls, err
}

func (s *Server) changePull(repositoryID int64, number int, change func(*pull)) error {
	return s.update(func(st *state) error {
		i := slices.IndexFunc(st.Pulls, func(p pull) bool { return p.RepositoryID == repositoryID && p.Number == number })
		if i < 0 {
			return errors.New("no such pull request")
		}
		change(&st.Pulls[i])
		return nil
	})
}

// replyPull answers one pull request with the figures that lists leave out.
func (s *Server) replyPull(w http.ResponseWriter, r *http.Request, status int, repo repository, p pull) error {
	body := s.pullJSON(r, repo, p)
	files, err := s.diffstat(r.Context(), repo.ID, p.BaseSHA, p.HeadSHA)
	if err != nil {
		return err
	}
	commits, err := s.ahead(r.Context(), repo.ID, p.BaseSHA, p.HeadSHA)
	if err != nil {
		return err
	}
	additions, deletions := totals(files)
	body["additions"], body["deletions"], body["changed_files"], body["commits"] = additions, deletions, len(files), commits
	body["merged"], body["mergeable"], body["mergeable_state"], body["rebaseable"] = p.MergeSHA != "", true, "clean", true
	body["merged_by"], body["comments"], body["review_comments"], body["maintainer_can_modify"] = nil, 0, 0, false
	return reply(w, status, body)
}

func totals(files []fileStat) (additions, deletions int) {
	for _, f := range files {
		additions += max(0, f.Additions)
		deletions += max(0, f.Deleted)
	}
	return additions, deletions
}

func (s *Server) pullJSON(r *http.Request, repo repository, p pull) object {
	state := "open"
	if p.Closed {
		state = "closed"
	}
	web, api := fmt.Sprintf("%s/%s/pull/%d", origin(r), repo.fullName(), p.Number), fmt.Sprintf("%s/pulls/%d", s.repoAPI(r, repo), p.Number)
	side := func(branch, sha string) object {
		return object{
			"label": repo.Owner + ":" + branch, "ref": branch, "sha": sha,
			"user": s.accountByLogin(r, repo.Owner), "repo": s.repositoryJSON(r, repo, caller{app: true}),
		}
	}
	body := object{
		"id": p.ID, "node_id": nodeID("PR", p.ID), "number": p.Number, "state": state, "locked": false, "draft": p.Draft,
		"title": p.Title, "body": nullable(p.Body), "user": s.accountByLogin(r, p.Author), "author_association": "CONTRIBUTOR",
		"html_url": web, "diff_url": web + ".diff", "patch_url": web + ".patch", "url": api,
		"created_at": stamp(p.CreatedAt), "updated_at": stamp(p.UpdatedAt), "closed_at": stamp(p.ClosedAt), "merged_at": nil,
		"merge_commit_sha": nullable(p.MergeSHA), "head": side(p.Head, p.HeadSHA), "base": side(p.Base, p.BaseSHA),
		"assignee": nil, "assignees": []object{}, "requested_reviewers": []object{}, "requested_teams": []object{}, "labels": []object{},
		"milestone": nil, "auto_merge": nil, "active_lock_reason": nil,
	}
	link(body, api, pullLinks)
	issue := fmt.Sprintf("%s/issues/%d", s.repoAPI(r, repo), p.Number)
	body["issue_url"], body["comments_url"], body["statuses_url"] = issue, issue+"/comments", s.repoAPI(r, repo)+"/statuses/"+p.HeadSHA
	body["_links"] = object{
		"self": href(api), "html": href(web), "issue": href(issue), "comments": href(issue + "/comments"), "commits": href(api + "/commits"),
		"review_comments": href(api + "/comments"), "review_comment": href(s.repoAPI(r, repo) + "/pulls/comments{/number}"),
		"statuses": href(s.repoAPI(r, repo) + "/statuses/" + p.HeadSHA),
	}
	if p.MergeSHA != "" {
		body["merged_at"] = stamp(p.ClosedAt)
	}
	return body
}

func href(address string) object { return object{"href": address} }

// stamp is a time as the API writes it, null for none.
func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(time.RFC3339)
}
