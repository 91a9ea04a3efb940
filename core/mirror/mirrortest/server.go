// Package mirrortest holds what tests of the mirror and of publishing need besides them: a git
// server that demands tokens, and a workspace that makes real snapshots with real git.
package mirrortest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/pem"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agent-sandboxing/core"
)

// Server serves bare repositories by git's own http-backend to whoever has a token that it minted.
type Server struct {
	*httptest.Server
	Root string // owner/name.git below it

	mu      sync.Mutex
	live    map[string]core.TokenPurpose
	minted  []string
	refused []string
	onAuth  func(r *http.Request)
	fault   func(w http.ResponseWriter, r *http.Request) bool
	MintErr error
	Age     time.Duration // of the tokens that Mint hands out
}

// NewServer starts one that ends with the test.
func NewServer(tb testing.TB) *Server {
	tb.Helper()
	return serve(tb, httptest.NewServer)
}

// NewTLSServer starts one whose certificate only CAFile makes trusted.
func NewTLSServer(tb testing.TB) *Server {
	tb.Helper()
	return serve(tb, httptest.NewTLSServer)
}

// CAFile writes the authority of a TLS server's certificate and returns its path.
func (s *Server) CAFile(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "ca.pem")
	must(tb, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600))
	return path
}

func serve(tb testing.TB, start func(http.Handler) *httptest.Server) *Server {
	tb.Helper()
	s := &Server{Root: tb.TempDir(), live: map[string]core.TokenPurpose{}}
	backend := &cgi.Handler{
		Path: filepath.Join(Git(tb, "", "--exec-path"), "git-http-backend"),
		Env: []string{
			"GIT_PROJECT_ROOT=" + s.Root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=app",
			"GIT_CONFIG_COUNT=5", "GIT_CONFIG_KEY_0=http.receivepack", "GIT_CONFIG_VALUE_0=true",
			"GIT_CONFIG_KEY_1=safe.directory", "GIT_CONFIG_VALUE_1=*",
			"GIT_CONFIG_KEY_2=uploadpack.allowAnySHA1InWant", "GIT_CONFIG_VALUE_2=true",
			"GIT_CONFIG_KEY_3=core.bigFileThreshold", "GIT_CONFIG_VALUE_3=1m",
			"GIT_CONFIG_KEY_4=receive.unpackLimit", "GIT_CONFIG_VALUE_4=1",
		},
		InheritEnv: []string{"PATH"},
	}
	s.Server = start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		onAuth, fault := s.onAuth, s.fault
		s.mu.Unlock()
		if fault != nil && fault(w, r) {
			return
		}
		_, token, _ := r.BasicAuth()
		push := strings.HasSuffix(r.URL.Path, "git-receive-pack") || r.URL.Query().Get("service") == "git-receive-pack"
		if purpose, ok := s.purpose(token); !ok || (push && purpose != core.TokenPublish) {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		if onAuth != nil {
			onAuth(r)
		}
		backend.ServeHTTP(w, r)
	}))
	tb.Cleanup(s.Close)
	return s
}

func (s *Server) purpose(token string) (core.TokenPurpose, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.live[token]
	return p, ok
}

// OnAuthorized is called for every request with a valid token, while its client waits.
func (s *Server) OnAuthorized(f func(*http.Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onAuth = f
}

// Fault may answer a request in the server's place.
func (s *Server) Fault(f func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// GitURL is the address of a repository.
func (s *Server) GitURL(repo core.Repository) string { return s.URL + "/" + repo.FullName() + ".git" }

// Mint makes a token that the server accepts until it is revoked.
func (s *Server) Mint(_ context.Context, _ core.Repository, purpose core.TokenPurpose) (core.RepoToken, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.MintErr != nil {
		return core.RepoToken{}, s.MintErr
	}
	random := make([]byte, 24)
	rand.Read(random)
	value := "ghs_" + hex.EncodeToString(random)
	s.live[value] = purpose
	s.minted = append(s.minted, value)
	return core.RepoToken{Value: value, Purpose: purpose, MintedAt: time.Now().Add(-s.Age), ExpiresAt: time.Now().Add(time.Hour)}, nil
}

// Revoke ends a token.
func (s *Server) Revoke(_ context.Context, token core.RepoToken) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, token.Value)
}

// Refused notes a token that the mirror was refused with.
func (s *Server) Refused(token core.RepoToken) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = append(s.refused, token.Value)
}

// RefusedTokens lists them.
func (s *Server) RefusedTokens() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.refused...)
}

