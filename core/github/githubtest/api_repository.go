package githubtest

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// repoHandler answers a route below a repository that the caller sees.
type repoHandler func(w http.ResponseWriter, r *http.Request, c caller, repo repository) error

// repo finds the repository of a request. What the caller may not see is 404; an old name redirects
// to the same route by id, keeping the method.
func (s *Server) repo(h repoHandler) http.HandlerFunc {
	return s.api(func(w http.ResponseWriter, r *http.Request, c caller) error {
		if c.app {
			return fail(http.StatusForbidden, "Resource not accessible by integration")
		}
		var repo repository
		var moved, ok bool
		name := r.PathValue("owner") + "/" + r.PathValue("repo")
		if id, err := strconv.ParseInt(r.PathValue("id"), 10, 64); err == nil {
			repo, ok = s.repositoryByID(id)
		} else {
			repo, moved, ok = s.repositoryNamed(name)
		}
		if !ok || !c.sees(s, repo) {
			return notFound()
		}
		if moved {
			status := http.StatusTemporaryRedirect
			if r.Method == http.MethodGet {
				status = http.StatusMovedPermanently
			}
			rest := strings.TrimPrefix(r.URL.EscapedPath(), "/api/v3/repos/"+name)
			to := fmt.Sprintf("%s/api/v3/repositories/%d%s", origin(r), repo.ID, rest)
			if r.URL.RawQuery != "" {
				to += "?" + r.URL.RawQuery
			}
			w.Header().Set("Location", to)
			return reply(w, status, object{"message": "Moved Permanently", "url": to, "documentation_url": "https://docs.github.com/rest"})
		}
		return h(w, r, c, repo)
	})
}

func (s *Server) getRepository(w http.ResponseWriter, r *http.Request, c caller, repo repository) error {
	return reply(w, http.StatusOK, s.repositoryJSON(r, repo, c))
}

func (s *Server) listBranches(w http.ResponseWriter, r *http.Request, c caller, repo repository) error {
	if !c.may(s, repo, "contents", "read") {
		return notAccessible("contents", "read")
	}
	refs, err := s.branches(r.Context(), repo.ID, "")
	if err != nil {
		return err
	}
	list := []object{}
	for _, ref := range page(w, r, refs) {
		list = append(list, object{
			"name": ref.Name, "protected": ref.Name == repo.DefaultBranch,
			"commit": object{"sha": ref.SHA, "url": s.repoAPI(r, repo) + "/commits/" + ref.SHA},
		})
	}
	return reply(w, http.StatusOK, list)
}

func (s *Server) listMatchingRefs(w http.ResponseWriter, r *http.Request, c caller, repo repository) error {
	if err := s.readable(r, c, repo); err != nil {
		return err
	}
	refs, err := s.branches(r.Context(), repo.ID, r.PathValue("ref"))
	if err != nil {
		return err
	}
	list := []object{}
	for _, ref := range refs { // there are no pages
		list = append(list, s.refJSON(r, repo, ref))
	}
	return reply(w, http.StatusOK, list)
}

func (s *Server) getRef(w http.ResponseWriter, r *http.Request, c caller, repo repository) error {
	if err := s.readable(r, c, repo); err != nil {
		return err
	}
	sha, err := s.branch(r.Context(), repo.ID, r.PathValue("ref"))
	if errors.Is(err, errNoObject) {
		return notFound()
	}
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, s.refJSON(r, repo, gitRef{Name: r.PathValue("ref"), SHA: sha}))
}

// readable checks the permission and, as GitHub's git database does, that there is any commit.
func (s *Server) readable(r *http.Request, c caller, repo repository) error {
	if !c.may(s, repo, "contents", "read") {
		return notAccessible("contents", "read")
	}
	refs, err := s.branches(r.Context(), repo.ID, "")
	if err != nil {
		return err
	}
	if len(refs) == 0 {
		return fail(http.StatusConflict, "Git Repository is empty.")
	}
	return nil
}

func (s *Server) getGitCommit(w http.ResponseWriter, r *http.Request, c caller, repo repository) error {
	if err := s.readable(r, c, repo); err != nil {
		return err
	}
	if !isSHA(r.PathValue("sha")) {
		return fail(http.StatusUnprocessableEntity, "The SHA is not valid.")
	}
	commit, err := s.commit(r.Context(), repo.ID, r.PathValue("sha"))
	if err != nil {
		return notFound()
	}
	body := s.gitCommitJSON(r, repo, commit)
	body["sha"], body["node_id"] = commit.SHA, "C_"+commit.SHA
	body["html_url"] = origin(r) + "/" + repo.fullName() + "/commit/" + commit.SHA
	body["parents"] = s.parentsJSON(r, repo, commit)
	return reply(w, http.StatusOK, body)
}

func (s *Server) getCommit(w http.ResponseWriter, r *http.Request, c caller, repo repository) error {
	if err := s.readable(r, c, repo); err != nil {
		return err
	}
	commit, err := s.commit(r.Context(), repo.ID, r.PathValue("ref"))
	if err != nil {
		return fail(http.StatusUnprocessableEntity, "No commit found for SHA: "+r.PathValue("ref"))
	}
	return reply(w, http.StatusOK, s.commitJSON(r, repo, commit))
}

