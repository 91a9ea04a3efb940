package githubtest

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// installationTokenLife is how long a minted token works.
const installationTokenLife = time.Hour

// levels of an App permission; the keys of knownPermissions are the names that can be asked for.
var knownPermissions = map[string][]string{
	"contents":      {"read", "write"},
	"metadata":      {"read"},
	"pull_requests": {"read", "write"},
	"workflows":     {"write"},
	"checks":        {"read", "write"},
	"actions":       {"read", "write"},
	"issues":        {"read", "write"},
}

func (s *Server) getApp(w http.ResponseWriter, r *http.Request, _ caller) error {
	s.mu.Lock()
	a := s.state.App
	count := len(s.state.Installations)
	s.mu.Unlock()
	return reply(w, http.StatusOK, object{
		"id": a.ID, "slug": a.Slug, "node_id": nodeID("A", a.ID), "name": "Agent Sandboxing (demo)", "client_id": a.ClientID,
		"description": "", "external_url": origin(r), "html_url": origin(r) + "/apps/" + a.Slug,
		"created_at": "2025-01-06T09:00:00Z", "updated_at": "2025-01-06T09:00:00Z",
		"permissions": a.Permissions, "events": []string{}, "installations_count": count, "owner": accountJSON(r, account{ID: 1, Login: "octo-operator"}),
	})
}

func (s *Server) listInstallations(w http.ResponseWriter, r *http.Request, _ caller) error {
	list := []object{}
	for _, in := range page(w, r, s.installations()) {
		list = append(list, s.installationJSON(r, in))
	}
	return reply(w, http.StatusOK, list)
}

func (s *Server) getInstallation(w http.ResponseWriter, r *http.Request, _ caller) error {
	in, err := s.installationOf(r)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, s.installationJSON(r, in))
}

// getRepositoryInstallation finds the installation that reaches a repository.
func (s *Server) getRepositoryInstallation(w http.ResponseWriter, r *http.Request, _ caller) error {
	repo, _, ok := s.repositoryNamed(r.PathValue("owner") + "/" + r.PathValue("repo"))
	for _, in := range s.installations() {
		if ok && strings.EqualFold(repo.Owner, in.Account) && (in.All || slices.Contains(in.Repositories, repo.ID)) {
			return reply(w, http.StatusOK, s.installationJSON(r, in))
		}
	}
	return notFound()
}

func (s *Server) installationOf(r *http.Request) (installation, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return installation{}, notFound()
	}
	in, ok := s.installation(id)
	if !ok {
		return installation{}, notFound()
	}
	return in, nil
}

// tokenRequest is the body of a mint.
type tokenRequest struct {
	RepositoryIDs []int64           `json:"repository_ids"`
	Repositories  []string          `json:"repositories"`
	Permissions   map[string]string `json:"permissions"`
}

// createInstallationToken mints a token that is no wider than what was asked and what was granted.
func (s *Server) createInstallationToken(w http.ResponseWriter, r *http.Request, _ caller) error {
	in, err := s.installationOf(r)
	if err != nil {
		return err
	}
	if in.Suspended {
		return fail(http.StatusForbidden, "This installation has been suspended")
	}
	var ask tokenRequest
	if r.ContentLength != 0 {
		if err := decodeBody(r, &ask); err != nil {
			return err
		}
	}
	repos, err := s.askedRepositories(in, ask)
	if err != nil {
		return err
	}
	permissions, err := askedPermissions(in, ask.Permissions)
	if err != nil {
		return err
	}
	secret := s.newInstallationSecret(r.Header.Get("X-GitHub-Stateless-S2S-Token"))
	t := token{Kind: kindInstallation, Installation: in.ID, Permissions: permissions}
	shown := []object{}
	for _, repo := range repos {
		t.Repositories = append(t.Repositories, repo.ID)
		shown = append(shown, s.repositoryJSON(r, repo, caller{app: true}))
	}
	err = s.update(func(*state) error {
		t.ExpiresAt = s.now().Add(installationTokenLife).Truncate(time.Second)
		s.addToken(secret, t)
		return nil
	})
	if err != nil {
		return err
	}
	body := object{
		"token": secret, "expires_at": t.ExpiresAt.UTC().Format(time.RFC3339),
		"permissions": permissions, "repository_selection": selection(in),
	}
	if len(ask.RepositoryIDs)+len(ask.Repositories) > 0 {
		body["repository_selection"], body["repositories"] = "selected", shown
	}
	return reply(w, http.StatusCreated, body)
}

