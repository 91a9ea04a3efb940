package githubtest

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func open(t *testing.T, dir string) (*Server, string) {
	t.Helper()
	s, err := New(Options{Dir: dir, BadRequests: true})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close)
	return s, srv.URL
}

// fill adds one person, one organization with one private repository of one commit, and the App on it.
func fill(t *testing.T, s *Server) (repository, installation int64) {
	t.Helper()
	must := func(_ int64, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.AddUser("octo-owner", "Octo Owner"))
	must(s.AddUser("octo-stranger", "Octo Stranger"))
	must(s.AddOrganization("octo-org", "Octo Org"))
	repository, err := s.AddRepository(Repository{Owner: "octo-org", Name: "widgets", Private: true, Access: map[string]Permission{"octo-owner": Push}})
	must(0, err)
	if _, err := s.Commit(t.Context(), "octo-org/widgets", Commit{Message: "Begin", Files: map[string]File{"README.md": Text("# Widgets\n")}}); err != nil {
		t.Fatal(err)
	}
	installation, err = s.AddInstallation("octo-org")
	must(0, err)
	return repository, installation
}

// call sends one request and returns status and body.
func call(t *testing.T, method, address, credential string, body any) (int, string) {
	t.Helper()
	var data io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		data = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, address, data)
	if err != nil {
		t.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if credential != "" {
		req.Header.Set("Authorization", "Bearer "+credential)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// sign makes a JWT of any header and claims with the App's own key.
func sign(t *testing.T, s *Server, header, claims string) string {
	t.Helper()
	block, _ := pem.Decode(s.Config().PrivateKey)
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	text := part(header) + "." + part(claims)
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(sig)
}

const rs256 = `{"alg":"RS256","typ":"JWT"}`

func (s *Server) goodJWT(t *testing.T) string {
	t.Helper()
	now := s.Now()
	return sign(t, s, rs256, fmt.Sprintf(`{"iss":"%d","iat":%d,"exp":%d}`, s.Config().AppID, now.Add(-time.Minute).Unix(), now.Add(5*time.Minute).Unix()))
}

func TestJWT_Refusals(t *testing.T) {
	t.Parallel()
	s, base := open(t, t.TempDir())
	now, id := s.Now(), s.Config().AppID
	claims := func(iss any, iat, exp time.Duration) string {
		return fmt.Sprintf(`{"iss":%v,"iat":%d,"exp":%d}`, iss, now.Add(iat).Unix(), now.Add(exp).Unix())
	}
	good := sign(t, s, rs256, claims(id, -time.Minute, 5*time.Minute))
	tests := []struct {
		name, jwt, message string
		status             int
	}{
		{"good, id as a number", good, "", 200},
		{"good, client id", sign(t, s, rs256, claims(`"`+s.Config().ClientID+`"`, -time.Minute, 5*time.Minute)), "", 200},
		{"none", "", "could not be decoded", 401},
		{"not signed", strings.Join(strings.Split(good, ".")[:2], ".") + ".", "could not be decoded", 401},
		{"claims changed after signing", strings.Replace(good, ".", ".e", 1), "could not be decoded", 401},
		{"algorithm none", sign(t, s, `{"alg":"none"}`, claims(id, -time.Minute, 5*time.Minute)), "could not be decoded", 401},
		{"algorithm HS256", sign(t, s, `{"alg":"HS256"}`, claims(id, -time.Minute, 5*time.Minute)), "could not be decoded", 401},
		{"another App", sign(t, s, rs256, claims(id+1, -time.Minute, 5*time.Minute)), "Integration not found", 401},
		{"from the future", sign(t, s, rs256, claims(id, time.Minute, 5*time.Minute)), "'iat'", 401},
		{"expired", sign(t, s, rs256, claims(id, -9*time.Minute, -time.Minute)), "'exp'", 401},
		{"lives too long", sign(t, s, rs256, claims(id, -time.Minute, 11*time.Minute)), "too far in the future", 401},
	}
	for _, tt := range tests {
		status, body := call(t, "GET", base+"/api/v3/app", tt.jwt, nil)
		if status != tt.status || !strings.Contains(body, tt.message) {
			t.Errorf("%s: %d %s, want %d with %q", tt.name, status, body, tt.status, tt.message)
		}
	}
}

func TestMint_Refusals(t *testing.T) {
	t.Parallel()
	s, base := open(t, t.TempDir())
	repo, in := fill(t, s)
	mint := fmt.Sprintf("%s/api/v3/app/installations/%d/access_tokens", base, in)
	read := object{"contents": "read"}
	tests := []struct {
		name, address string
		body          any
		status        int
		message       string
	}{
		{"good", mint, object{"repository_ids": []int64{repo}, "permissions": read}, 201, `"token":"ghs_`},
		{"another repository", mint, object{"repository_ids": []int64{repo + 1000}, "permissions": read}, 422, "not accessible to the parent installation"},
		{"one good, one not", mint, object{"repository_ids": []int64{repo, 1}, "permissions": read}, 422, "not accessible to the parent installation"},
		{"unknown permission", mint, object{"permissions": object{"everything": "write"}}, 422, "not a permitted key"},
		{"unknown level", mint, object{"permissions": object{"contents": "admin"}}, 422, "not a permitted key"},
		{"not granted", mint, object{"permissions": object{"workflows": "write"}}, 422, "not granted"},
		{"not JSON", mint, "x", 400, "Problems parsing JSON"},
		{"no such installation", base + "/api/v3/app/installations/1/access_tokens", object{}, 404, "Not Found"},
	}
	for _, tt := range tests {
		status, body := call(t, "POST", tt.address, s.goodJWT(t), tt.body)
		if status != tt.status || !strings.Contains(body, tt.message) {
			t.Errorf("%s: %d %s, want %d with %q", tt.name, status, body, tt.status, tt.message)
		}
	}
	if status, _ := call(t, "POST", mint, "ghu_nobody", object{}); status != 401 {
		t.Errorf("a mint without the App's JWT: %d", status)
	}
}

// mintToken is a token for the repository with exactly these permissions.
func mintToken(t *testing.T, s *Server, base string, in, repo int64, permissions object) string {
	t.Helper()
	status, body := call(t, "POST", fmt.Sprintf("%s/api/v3/app/installations/%d/access_tokens", base, in), s.goodJWT(t), object{"repository_ids": []int64{repo}, "permissions": permissions})
	var answer struct{ Token string }
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != 201 {
		t.Fatalf("mint: %d %s", status, body)
	}
	return answer.Token
}

func git(ctx context.Context, t *testing.T, dir, token string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(ctx, "git", append([]string{
		"-c", "credential.helper=", "-c", `credential.helper=!f() { echo username=x-access-token; echo "password=$TEST_TOKEN"; }; f`,
		"-c", "user.name=Octo Dev", "-c", "user.email=octo-dev@example.org",
	}, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1", "GIT_TRACE_PACKET=" + filepath.Join(dir, "packets"), "TEST_TOKEN=" + token}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestGit_LargePushComesInChunksAndProtocolIsTwo(t *testing.T) {
	t.Parallel()
	s, base := open(t, t.TempDir())
	repo, in := fill(t, s)
	token := mintToken(t, s, base, in, repo, object{"contents": "write"})
	dir := t.TempDir()
	clone := filepath.Join(dir, "clone")
	large := make([]byte, 3<<20) // git sends more than 1 MiB in chunks
	if _, err := rand.Read(large); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) {
		t.Helper()
		if out, err := git(t.Context(), t, dir, token, args...); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	run("clone", "-q", base+"/octo-org/widgets.git", clone)
	if err := os.WriteFile(filepath.Join(clone, "large"), large, 0o600); err != nil {
		t.Fatal(err)
	}
	run("-C", clone, "add", "large")
	run("-C", clone, "commit", "-q", "-m", "Large")
	run("-C", clone, "push", "-q", "origin", "HEAD:refs/heads/large")
	if _, err := s.Head(t.Context(), "octo-org/widgets", "large"); err != nil {
		t.Error(err)
	}
	packets, err := os.ReadFile(filepath.Join(dir, "packets"))
	if err != nil || !strings.Contains(string(packets), "version 2") {
		t.Errorf("git did not speak protocol 2: %v", err)
	}
}

func TestGit_PushIsRefused(t *testing.T) {
	t.Parallel()
	s, base := open(t, t.TempDir())
	repo, in := fill(t, s)
	token := mintToken(t, s, base, in, repo, object{"contents": "write"})
	dir := t.TempDir()
	clone := filepath.Join(dir, "clone")
	if out, err := git(t.Context(), t, dir, token, "clone", "-q", base+"/octo-org/widgets.git", clone); err != nil {
		t.Fatal(out)
	}
	push := func(want string) {
		t.Helper()
		out, err := git(t.Context(), t, clone, token, "push", "origin", "HEAD:refs/heads/x")
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("push: %v\n%s\nwant %q", err, out, want)
		}
	}
	if err := s.RejectPushes("octo-org/widgets", "error: GH013: Repository rule violations found"); err != nil {
		t.Fatal(err)
	}
	push("remote: error: GH013: Repository rule violations found")
	if err := s.RejectPushes("octo-org/widgets", ""); err != nil {
		t.Fatal(err)
	}
	if err := s.SetArchived("octo-org/widgets", true); err != nil {
		t.Fatal(err)
	}
	push("archived")
	if err := s.SetSuspended(in, true); err != nil {
		t.Fatal(err)
	}
	push("not found")
	if _, err := s.Head(t.Context(), "octo-org/widgets", "x"); !errors.Is(err, errNoObject) {
		t.Errorf("a refused push made the branch: %v", err)
	}
}

func TestPull_ClosesWithItsBranch(t *testing.T) {
	t.Parallel()
	s, base := open(t, t.TempDir())
	repo, in := fill(t, s)
	token := mintToken(t, s, base, in, repo, object{"contents": "write", "pull_requests": "write"})
	if _, err := s.Commit(t.Context(), "octo-org/widgets", Commit{Branch: "work", Message: "Work", Files: map[string]File{"a": Text("a")}}); err != nil {
		t.Fatal(err)
	}
	pulls := base + "/api/v3/repos/octo-org/widgets/pulls"
	if status, body := call(t, "POST", pulls, token, object{"title": "T", "head": "work", "base": "main"}); status != 201 {
		t.Fatalf("%d %s", status, body)
	}
	if err := s.DeleteBranch(t.Context(), "octo-org/widgets", "work"); err != nil {
		t.Fatal(err)
	}
	if status, body := call(t, "GET", pulls+"/1", token, nil); status != 200 || !strings.Contains(body, `"state":"closed"`) {
		t.Errorf("%d %s, want closed", status, body)
	}
	if _, err := s.Commit(t.Context(), "octo-org/widgets", Commit{Branch: "work", Message: "Other work", Files: map[string]File{"b": Text("b")}}); err != nil {
		t.Fatal(err)
	}
	if status, body := call(t, "PATCH", pulls+"/1", token, object{"state": "open"}); status != 422 || !strings.Contains(body, "state cannot be changed") {
		t.Errorf("reopening after the branch was made anew: %d %s", status, body)
	}
}

func TestPulls_HeadFilterWithoutOwnerIsIgnored(t *testing.T) {
	t.Parallel()
	s, base := open(t, t.TempDir())
	repo, in := fill(t, s)
	token := mintToken(t, s, base, in, repo, object{"contents": "write", "pull_requests": "write"})
	if _, err := s.Commit(t.Context(), "octo-org/widgets", Commit{Branch: "work", Message: "Work", Files: map[string]File{"a": Text("a")}}); err != nil {
		t.Fatal(err)
	}
	pulls := base + "/api/v3/repos/octo-org/widgets/pulls"
	call(t, "POST", pulls, token, object{"title": "T", "head": "work", "base": "main"})
	for query, found := range map[string]bool{"?head=other": true, "?head=octo-org:other": false, "?head=octo-org:work": true} {
		if _, body := call(t, "GET", pulls+query, token, nil); strings.Contains(body, `"number":1`) != found {
			t.Errorf("%s found %t, want %t", query, !found, found)
		}
	}
}

func TestState_SurvivesARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, base := open(t, dir)
	repo, in := fill(t, s)
	token := mintToken(t, s, base, in, repo, object{"contents": "write", "pull_requests": "write"})
	if _, err := s.Commit(t.Context(), "octo-org/widgets", Commit{Branch: "work", Message: "Work", Files: map[string]File{"a": Text("a")}}); err != nil {
		t.Fatal(err)
	}
	call(t, "POST", base+"/api/v3/repos/octo-org/widgets/pulls", token, object{"title": "T", "head": "work", "base": "main"})

	again, base := open(t, dir)
	if string(again.Config().PrivateKey) != string(s.Config().PrivateKey) || again.Config().ClientSecret != s.Config().ClientSecret {
		t.Error("the App's credentials changed")
	}
	if status, body := call(t, "GET", base+"/api/v3/repos/octo-org/widgets/pulls/1", token, nil); status != 200 || !strings.Contains(body, `"title":"T"`) {
		t.Errorf("the token or the pull request was lost: %d %s", status, body)
	}
	if out, err := git(t.Context(), t, t.TempDir(), token, "ls-remote", base+"/octo-org/widgets.git", "refs/heads/work"); err != nil || !strings.Contains(out, "refs/heads/work") {
		t.Errorf("ls-remote: %v\n%s", err, out)
	}
	data, err := os.ReadFile(filepath.Join(dir, "state.json"))
	if err != nil || strings.Contains(string(data), token) {
		t.Errorf("the token itself is in the state file (%v)", err)
	}
}

func TestListen_RefusesWhatIsNotLoopback(t *testing.T) {
	t.Parallel()
	s, _ := open(t, t.TempDir())
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.org:0", "nonsense"} {
		if l, err := s.Listen(t.Context(), addr); err == nil {
			l.Close()
			t.Errorf("listens on %s", addr)
		}
	}
	l, err := s.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	if status, _ := call(t, "GET", "http://"+l.Addr().String()+"/", "", nil); status != 200 {
		t.Errorf("index: status %d", status)
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("Serve ended with %v", err)
	}
}

func TestHandler_RefusesAnotherHost(t *testing.T) {
	t.Parallel()
	s, _ := open(t, t.TempDir())
	for host, want := range map[string]int{"127.0.0.1:80": 200, "localhost": 200, "[::1]:9": 200, "evil.example": 403, "127.0.0.1.evil.example:80": 403} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("host %s: status %d, want %d", host, w.Code, want)
		}
	}
}