// Minted lists every token that there ever was.
func (s *Server) Minted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.minted...)
}

// Dir is the bare repository's folder.
func (s *Server) Dir(repo core.Repository) string {
	return filepath.Join(s.Root, repo.Owner, repo.Name+".git")
}

// Repository makes an empty bare repository.
func (s *Server) Repository(tb testing.TB, id core.RepositoryID, owner, name string) core.Repository {
	tb.Helper()
	repo := core.Repository{ID: id, InstallationID: 1, Owner: owner, Name: name, DefaultBranch: "main"}
	Git(tb, "", "init", "--quiet", "--bare", "--initial-branch=main", s.Dir(repo))
	return repo
}

// Commit puts a commit with exactly these files on a branch and returns its name. The content of a
// file that begins with "->" is a link's target, a name that ends in "*" is executable.
func (s *Server) Commit(tb testing.TB, repo core.Repository, branch string, files map[string]string) string {
	tb.Helper()
	work := tb.TempDir()
	WriteFiles(tb, work, files)
	at := []string{"--git-dir=" + s.Dir(repo), "--work-tree=" + work}
	index := filepath.Join(tb.TempDir(), "index")
	run := func(args ...string) string {
		return gitEnv(tb, work, []string{"GIT_INDEX_FILE=" + index}, append(at, args...)...)
	}
	run("add", "-A", "-f", ".")
	args := []string{"commit-tree", run("write-tree"), "-m", "Change " + branch}
	if parent := run("for-each-ref", "--format=%(objectname)", "refs/heads/"+branch); parent != "" && !strings.Contains(parent, "\n") {
		args = append(args, "-p", parent)
	}
	sha := run(args...)
	run("update-ref", "refs/heads/"+branch, sha)
	return sha
}

// Plant puts objects into a repository as they are, moves a branch to one of them, and returns it.
func (s *Server) Plant(tb testing.TB, repo core.Repository, branch, head string, o *Objects) string {
	tb.Helper()
	cmd := exec.Command("git", "-c", "core.bigFileThreshold=1m", "--git-dir="+s.Dir(repo), "index-pack", "--stdin") //nolint:noctx // ends with its input
	cmd.Env, cmd.Stdin = environ(), bytes.NewReader(o.Pack())
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("plant: %v\n%s", err, out)
	}
	Git(tb, "", "--git-dir="+s.Dir(repo), "update-ref", "refs/heads/"+branch, head)
	return head
}

// Point makes a branch name a commit that the repository need not have.
func (s *Server) Point(tb testing.TB, repo core.Repository, branch, commit string) {
	tb.Helper()
	must(tb, os.WriteFile(filepath.Join(s.Dir(repo), "refs", "heads", branch), []byte(commit+"\n"), 0o644))
}

// WriteFiles writes a tree in the notation of Commit.
func WriteFiles(tb testing.TB, dir string, files map[string]string) {
	tb.Helper()
	for name, content := range files {
		path := filepath.Join(dir, strings.TrimSuffix(name, "*"))
		mode := os.FileMode(0o644)
		if strings.HasSuffix(name, "*") {
			mode = 0o755
		}
		must(tb, os.MkdirAll(filepath.Dir(path), 0o755))
		if target, ok := strings.CutPrefix(content, "->"); ok {
			must(tb, os.Symlink(target, path))
			continue
		}
		must(tb, os.WriteFile(path, []byte(content), mode))
	}
}

// Git runs git as a test's own tool and returns its output without the last newline.
func Git(tb testing.TB, dir string, args ...string) string {
	tb.Helper()
	return gitEnv(tb, dir, nil, args...)
}

func gitEnv(tb testing.TB, dir string, env []string, args ...string) string {
	tb.Helper()
	cmd := exec.Command("git", args...) //nolint:noctx // ends with its input
	cmd.Dir = dir
	cmd.Env = append(environ(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSuffix(string(out), "\n")
}

// environ keeps a developer's own settings out, and dates commits the same every time.
func environ() []string {
	return append([]string{"PATH=" + os.Getenv("PATH")}, fixedEnv...)
}

var fixedEnv = []string{
	"HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
	"GIT_AUTHOR_NAME=octo-dev", "GIT_AUTHOR_EMAIL=octo-dev@example.com", "GIT_AUTHOR_DATE=1700000000 +0000",
	"GIT_COMMITTER_NAME=octo-dev", "GIT_COMMITTER_EMAIL=octo-dev@example.com", "GIT_COMMITTER_DATE=1700000000 +0000",
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