func (s *Server) askedRepositories(in installation, ask tokenRequest) ([]repository, error) {
	have := s.installed(in)
	if len(ask.RepositoryIDs)+len(ask.Repositories) == 0 {
		return have, nil
	}
	chosen := slices.DeleteFunc(slices.Clone(have), func(r repository) bool {
		return !slices.Contains(ask.RepositoryIDs, r.ID) && !slices.Contains(ask.Repositories, r.Name)
	})
	if len(chosen) != len(ask.RepositoryIDs)+len(ask.Repositories) {
		return nil, fail(http.StatusUnprocessableEntity, "There is at least one repository that does not exist or is not accessible to the parent installation.")
	}
	return chosen, nil
}

func askedPermissions(in installation, ask map[string]string) (map[string]string, error) {
	if len(ask) == 0 {
		return in.Permissions, nil
	}
	given := maps.Clone(ask)
	for name, level := range ask {
		levels, known := knownPermissions[name]
		if !known || !slices.Contains(levels, level) {
			return nil, fail(http.StatusUnprocessableEntity, fmt.Sprintf("Invalid request.\n\n%q is not a permitted key or value of permissions.", name))
		}
		if !grants(in.Permissions, name, level) {
			return nil, fail(http.StatusUnprocessableEntity, "The permissions requested are not granted to this installation.")
		}
	}
	given["metadata"] = "read"
	return given, nil
}

// newInstallationSecret is of the short form or, as GitHub began to hand out in 2026, of the long one:
// over 500 characters with dots, dashes and underscores. The header of a mint chooses.
func (s *Server) newInstallationSecret(header string) string {
	if header != "enabled" && (!s.stateless || header == "disabled") {
		return "ghs_" + randomText(36)
	}
	part := func(n int) string { return base64.RawURLEncoding.EncodeToString([]byte(randomText(n))) }
	return strings.Join([]string{fmt.Sprintf("ghs_%d_%s", s.Config().AppID, part(27)), part(180), part(170)}, ".")
}

func (s *Server) revokeInstallationToken(w http.ResponseWriter, _ *http.Request, c caller) error {
	err := s.update(func(st *state) error {
		st.Tokens = slices.DeleteFunc(st.Tokens, func(t token) bool { return t.Hash == c.token.Hash })
		return nil
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) listInstallationRepositories(w http.ResponseWriter, r *http.Request, c caller) error {
	var seen []repository
	for _, id := range c.token.Repositories {
		if repo, ok := s.repositoryByID(id); ok && c.may(s, repo, "metadata", "read") {
			seen = append(seen, repo)
		}
	}
	list := []object{}
	for _, repo := range page(w, r, seen) {
		list = append(list, s.repositoryJSON(r, repo, c))
	}
	return reply(w, http.StatusOK, object{"total_count": len(seen), "repository_selection": "selected", "repositories": list})
}

func selection(in installation) string {
	if in.All {
		return "all"
	}
	return "selected"
}

func (s *Server) installationJSON(r *http.Request, in installation) object {
	owner := s.accountByLogin(r, in.Account)
	api := origin(r) + "/api/v3"
	body := object{
		"id": in.ID, "account": owner, "repository_selection": selection(in), "app_id": s.Config().AppID, "app_slug": s.Config().AppSlug,
		"target_id": owner["id"], "target_type": owner["type"], "permissions": in.Permissions, "events": []string{},
		"access_tokens_url": fmt.Sprintf("%s/app/installations/%d/access_tokens", api, in.ID),
		"repositories_url":  api + "/installation/repositories",
		"html_url":          fmt.Sprintf("%s/settings/installations/%d", origin(r), in.ID),
		"created_at":        in.CreatedAt.UTC().Format(time.RFC3339), "updated_at": in.CreatedAt.UTC().Format(time.RFC3339),
		"single_file_name": nil, "has_multiple_single_files": false, "single_file_paths": []string{},
		"suspended_at": nil, "suspended_by": nil,
	}
	if in.Suspended {
		body["suspended_at"], body["suspended_by"] = body["updated_at"], owner
	}
	return body
}
