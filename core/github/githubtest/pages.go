package githubtest

import (
	"bytes"
	"embed"
	"errors"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
)

//go:embed pages
var pageFiles embed.FS

// maxPatchShown bounds the patch on a pull request's page, in bytes.
const maxPatchShown = 256 << 10

// render writes one page of pages/; the templates were parsed by a test, so they parse here.
func render(w http.ResponseWriter, status int, name string, data any) {
	var b bytes.Buffer
	t, err := template.ParseFS(pageFiles, "pages/layout.html", "pages/"+name+".html")
	if err == nil {
		err = t.ExecuteTemplate(&b, "layout", data)
	}
	if err != nil {
		http.Error(w, "the stand-in's page is broken: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the client has gone away when this fails
}

func stylesheet(w http.ResponseWriter, r *http.Request) {
	http.ServeFileFS(w, r, pageFiles, "pages/standin.css")
}

// visible finds the repository of a page; a private one needs a signed-in person who was let in.
func (s *Server) visible(r *http.Request) (repository, bool) {
	repo, _, ok := s.repositoryNamed(r.PathValue("owner") + "/" + r.PathValue("repo"))
	if !ok || repo.Private && !s.given(s.signedIn(r), repo) {
		return repository{}, false
	}
	return repo, true
}

type repositoryOnPage struct {
	FullName, Description, Language string
	Private, Archived               bool
}

func onPage(r repository) repositoryOnPage {
	return repositoryOnPage{FullName: r.fullName(), Description: r.Description, Language: r.Language, Private: r.Private, Archived: r.Archived}
}

// indexPage lists every repository that the browser's person may see.
func (s *Server) indexPage(w http.ResponseWriter, r *http.Request) {
	s.listPage(w, r, "")
}

// ownerPage lists those of one account.
func (s *Server) ownerPage(w http.ResponseWriter, r *http.Request) {
	owner := r.PathValue("owner")
	s.mu.Lock()
	known := slices.ContainsFunc(s.state.Accounts, func(a account) bool { return strings.EqualFold(a.Login, owner) })
	s.mu.Unlock()
	if !known {
		render(w, http.StatusNotFound, "problem", "There is no account of that name.")
		return
	}
	s.listPage(w, r, owner)
}

// listPage lists the repositories that the browser's person may see, of owner or of everybody when "".
func (s *Server) listPage(w http.ResponseWriter, r *http.Request, owner string) {
	login := s.signedIn(r)
	s.mu.Lock()
	all := make([]repository, 0, len(s.state.Repositories))
	for _, repo := range s.state.Repositories {
		all = append(all, repo.clone())
	}
	s.mu.Unlock()
	var shown []repositoryOnPage
	for _, repo := range all {
		if owner != "" && !strings.EqualFold(repo.Owner, owner) {
			continue
		}
		if !repo.Private || s.given(login, repo) {
			shown = append(shown, onPage(repo))
		}
	}
	render(w, http.StatusOK, "index", struct {
		Current      string
		Repositories []repositoryOnPage
	}{login, shown})
}

func (s *Server) repositoryPage(w http.ResponseWriter, r *http.Request) {
	repo, ok := s.visible(r)
	if !ok {
		render(w, http.StatusNotFound, "problem", "There is no such repository, or you may not see it.")
		return
	}
	refs, err := s.branches(r.Context(), repo.ID, "")
	if err != nil {
		s.pageFailed(w, r, err)
		return
	}
	pulls, err := s.pulls(r.Context(), repo)
	if err != nil {
		s.pageFailed(w, r, err)
		return
	}
	var files []string
	var commits []string
	if head, err := s.branch(r.Context(), repo.ID, repo.DefaultBranch); err == nil {
		if files, err = s.lines(r, repo, "ls-tree", "-r", "--name-only", head); err != nil {
			s.pageFailed(w, r, err)
			return
		}
		if commits, err = s.lines(r, repo, "log", "-20", "--date=short", "--format=%h  %ad  %s", head); err != nil {
			s.pageFailed(w, r, err)
			return
		}
	}
	render(w, http.StatusOK, "repository", struct {
		repositoryOnPage
		CloneURL       string
		Branches       []gitRef
		Pulls          []pull
		Files, Commits []string
	}{onPage(repo), origin(r) + "/" + repo.fullName() + ".git", refs, pulls, files, commits})
}

func (s *Server) lines(r *http.Request, repo repository, args ...string) ([]string, error) {
	out, err := s.git(r.Context(), repo.ID, nil, args...)
	return strings.Split(strings.TrimRight(string(out), "\n"), "\n"), err
}

func (s *Server) pullPage(w http.ResponseWriter, r *http.Request) {
	repo, ok := s.visible(r)
	if !ok {
		render(w, http.StatusNotFound, "problem", "There is no such pull request, or you may not see it.")
		return
	}
	p, err := s.pullOf(r, repo)
	if _, refused := errors.AsType[*apiError](err); refused {
		render(w, http.StatusNotFound, "problem", "There is no such pull request, or you may not see it.")
		return
	}
	if err != nil {
		s.pageFailed(w, r, err)
		return
	}
	files, err := s.diffstat(r.Context(), repo.ID, p.BaseSHA, p.HeadSHA)
	if err != nil {
		s.pageFailed(w, r, err)
		return
	}
	patch, err := s.patch(r.Context(), repo.ID, p.BaseSHA, p.HeadSHA)
	if err != nil {
		s.pageFailed(w, r, err)
		return
	}
	commits, err := s.lines(r, repo, "log", "-50", "--date=iso", "--format=%h  %an  %ad  %s", p.BaseSHA+".."+p.HeadSHA)
	if err != nil {
		s.pageFailed(w, r, err)
		return
	}
	body, err := markdown(p.Body)
	if err != nil {
		s.pageFailed(w, r, err)
		return
	}
	additions, deletions := totals(files)
	render(w, http.StatusOK, "pull", struct {
		pull
		Repository           string
		State                string
		Text                 template.HTML
		Files                []fileStat
		Additions, Deletions int
		Commits              []string
		Patch                []patchLine
		Cut                  bool
	}{p, repo.fullName(), stateOf(p), body, files, additions, deletions, commits, patchLines(patch), len(patch) > maxPatchShown})
}

func (s *Server) pageFailed(w http.ResponseWriter, r *http.Request, err error) {
	s.log.ErrorContext(r.Context(), "stand-in page failed", "path", r.URL.Path, "error", err)
	render(w, http.StatusInternalServerError, "problem", "The stand-in could not read this repository.")
}

// markdown renders a pull request's text; raw HTML in it is left out by goldmark.
func markdown(text string) (template.HTML, error) {
	var b bytes.Buffer
	if err := goldmark.New(goldmark.WithExtensions(extension.GFM)).Convert([]byte(text), &b); err != nil {
		return "", err
	}
	return template.HTML(b.String()), nil //nolint:gosec // goldmark escapes and drops raw HTML unless told otherwise
}

// patchLine is one line of a diff and the class that colours it.
type patchLine struct{ Class, Text string }

func patchLines(patch string) []patchLine {
	if len(patch) > maxPatchShown {
		patch = patch[:maxPatchShown]
	}
	var lines []patchLine
	for line := range strings.Lines(patch) {
		line = strings.TrimRight(line, "\n")
		class := ""
		switch {
		case strings.HasPrefix(line, "diff --git"):
			class = "file"
		case strings.HasPrefix(line, "@@"):
			class = "hunk"
		case strings.HasPrefix(line, "+"):
			class = "add"
		case strings.HasPrefix(line, "-"):
			class = "del"
		}
		lines = append(lines, patchLine{class, line})
	}
	return lines
}

func stateOf(p pull) string {
	switch {
	case p.MergeSHA != "":
		return "merged"
	case p.Closed:
		return "closed"
	case p.Draft:
		return "draft"
	}
	return "open"
}
