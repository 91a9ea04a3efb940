package githubtest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// maxPush bounds one pushed or negotiated body, in bytes.
const maxPush = 512 << 20

// serveGit is git over smart HTTP. The service decides what the credential must allow: upload-pack
// reads, receive-pack writes. The dumb protocol is not served.
func (s *Server) serveGit(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxPush)
	owner, name := r.PathValue("owner"), strings.TrimSuffix(r.PathValue("repo"), ".git")
	rest := r.PathValue("rest")
	service := rest
	if rest == "info/refs" {
		service = r.URL.Query().Get("service")
	}
	if service != "git-upload-pack" && service != "git-receive-pack" {
		http.Error(w, "Please upgrade your git client.", http.StatusForbidden)
		return
	}
	repo, moved, found := s.repositoryNamed(owner + "/" + name)
	_, password, hasAuth := r.BasicAuth()
	who, ok := s.callerOf(password)
	if hasAuth && !ok {
		refuseGit(w, http.StatusUnauthorized, "Invalid username or token. Password authentication is not supported for Git operations.")
		return
	}
	reads := found && (!repo.Private && !hasAuth || who.may(s, repo, "contents", "read"))
	if !reads && !hasAuth {
		refuseGit(w, http.StatusUnauthorized, "Repository not found.")
		return
	}
	if !reads {
		refuseGit(w, http.StatusNotFound, "Repository not found.")
		return
	}
	if moved {
		http.Redirect(w, r, "/"+repo.fullName()+".git/"+rest+"?"+r.URL.RawQuery, http.StatusMovedPermanently)
		return
	}
	if service == "git-receive-pack" {
		switch {
		case !hasAuth:
			refuseGit(w, http.StatusUnauthorized, "No anonymous write access.")
			return
		case !who.may(s, repo, "contents", "write"):
			refuseGit(w, http.StatusForbidden, "Write access to repository not granted.")
			return
		case repo.Archived:
			refuseGit(w, http.StatusForbidden, "This repository was archived so it is read-only.")
			return
		}
	}
	s.runBackend(w, r, repo, rest, who.login())
	if rest == "git-receive-pack" {
		if err := s.changeRepository(repo.fullName(), func(r *repository) { r.PushedAt = s.now() }); err != nil {
			s.log.ErrorContext(r.Context(), "stand-in state not written", "error", err)
		}
	}
}

func (s *Server) runBackend(w http.ResponseWriter, r *http.Request, repo repository, rest, login string) {
	body, err := spool(r)
	if err != nil {
		http.Error(w, "the request could not be read", http.StatusBadRequest)
		return
	}
	defer func() { _ = body.Close() }() // only read
	backend, err := backendPath(r)
	if err != nil {
		s.log.ErrorContext(r.Context(), "git http-backend not found", "error", err)
		http.Error(w, "git http-backend is not installed", http.StatusInternalServerError)
		return
	}
	inner := r.Clone(r.Context())
	inner.Body = body
	inner.ContentLength = body.size
	inner.TransferEncoding = nil
	inner.Header.Del("Authorization")
	inner.URL.Path = "/" + filepath.Base(s.bareDir(repo.ID)) + "/" + rest
	handler := cgi.Handler{
		Path:   backend,
		Root:   "/",
		Dir:    s.dir,
		Env:    append(s.gitEnv(), "GIT_PROJECT_ROOT="+filepath.Join(s.dir, "git"), "GIT_HTTP_EXPORT_ALL=1", "GIT_PROTOCOL="+r.Header.Get("Git-Protocol"), "REMOTE_USER="+login),
		Stderr: io.Discard,
	}
	handler.ServeHTTP(w, inner)
}

func refuseGit(w http.ResponseWriter, status int, text string) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, text) // the client has gone away when this fails
}

// backendPath asks git where its programs are.
func backendPath(r *http.Request) (string, error) {
	out, err := exec.CommandContext(r.Context(), "git", "--exec-path").Output()
	if err != nil {
		return "", fmt.Errorf("git --exec-path: %w", err)
	}
	path := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	if _, err := os.Stat(path); err != nil {
		return "", err
	}
	return path, nil
}

// spooled is a request body in an unlinked temporary file.
type spooled struct {
	*os.File
	size int64
}

// spool reads the whole body first: git sends a push above 1 MiB in chunks, and CGI has no chunks.
func spool(r *http.Request) (spooled, error) {
	f, err := os.CreateTemp("", "githubtest-push-")
	if err != nil {
		return spooled{}, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return spooled{}, errors.Join(err, f.Close())
	}
	n, err := io.Copy(f, r.Body)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return spooled{}, errors.Join(err, f.Close())
	}
	return spooled{File: f, size: n}, nil
}
