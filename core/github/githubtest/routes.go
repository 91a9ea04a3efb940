package githubtest

import (
	"net/http"
	"strings"
)

// routes is every address of the stand-in. A repository's REST routes are reached by name and, as
// redirects after a rename do, by id.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.indexPage)
	mux.HandleFunc("GET /standin.css", stylesheet)
	mux.HandleFunc("GET /login/oauth/authorize", s.authorizePage)
	mux.HandleFunc("POST /login/oauth/authorize", s.authorize)
	mux.HandleFunc("POST /login/oauth/access_token", s.accessToken)
	for _, prefix := range []string{"/apps/", "/github-apps/"} {
		mux.HandleFunc("GET "+prefix+"{slug}/installations/new", s.installPage)
		mux.HandleFunc("POST "+prefix+"{slug}/installations/new", s.install)
	}
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("GET /{owner}", s.ownerPage)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		render(w, http.StatusNotFound, "problem", "There is nothing at this address.")
	})
	mux.HandleFunc("GET /{owner}/{repo}", s.web)
	mux.HandleFunc("/{owner}/{repo}/{rest...}", s.web)

	mux.Handle("GET /api/v3/user", s.asPerson(s.getUser))
	mux.Handle("GET /api/v3/user/installations", s.asPerson(s.listUserInstallations))
	mux.Handle("GET /api/v3/user/installations/{id}/repositories", s.asPerson(s.listUserRepositories))
	mux.Handle("GET /api/v3/users/{login}", s.api(s.getAccount))
	mux.Handle("GET /api/v3/app", s.asApp(s.getApp))
	mux.Handle("GET /api/v3/app/installations", s.asApp(s.listInstallations))
	mux.Handle("GET /api/v3/app/installations/{id}", s.asApp(s.getInstallation))
	mux.Handle("GET /api/v3/repos/{owner}/{repo}/installation", s.asApp(s.getRepositoryInstallation))
	mux.Handle("POST /api/v3/app/installations/{id}/access_tokens", s.asApp(s.createInstallationToken))
	mux.Handle("GET /api/v3/app/hook/deliveries", s.asApp(s.listDeliveries))
	mux.Handle("POST /api/v3/app/hook/deliveries/{id}/attempts", s.asApp(s.redeliver))
	mux.Handle("DELETE /api/v3/applications/{client}/grant", s.asClient(s.deleteGrant))
	mux.Handle("DELETE /api/v3/installation/token", s.asInstallation(s.revokeInstallationToken))
	mux.Handle("GET /api/v3/installation/repositories", s.asInstallation(s.listInstallationRepositories))

	for pattern, h := range map[string]repoHandler{
		"GET ":                                  s.getRepository,
		"GET /branches":                         s.listBranches,
		"GET /git/matching-refs/heads/{ref...}": s.listMatchingRefs,
		"GET /git/ref/heads/{ref...}":           s.getRef,
		"GET /git/commits/{sha}":                s.getGitCommit,
		"GET /commits/{ref...}":                 s.getCommit,
		"GET /collaborators/{login}/permission": s.getPermission,
		"GET /compare/{basehead...}":            s.compare,
		"GET /pulls":                            s.listPulls,
		"POST /pulls":                           s.createPull,
		"GET /pulls/{number}":                   s.getPull,
		"PATCH /pulls/{number}":                 s.updatePull,
	} {
		method, path, _ := strings.Cut(pattern, " ")
		mux.Handle(method+" /api/v3/repos/{owner}/{repo}"+path, s.repo(h))
		mux.Handle(method+" /api/v3/repositories/{id}"+path, s.repo(h))
	}
	mux.Handle("/api/v3/", s.api(func(http.ResponseWriter, *http.Request, caller) error { return notFound() }))
	return mux
}

// web serves what hangs below /{owner}/{repo}: git when the name ends in .git, else pages.
func (s *Server) web(w http.ResponseWriter, r *http.Request) {
	rest := r.PathValue("rest")
	number, isPull := strings.CutPrefix(rest, "pull/")
	switch {
	case strings.HasSuffix(r.PathValue("repo"), ".git"):
		s.serveGit(w, r)
	case r.Method == http.MethodGet && rest == "":
		s.repositoryPage(w, r)
	case r.Method == http.MethodGet && isPull:
		r.SetPathValue("number", number)
		s.pullPage(w, r)
	default:
		http.NotFound(w, r)
	}
}