func (s *Server) commitJSON(r *http.Request, repo repository, commit gitCommit) object {
	return object{
		"sha": commit.SHA, "node_id": "C_" + commit.SHA, "url": s.repoAPI(r, repo) + "/commits/" + commit.SHA,
		"html_url":     origin(r) + "/" + repo.fullName() + "/commit/" + commit.SHA,
		"comments_url": s.repoAPI(r, repo) + "/commits/" + commit.SHA + "/comments",
		"commit":       s.gitCommitJSON(r, repo, commit), "author": nil, "committer": nil,
		"parents": s.parentsJSON(r, repo, commit), "files": []object{},
	}
}

// getPermission tells an installation what a person may do.
func (s *Server) getPermission(w http.ResponseWriter, r *http.Request, _ caller, repo repository) error {
	a, ok := s.account(r.PathValue("login"))
	if !ok {
		return notFound()
	}
	names := map[Permission]string{NoPermission: "none", Pull: "read", Push: "write", Administer: "admin"}
	p := s.permissionOf(a.Login, repo)
	user := accountJSON(r, a)
	user["permissions"] = permissionsJSON(p)
	return reply(w, http.StatusOK, object{"permission": names[p], "role_name": names[p], "user": user})
}

func (s *Server) repoAPI(r *http.Request, repo repository) string {
	return origin(r) + "/api/v3/repos/" + repo.fullName()
}

func (s *Server) refJSON(r *http.Request, repo repository, ref gitRef) object {
	return object{
		"ref": "refs/heads/" + ref.Name, "node_id": "R_" + ref.SHA, "url": s.repoAPI(r, repo) + "/git/refs/heads/" + ref.Name,
		"object": object{"type": "commit", "sha": ref.SHA, "url": s.repoAPI(r, repo) + "/git/commits/" + ref.SHA},
	}
}

func (s *Server) gitCommitJSON(r *http.Request, repo repository, c gitCommit) object {
	return object{
		"author":    object{"name": c.Author, "email": c.AuthorEmail, "date": c.AuthorDate},
		"committer": object{"name": c.Author, "email": c.AuthorEmail, "date": c.CommitDate},
		"message":   c.Message, "comment_count": 0,
		"tree":         object{"sha": c.Tree, "url": s.repoAPI(r, repo) + "/git/trees/" + c.Tree},
		"url":          s.repoAPI(r, repo) + "/git/commits/" + c.SHA,
		"verification": object{"verified": false, "reason": "unsigned", "signature": nil, "payload": nil, "verified_at": nil},
	}
}

func (s *Server) parentsJSON(r *http.Request, repo repository, c gitCommit) []object {
	list := []object{}
	for _, sha := range c.Parents {
		list = append(list, object{"sha": sha, "url": s.repoAPI(r, repo) + "/commits/" + sha, "html_url": origin(r) + "/" + repo.fullName() + "/commit/" + sha})
	}
	return list
}

func permissionsJSON(p Permission) object {
	rank := p.rank()
	return object{
		"pull": rank >= Pull.rank(), "triage": rank >= Push.rank(), "push": rank >= Push.rank(),
		"maintain": rank >= Administer.rank(), "admin": rank >= Administer.rank(),
	}
}

func (s *Server) repositoryJSON(r *http.Request, repo repository, c caller) object {
	visibility := "public"
	if repo.Private {
		visibility = "private"
	}
	web, api := origin(r)+"/"+repo.fullName(), s.repoAPI(r, repo)
	body := object{
		"id": repo.ID, "node_id": nodeID("R", repo.ID), "name": repo.Name, "full_name": repo.fullName(),
		"owner": s.accountByLogin(r, repo.Owner), "private": repo.Private, "visibility": visibility,
		"html_url": web, "url": api, "clone_url": web + ".git", "git_url": "git://" + r.Host + "/" + repo.fullName() + ".git", "ssh_url": "git@" + r.Host + ":" + repo.fullName() + ".git", "svn_url": web,
		"description": repo.Description, "language": nullable(repo.Language), "fork": repo.Fork, "archived": repo.Archived, "disabled": false,
		"default_branch": repo.DefaultBranch, "size": 64, "stargazers_count": 0, "watchers_count": 0, "forks_count": 0, "open_issues_count": 0,
		"forks": 0, "watchers": 0, "open_issues": 0, "topics": []string{}, "license": nil, "mirror_url": nil, "homepage": nil,
		"has_issues": true, "has_projects": false, "has_wiki": false, "has_pages": false, "has_discussions": false, "has_downloads": true, "is_template": false, "network_count": 0, "subscribers_count": 0,
		"pushed_at": repo.PushedAt.UTC().Format(time.RFC3339), "created_at": repo.CreatedAt.UTC().Format(time.RFC3339), "updated_at": repo.PushedAt.UTC().Format(time.RFC3339),
	}
	link(body, api, repositoryLinks)
	switch {
	case c.person():
		body["permissions"] = permissionsJSON(s.permissionOf(c.token.Login, repo))
	case c.installation():
		body["permissions"] = object{"admin": false, "maintain": false, "push": false, "triage": false, "pull": false}
	}
	return body
}

func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}
