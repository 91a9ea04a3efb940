package publish_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github/githubtest"
	"agent-sandboxing/core/mirror/mirrortest"
)

// spy is a GitHub's neighbourhood: it knows every credential that GitHub was ever shown, and is what
// others would be sent to.
type spy struct {
	hunt      mirrortest.Hunt
	mirrors   func() string
	t         *testing.T
	elsewhere *httptest.Server

	mu     sync.Mutex
	shown  map[string]bool
	git    int // times that a transport was seen alive
	visits int // of the other host
}

// see is told of each request of GitHub's while its client waits.
func (s *spy) see(r *http.Request) {
	credential := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if _, password, ok := r.BasicAuth(); ok {
		credential = password
	}
	if credential == "" {
		return
	}
	s.mu.Lock()
	s.shown[credential] = true
	s.mu.Unlock()
	s.hunt.Know(credential)
	if strings.HasPrefix(r.URL.Path, "/api/") {
		return // no git waits for this
	}
	seen := s.hunt.Processes(r.Host)
	s.hunt.Files(s.t, s.mirrors())
	s.mu.Lock()
	s.git += seen
	s.mu.Unlock()
}

// visit is a request to the other host, which asks for a password as GitHub does.
func (s *spy) visit(w http.ResponseWriter, r *http.Request) {
	var all bytes.Buffer
	_ = r.Write(&all) // a broken request is searched as far as it goes
	s.hunt.Bytes("a request to another host", all.Bytes())
	if user, password, ok := r.BasicAuth(); ok {
		s.hunt.Bytes("a password for another host", []byte(user+":"+password))
	}
	s.mu.Lock()
	s.visits++
	s.mu.Unlock()
	w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
	w.WriteHeader(http.StatusUnauthorized)
}

// A whole run, from the checkout over two publishes and what others push between them to a GitHub that
// sends everybody elsewhere, leaves no credential anywhere: not in the arguments or the environment of
// any process, not in a file, a row, a log, an error or a pull request, not with another host.
func TestInvariant2_NoCredentialIsLeftAnywhere(t *testing.T) {
	t.Parallel()
	for _, stateless := range []bool{false, true} {
		t.Run(fmt.Sprintf("stateless %v", stateless), func(t *testing.T) {
			t.Parallel()
			hunt(t, stateless)
		})
	}
}

func hunt(t *testing.T, stateless bool) {
	program, record := mirrortest.Recorder(t)
	s := &spy{t: t, shown: map[string]bool{}}
	s.elsewhere = httptest.NewServer(http.HandlerFunc(s.visit))
	t.Cleanup(s.elsewhere.Close)
	var w *world
	s.mirrors = func() string { return w.dir }
	w = newWorldOn(t, githubtest.Options{Dir: t.TempDir(), StatelessTokens: stateless}, program, s.see)

	var said []any
	session, ws := w.session(t, map[string]string{
		"hello.txt":      "hello\n",
		".gitmodules":    "[submodule \"x\"]\n\tpath = x\n\turl = " + s.elsewhere.URL + "/x.git\n",
		".gitattributes": "* filter=evil\n",
	})
	appendTo(t, filepath.Join(ws.Dir, ".git/config"), "[http]\n\tproxy = "+s.elsewhere.URL+"\n[url \""+s.elsewhere.URL+"/\"]\n\tinsteadOf = http\n[credential]\n\thelper = store\n")
	said = append(said, w.must(t, session, ws, "Say hello", "A body."))
	if _, err := w.github.Commit(t.Context(), fullName, githubtest.Commit{Branch: session.Branch, Message: "Theirs", Files: map[string]githubtest.File{"theirs.txt": githubtest.Text("x\n")}}); err != nil {
		t.Fatal(err)
	}
	write(t, ws, map[string]string{"hello.txt": "hello again\n"})
	said = append(said, w.must(t, session, ws, "Say hello again", "Another body."))

	// From here on GitHub sends everybody elsewhere, one route after the other; each kind of token goes
	// half of the ways.
	for i, redirect := range []struct {
		route  string
		status int
	}{
		{"GET /{owner}/{repo}/info/refs", http.StatusFound},
		{"GET /{owner}/{repo}/info/refs", http.StatusTemporaryRedirect},
		{"POST /{owner}/{repo}/git-upload-pack", http.StatusTemporaryRedirect},
		{"POST /{owner}/{repo}/git-receive-pack", http.StatusTemporaryRedirect},
		{"GET /api/v3/repos/{owner}/{repo}/pulls", http.StatusFound},
		{"POST /api/v3/app/installations/{id}/access_tokens", http.StatusTemporaryRedirect},
		{"PATCH /api/v3/repos/{owner}/{repo}/pulls/{number}", http.StatusTemporaryRedirect},
	} {
		if (i%2 == 0) == stateless {
			continue
		}
		w.github.Fail(githubtest.Fault{Pattern: redirect.route, Status: redirect.status, Header: http.Header{"Location": {s.elsewhere.URL + "/octo-org/widgets.git/info/refs?service=git-upload-pack"}}})
		write(t, ws, map[string]string{"hello.txt": fmt.Sprintf("hello %+v\n", redirect)})
		w.tokens.Close(t.Context()) // a shared token would save a request
		result, err := w.publish(t, session, ws, "Say hello elsewhere", "")
		if err == nil {
			t.Errorf("%+v: published as %+v", redirect, result)
		}
		other := core.ChatSession{ID: core.NewID[core.SessionID](), Repository: w.repo, BaseBranch: "main", BaseSHA: w.base}
		_, pack, fetched := w.mirror.Checkout(t.Context(), other, false)
		if fetched == nil {
			_ = pack.Close()
		}
		said = append(said, err, fetched)
		w.github.ClearFaults()
	}

	s.hunt.Again()
	for _, x := range said {
		err, _ := x.(error)
		s.hunt.Bytes("what was answered", fmt.Appendf(nil, "%+v %#v %s", x, x, core.MessageOf(err)))
	}
	s.hunt.Bytes("the log", []byte(w.log.String()))
	started, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	s.hunt.Bytes("arguments and environment of the programs that were started", started)
	for _, dir := range []string{w.dir, filepath.Dir(ws.Dir)} {
		s.hunt.Files(t, dir)
	}
	s.hunt.Processes("")
	rows := w.rows(t, &s.hunt)
	for _, p := range w.pulls(t, session) {
		s.hunt.Bytes("a pull request", []byte(p.Title+p.Body))
	}
	s.hunt.Bytes("commits", []byte(w.git(t, "log", "--all", "--format=%B")))
	places, hits := s.hunt.Result()
	if s.git == 0 || len(s.shown) < 8 || rows < 30 || bytes.Count(started, []byte("argv: ")) < 100 {
		t.Fatalf("it saw git %d times, %d credentials, %d rows: it proves nothing", s.git, len(s.shown), rows)
	}
	if s.visits > 0 {
		t.Errorf("another host was asked %d times", s.visits)
	}
	for _, hit := range hits {
		t.Errorf("a credential is in %s", hit)
	}
	t.Logf("token hunt: %d places, %d hits (%d credentials)", places, len(hits), len(s.shown))
}