func TestAuthorize_BadRequestsAreNeverRedirected(t *testing.T) {
	t.Parallel()
	s, base := open(t, t.TempDir())
	fill(t, s)
	good := url.Values{"client_id": {s.Config().ClientID}, "redirect_uri": {"http://127.0.0.1:1/cb"}, "state": {"s"}}
	for name, change := range map[string][2]string{
		"unknown client": {"client_id", "x"}, "no redirect": {"redirect_uri", ""}, "script": {"redirect_uri", "javascript:alert(1)"},
		"credentials in the address": {"redirect_uri", "http://u:p@127.0.0.1/"}, "plain PKCE": {"code_challenge", "abc"},
	} {
		q := url.Values{}
		for k, v := range good {
			q[k] = v
		}
		q.Set(change[0], change[1])
		if status, _ := call(t, "GET", base+"/login/oauth/authorize?"+q.Encode(), "", nil); status != 400 {
			t.Errorf("%s: status %d, want 400", name, status)
		}
	}
	status, page := call(t, "GET", base+"/login/oauth/authorize?"+good.Encode(), "", nil)
	if status != 200 || !strings.Contains(page, "Stand-in GitHub for the demo — not github.com") || !strings.Contains(page, "octo-owner") || strings.Contains(page, "octo-org") {
		t.Errorf("authorize page: %d\n%s", status, page)
	}
}

