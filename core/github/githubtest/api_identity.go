package githubtest

import (
	"net/http"
	"strconv"
)

func (s *Server) getUser(w http.ResponseWriter, r *http.Request, c caller) error {
	a, ok := s.account(c.token.Login)
	if !ok {
		return fail(http.StatusUnauthorized, "Bad credentials")
	}
	body := accountJSON(r, a)
	profile(body, a)
	return reply(w, http.StatusOK, body)
}

func (s *Server) getAccount(w http.ResponseWriter, r *http.Request, _ caller) error {
	a, ok := s.account(r.PathValue("login"))
	if !ok {
		return notFound()
	}
	body := accountJSON(r, a)
	profile(body, a)
	return reply(w, http.StatusOK, body)
}

// listUserInstallations lists the installations in which the person reaches at least one repository.
func (s *Server) listUserInstallations(w http.ResponseWriter, r *http.Request, c caller) error {
	var seen []installation
	for _, in := range s.installations() {
		if c.token.Login == in.Account || len(s.reached(in, c)) > 0 {
			seen = append(seen, in)
		}
	}
	list := []object{}
	for _, in := range page(w, r, seen) {
		list = append(list, s.installationJSON(r, in))
	}
	return reply(w, http.StatusOK, object{"total_count": len(seen), "installations": list})
}

// listUserRepositories is what the installation and the person both reach.
func (s *Server) listUserRepositories(w http.ResponseWriter, r *http.Request, c caller) error {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return notFound()
	}
	in, ok := s.installation(id)
	if !ok {
		return notFound()
	}
	seen := s.reached(in, c)
	if len(seen) == 0 && c.token.Login != in.Account {
		return notFound()
	}
	if in.Suspended {
		return fail(http.StatusForbidden, "This installation has been suspended")
	}
	list := []object{}
	for _, repo := range page(w, r, seen) {
		list = append(list, s.repositoryJSON(r, repo, c))
	}
	return reply(w, http.StatusOK, object{"total_count": len(seen), "repository_selection": selection(in), "repositories": list})
}

// reached are the installation's repositories that a person was given, public ones of strangers left out.
func (s *Server) reached(in installation, c caller) []repository {
	var seen []repository
	for _, repo := range s.installed(in) {
		if s.given(c.token.Login, repo) {
			seen = append(seen, repo)
		}
	}
	return seen
}

// given says that a person has been let in, which public reading is not.
func (s *Server) given(login string, r repository) bool {
	public := r
	public.Private = true
	return s.permissionOf(login, public) != NoPermission
}

func accountJSON(r *http.Request, a account) object {
	kind := "User"
	switch {
	case a.Organization:
		kind = "Organization"
	case a.Bot:
		kind = "Bot"
	}
	api := origin(r) + "/api/v3/users/" + a.Login
	body := object{
		"login": a.Login, "id": a.ID, "node_id": nodeID("U", a.ID), "avatar_url": origin(r) + "/" + a.Login + ".png", "gravatar_id": "",
		"url": api, "html_url": origin(r) + "/" + a.Login, "type": kind, "site_admin": false,
	}
	link(body, api, accountLinks)
	return body
}

// profile adds what only an answer about the account itself has.
func profile(body object, a account) {
	body["name"], body["user_view_type"] = nullable(a.Name), "public"
	for _, unset := range []string{"email", "company", "blog", "location", "hireable", "bio", "twitter_username"} {
		body[unset] = nil
	}
	for _, count := range []string{"public_repos", "public_gists", "followers", "following"} {
		body[count] = 0
	}
	body["created_at"], body["updated_at"] = "2025-01-06T09:00:00Z", "2025-01-06T09:00:00Z"
}

func (s *Server) accountByLogin(r *http.Request, login string) object {
	a, _ := s.account(login)
	return accountJSON(r, a)
}

func nodeID(kind string, id int64) string { return kind + "_" + strconv.FormatInt(id, 36) }
