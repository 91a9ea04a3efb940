package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"agent-sandboxing/core"
	"agent-sandboxing/core/chat"
	"agent-sandboxing/core/github"
	"agent-sandboxing/core/github/githubtest"
	"agent-sandboxing/core/live"
	"agent-sandboxing/core/store"
	"agent-sandboxing/core/store/storetest"
	"agent-sandboxing/core/webhook"
	"agent-sandboxing/handlers"
	"agent-sandboxing/web"
)

// rig is the whole web process on a real database and the stand-in for GitHub, behind real HTTP.
type rig struct {
	url string
	// githubURL is where the stand-in is.
	githubURL string
	database  string
	store     *store.Store
	github    *githubtest.Server
	chat      *chat.Service
	server    *web.Server
	stop      context.CancelFunc // of the server; Run's end is waited for by the test's clean-up
	log       *bytes.Buffer      // read it only after stop

	installation, repository int64
	main                     string // SHA of the base branch
}

// People of the stand-in: the owner and the colleague may push, the reader may pull, the outsider
// sees nothing, the admin sees nothing and is an administrator here.
const (
	owner     = "octo-owner"
	colleague = "octo-colleague"
	reader    = "octo-reader"
	outsider  = "octo-outsider"
	admin     = "octo-admin"
)

type option func(*web.Options, *chat.Gate)

const webhookSecret = "the secret of the webhook"

func withoutWebhooks(o *web.Options, _ *chat.Gate) { o.Webhooks = nil }

// person is somebody who has signed in.
func (r *rig) person(t *testing.T, login string) core.User {
	t.Helper()
	people, err := r.store.People(t.Context(), login, 1)
	if err != nil || len(people) != 1 {
		t.Fatalf("%s: %d people, %v", login, len(people), err)
	}
	return people[0].User
}

// forgotten waits until the process has heard that something changed.
func (r *rig) forgotten(t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	end := time.After(30 * time.Second)
	for !done() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("what was remembered is not forgotten")
		}
	}
}

func newRig(t *testing.T, options ...option) *rig {
	t.Helper()
	r := &rig{database: storetest.NewURL(t), log: new(bytes.Buffer)}
	r.store = storetest.Open(t, r.database, storetest.Keys(t))
	r.seedGitHub(t)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.url = "http://" + listener.Addr().String()
	standIn := httptest.NewServer(r.github.Handler())
	t.Cleanup(standIn.Close)
	bases, err := github.NewBases(standIn.URL)
	if err != nil {
		t.Fatal(err)
	}
	r.githubURL = standIn.URL
	config := r.github.Config()
	gate := chat.Gate{AllowedLogins: []string{owner, colleague, reader, outsider}, AdminLogins: []string{admin}}
	hub := live.NewHub(r.store)
	o := web.Options{
		Hub: hub, Cookies: r.store.Cookies(), PublicURL: r.url, GitHubURL: standIn.URL, Ready: r.store.Ping,
		Log:    slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Limits: web.Limits{PerSecond: 1000, Burst: 10000}, Webhooks: webhook.NewReceiver(webhookSecret, r.store, slog.New(slog.DiscardHandler)),
	}
	for _, option := range options {
		option(&o, &gate)
	}
	o.Chat = chat.New(chat.Options{
		Store: r.store, Gate: gate, MaxActive: 10,
		EgressMode: core.EgressOpen, EgressHosts: []string{"mirror.operator.example"},
		GitHub: github.NewUser(github.UserConfig{
			Bases: bases, ClientID: config.ClientID, ClientSecret: config.ClientSecret,
			RedirectURL: r.url + "/auth/github/callback",
		}),
	})
	r.chat = o.Chat
	if r.server, err = web.New(o); err != nil {
		t.Fatal(err)
	}
	r.run(t, listener, hub)
	return r
}