func TestPages_HideWhatIsPrivateAndEscapeWhatIsForeign(t *testing.T) {
	t.Parallel()
	s, base := open(t, t.TempDir())
	repo, in := fill(t, s)
	token := mintToken(t, s, base, in, repo, object{"contents": "write", "pull_requests": "write"})
	if _, err := s.Commit(t.Context(), "octo-org/widgets", Commit{Branch: "work", Message: "<script>x</script>", Files: map[string]File{"<b>.txt": Text("<script>y</script>\n")}}); err != nil {
		t.Fatal(err)
	}
	call(t, "POST", base+"/api/v3/repos/octo-org/widgets/pulls", token, object{"title": "<script>t</script>", "body": "<!-- mark -->\n**Bold** <script>z</script> [l](javascript:alert(1))", "head": "work", "base": "main"})
	address := base + "/octo-org/widgets/pull/1"
	if status, _ := call(t, "GET", address, "", nil); status != 404 {
		t.Errorf("a private page without a sign-in: %d", status)
	}
	if err := s.SetPrivate("octo-org/widgets", false); err != nil {
		t.Fatal(err)
	}
	status, page := call(t, "GET", address, "", nil)
	if status != 200 || !strings.Contains(page, "<strong>Bold</strong>") || strings.Contains(page, "<script") || strings.Contains(page, "javascript:") || strings.Contains(page, "mark --") {
		t.Errorf("pull request page: %d\n%s", status, page)
	}
	for _, path := range []string{"/", "/octo-org", "/octo-org/widgets", "/octo-org/widgets/"} {
		if status, _ := call(t, "GET", base+path, "", nil); status != 200 {
			t.Errorf("%s: status %d", path, status)
		}
	}
	if status, _ := call(t, "GET", base+"/octo-org/widgets/pull/2", "", nil); status != 404 {
		t.Errorf("a pull request that is not there: %d", status)
	}
}

func FuzzQuotePath(f *testing.F) {
	f.Add("a b")
	f.Add("\"\\\n\x00ü")
	f.Fuzz(func(t *testing.T, path string) {
		quoted := quotePath(path)
		if len(quoted) < 2 || strings.ContainsAny(quoted, "\n\x00") {
			t.Errorf("quotePath(%q) = %q", path, quoted)
		}
	})
}
