package githubtest

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// installPage lets the signed-in person install the App on an account that they administer. As on
// GitHub a redirect_uri is ignored here.
func (s *Server) installPage(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("slug") != s.Config().AppSlug {
		render(w, http.StatusNotFound, "problem", "There is no App of this name.")
		return
	}
	type target struct {
		Login     string
		Installed bool
	}
	login := s.signedIn(r)
	var targets []target
	for _, name := range s.administered(login) {
		t := target{Login: name}
		for _, in := range s.installations() {
			t.Installed = t.Installed || strings.EqualFold(in.Account, name)
		}
		targets = append(targets, t)
	}
	render(w, http.StatusOK, "install", struct {
		AppSlug, Current, Done string
		Targets                []target
	}{s.Config().AppSlug, login, r.URL.Query().Get("done"), targets})
}

func (s *Server) install(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	account := r.PostFormValue("account")
	for _, name := range s.administered(s.signedIn(r)) {
		if name != account {
			continue
		}
		id, err := s.AddInstallation(account)
		if err != nil {
			s.pageFailed(w, r, err)
			return
		}
		if _, err := s.Deliver(r.Context(), "installation", object{"action": "created", "installation": object{"id": id}}); err != nil {
			s.pageFailed(w, r, err)
			return
		}
		s.mu.Lock()
		setup := s.setupURL
		s.mu.Unlock()
		if setup != "" {
			http.Redirect(w, r, withQuery(setup, url.Values{"installation_id": {strconv.FormatInt(id, 10)}, "setup_action": {"install"}}), http.StatusFound)
			return
		}
		http.Redirect(w, r, "?done="+account, http.StatusSeeOther)
		return
	}
	render(w, http.StatusForbidden, "problem", "Only somebody who administers the account can install the App on it.")
}

// administered are the accounts on which a person may install: their own, and those of whose every
// repository they are an administrator.
func (s *Server) administered(login string) []string {
	if login == "" {
		return nil
	}
	names := []string{login}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.state.Accounts {
		count, all := 0, true
		for _, repo := range s.state.Repositories {
			if repo.Owner == a.Login {
				count++
				all = all && repo.Access[strings.ToLower(login)] == Administer
			}
		}
		if a.Organization && count > 0 && all {
			names = append(names, a.Login)
		}
	}
	return names
}

// SetSetupURL is where the browser is sent after an installation; "" leaves it where it is.
func (s *Server) SetSetupURL(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setupURL = address
}