// rows looks at every row of every table and returns how many there are.
func (w *world) rows(t *testing.T, hunt *mirrortest.Hunt) (n int) {
	t.Helper()
	db, err := pgx.Connect(t.Context(), w.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context())
	tables, err := collect(t, db, "SELECT quote_ident(table_name) FROM information_schema.tables WHERE table_schema = 'public'")
	if err != nil || len(tables) < 10 {
		t.Fatalf("%d tables, %v", len(tables), err)
	}
	for _, table := range tables {
		found, err := collect(t, db, "SELECT to_jsonb(x)::text FROM "+table+" x")
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range found {
			hunt.Bytes("a row of "+table, []byte(row))
		}
		n += len(found)
	}
	return n
}

func collect(t *testing.T, db *pgx.Conn, sql string) ([]string, error) {
	t.Helper()
	rows, err := db.Query(t.Context(), sql)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// The hunt finds what lies about, in each way and at each kind of place.
func TestHunt_FindsWhatIsPlanted(t *testing.T) {
	t.Parallel()
	const short, long = "ghs_16C7e42F292c6912E7710c838347Ae178B4a", "ghs_123_eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJ-_9.c2lnbmF0dXJl-_c2lnbmF0dXJl"
	for _, token := range []string{short, long} {
		basic := base64.StdEncoding.EncodeToString([]byte("x-access-token:" + token))
		asJSON, err := json.Marshal(map[string]string{"token": token})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{
			token, "https://x-access-token:" + token + "@github.com/o/r.git", "Authorization: Basic " + basic, url.QueryEscape("x-access-token:" + token),
			base64.StdEncoding.EncodeToString([]byte("ab" + token + "c")), base64.URLEncoding.EncodeToString([]byte("a" + token)), string(asJSON),
		} {
			var h mirrortest.Hunt
			h.Know(token)
			h.Bytes("bytes", []byte("before "+text+" after"))
			dir := t.TempDir()
			mirrortest.WriteFiles(t, dir, map[string]string{".git/logs/HEAD": "x " + text + "\n", "clean": "nothing\n"})
			h.Files(t, dir)
			if places, hits := h.Result(); places != 3 || len(hits) != 2 {
				t.Errorf("%q: %d places, hits %v", text, places, hits)
			}
		}
	}
	var h mirrortest.Hunt
	canary := "ghs_" + strings.Repeat("Canary", 6)
	h.Know(canary)
	child := exec.CommandContext(t.Context(), "cat")
	child.Env = []string{"TOKEN=" + canary}
	in, err := child.StdinPipe()
	must(t, err, child.Start())
	h.Processes("")
	must(t, in.Close(), child.Wait())
	if _, hits := h.Result(); len(hits) != 1 || hits[0] != fmt.Sprintf("/proc/%d/environ", child.Process.Pid) {
		t.Errorf("hits = %v", hits)
	}
}