// run starts server and listener; both are waited for at the end of the test.
func (r *rig) run(t *testing.T, listener net.Listener, hub *live.Hub) {
	ctx, stop := context.WithCancel(context.Background())
	var served, heard sync.WaitGroup
	heard.Go(func() {
		_ = r.store.Listen(ctx, store.Handler{Session: hub.Wake, Partial: hub.WakePartial, Work: hub.WakeWork, Access: r.chat.AccessChanged}) // ends with ctx
	})
	served.Go(func() {
		if err := r.server.Run(ctx, listener); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	r.stop = func() {
		stop()
		served.Wait()
	}
	t.Cleanup(func() {
		r.stop()
		heard.Wait()
	})
}

func (r *rig) seedGitHub(t *testing.T) {
	t.Helper()
	var err error
	if r.github, err = githubtest.New(githubtest.Options{Dir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	for _, login := range []string{owner, colleague, reader, outsider, admin, "octo-stranger"} {
		if _, err := r.github.AddUser(login, "Octo "+login); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.github.AddOrganization("octo-org", "Octo Org"); err != nil {
		t.Fatal(err)
	}
	access := map[string]githubtest.Permission{owner: githubtest.Push, colleague: githubtest.Push, reader: githubtest.Pull}
	for _, repo := range []githubtest.Repository{
		{Owner: "octo-org", Name: "web-app", Private: true, Language: "Go", Access: access},
		{Owner: "octo-org", Name: "old-app", Private: true, Archived: true, Access: access},
		{Owner: "octo-org", Name: "empty-app", Private: true, Access: access},
	} {
		id, err := r.github.AddRepository(repo)
		if err != nil {
			t.Fatal(err)
		}
		if repo.Name == "web-app" {
			r.repository = id
		}
	}
	r.main, err = r.github.Commit(t.Context(), "octo-org/web-app",
		githubtest.Commit{Message: "Start the server", Files: map[string]githubtest.File{"main.go": githubtest.Text("package main\n")}})
	if err != nil {
		t.Fatal(err)
	}
	if r.installation, err = r.github.AddInstallation("octo-org"); err != nil {
		t.Fatal(err)
	}
}

// browser is one person's browser: cookies, and no redirect is followed by itself.
type browser struct {
	t    *testing.T
	rig  *rig
	http *http.Client
}

func (r *rig) browser(t *testing.T) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &browser{t: t, rig: r, http: &http.Client{
		Jar: jar, Transport: transport, Timeout: 60 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// signedIn is a browser in which login has signed in.
func (r *rig) signedIn(t *testing.T, login string) *browser {
	t.Helper()
	b := r.browser(t)
	back := b.signIn(login, "/")
	if back.status != http.StatusSeeOther || back.location() != "/" {
		t.Fatalf("sign-in of %s: %d to %q: %s", login, back.status, back.location(), back.body)
	}
	return b
}

// signIn goes the whole way over GitHub's page and returns the answer of our callback.
func (b *browser) signIn(login, returnTo string) answer {
	b.t.Helper()
	start := b.get("/auth/github?return_to=" + url.QueryEscape(returnTo))
	return b.get(b.authorize(start.location(), url.Values{"login": {login}}))
}

// authorize presses a button on GitHub's page and returns where that leads.
func (b *browser) authorize(authorizeURL string, press url.Values) string {
	b.t.Helper()
	u, err := url.Parse(authorizeURL)
	if err != nil {
		b.t.Fatal(err)
	}
	form := u.Query()
	for k, v := range press {
		form[k] = v
	}
	u.RawQuery = ""
	return b.do(http.MethodPost, u.String(), strings.NewReader(form.Encode()), "Content-Type", "application/x-www-form-urlencoded").location()
}

// answer is a response that was read to its end.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   string
}

func (a answer) location() string { return a.header.Get("Location") }

func (a answer) html() *goquery.Document {
	a.t.Helper()
	doc, err := goquery.NewDocumentFromReader(strings.NewReader(a.body))
	if err != nil {
		a.t.Fatal(err)
	}
	return doc
}

func (a answer) into(v any) {
	a.t.Helper()
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		a.t.Fatalf("answer %d is not the wanted JSON: %v\n%s", a.status, err, a.body)
	}
}

// code is the code of a JSON failure.
func (a answer) code() string {
	a.t.Helper()
	var f struct{ Error struct{ Code string } }
	a.into(&f)
	return f.Error.Code
}

func (b *browser) get(path string, headers ...string) answer {
	b.t.Helper()
	return b.do(http.MethodGet, path, nil, headers...)
}

func (b *browser) post(path string, form url.Values, headers ...string) answer {
	b.t.Helper()
	return b.do(http.MethodPost, path, strings.NewReader(form.Encode()),
		append([]string{"Content-Type", "application/x-www-form-urlencoded"}, headers...)...)
}

// json sends v as an API client would; nil for a GET.
func (b *browser) json(method, path string, v any, headers ...string) answer {
	b.t.Helper()
	var body io.Reader
	if v != nil {
		data, err := json.Marshal(v)
		if err != nil {
			b.t.Fatal(err)
		}
		body = bytes.NewReader(data)
	}
	return b.do(method, path, body, append([]string{"Content-Type", "application/json", "Accept", "application/json"}, headers...)...)
}

// do sends a request to a path of ours or to a whole address.
func (b *browser) do(method, path string, body io.Reader, headers ...string) answer {
	b.t.Helper()
	resp := b.open(method, path, body, headers...)
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer{t: b.t, status: resp.StatusCode, header: resp.Header, body: string(data)}
}

func (b *browser) open(method, path string, body io.Reader, headers ...string) *http.Response {
	b.t.Helper()
	if strings.HasPrefix(path, "/") {
		path = b.rig.url + path
	}
	req, err := http.NewRequestWithContext(b.t.Context(), method, path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := b.http.Do(req)
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp
}

// create starts a session as an API client and returns its id.
func (b *browser) create(text string) core.SessionID {
	b.t.Helper()
	a := b.json(http.MethodPost, "/chat-sessions", handlers.CreateForm{
		Installation: b.rig.installation, Repository: b.rig.repository, Branch: "main", Text: text,
	})
	if a.status != http.StatusCreated {
		b.t.Fatalf("create session: %d %s", a.status, a.body)
	}
	var s struct{ ID core.SessionID }
	a.into(&s)
	return s.ID
}
