package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"agent-sandboxing/core"
	"agent-sandboxing/core/chat"
	"agent-sandboxing/web"
)

// wantPolicy is every page's: our own files and nothing inline.
const wantPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// fill puts real ids into a route's pattern.
func fill(pattern string, s session) string {
	return strings.NewReplacer(":id", string(s.id), ":message", string(s.message), ":diff", string(s.diff),
		":artifact", string(s.artifact), ":github_id", "1", "*", "nothing.css").Replace(pattern)
}

func TestCrossOrigin_IsRefusedOnEveryUnsafeRoute(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	s := b.finished()
	unsafe := 0
	for _, route := range r.server.Routes() {
		if route.Method == http.MethodGet {
			continue
		}
		unsafe++
		path := fill(route.Path, s)
		for name, headers := range map[string][]string{
			"another site":           {"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.test"},
			"a sibling subdomain":    {"Sec-Fetch-Site", "same-site", "Origin", "http://other.127.0.0.1"},
			"another port, old":      {"Origin", "http://127.0.0.1:1"},
			"no origin at all, old":  {"Origin", "null"},
			"another site with JSON": {"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.test", "Content-Type", "application/json"},
		} {
			a := b.post(path, nil, append(headers, "Accept", "application/json")...)
			if a.status != http.StatusForbidden || a.code() != "cross_origin" {
				t.Errorf("%s %s from %s: %d %s, want cross_origin", route.Method, route.Path, name, a.status, a.body)
			}
		}
		if a := b.post(path, nil, "Sec-Fetch-Site", "same-origin", "Origin", r.url, "Accept", "application/json"); a.status == http.StatusForbidden && a.code() == "cross_origin" {
			t.Errorf("%s %s from our own page is refused", route.Method, route.Path)
		}
		if b.get("/me", "Accept", "application/json").status == http.StatusUnauthorized { // that one was a sign-out
			b = r.signedIn(t, owner)
		}
	}
	if unsafe < 10 {
		t.Fatalf("only %d unsafe routes in the table", unsafe)
	}
}

func TestRoutes_NeverChangeAnythingByGET(t *testing.T) {
	t.Parallel()
	for _, route := range newRig(t).server.Routes() {
		if route.Method != http.MethodGet && route.Method != http.MethodPost {
			t.Errorf("%s %s: only GET and POST are used", route.Method, route.Path)
		}
		if route.Method == http.MethodGet && (strings.HasSuffix(route.Path, "/remove") || route.Path == "/logout") {
			t.Errorf("GET %s would change something", route.Path)
		}
	}
}

func TestRoutes_DemandALogin(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.signedIn(t, owner).finished()
	open := map[string]bool{
		"/healthz": true, "/readyz": true, "/static/*": true, "/login": true, "/auth/github": true,
		"/auth/github/callback": true, "/logout": true, "/settings/theme": true,
		"/github/webhook": true, "/github/setup": true,
	}
	stranger := r.browser(t)
	for _, route := range r.server.Routes() {
		if open[route.Path] {
			continue
		}
		path := fill(route.Path, s)
		if a := stranger.do(route.Method, path, nil, "Accept", "application/json"); a.status != http.StatusUnauthorized || a.code() != "signed_out" {
			t.Errorf("%s %s as JSON without a login: %d, want 401", route.Method, route.Path, a.status)
		}
		if a := stranger.do(route.Method, path, nil, "HX-Request", "true"); a.status != http.StatusUnauthorized || !strings.HasPrefix(a.header.Get("HX-Redirect"), "/login") {
			t.Errorf("%s %s of htmx without a login: %d, HX-Redirect %q", route.Method, route.Path, a.status, a.header.Get("HX-Redirect"))
		}
		if a := stranger.do(route.Method, path, nil); a.status != http.StatusSeeOther || !strings.HasPrefix(a.location(), "/login") {
			t.Errorf("%s %s without a login: %d to %q, want the sign-in page", route.Method, route.Path, a.status, a.location())
		}
	}
}

func TestHeaders_OnEveryAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	s := b.finished()
	paths := []string{"/nothing-here", "/chat-sessions/not-an-id", r.chosenPath()}
	for _, route := range r.server.Routes() {
		if route.Method == http.MethodGet && !strings.HasSuffix(route.Path, "/stream") {
			paths = append(paths, fill(route.Path, s))
		}
	}
	pages := 0
	for _, path := range paths {
		a := b.get(path)
		html := strings.HasPrefix(a.header.Get("Content-Type"), "text/html")
		if html {
			pages++
		}
		want := map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		}
		if html {
			want["Content-Security-Policy"] = wantPolicy
		}
		for name, value := range want {
			if got := a.header.Get(name); got != value {
				t.Errorf("GET %s (%d): %s = %q, want %q", path, a.status, name, got, value)
			}
		}
		if a.header.Get("Permissions-Policy") == "" || a.header.Get("X-Request-Id") == "" {
			t.Errorf("GET %s: no Permissions-Policy or request id", path)
		}
		for _, inline := range []string{" style=", "<style", " onclick=", " onload=", " hx-on", "javascript:"} {
			if html && strings.Contains(a.body, inline) {
				t.Errorf("GET %s holds %q, which the policy forbids", path, inline)
			}
		}
	}
	if pages < 9 {
		t.Errorf("only %d pages were seen", pages)
	}
}

func TestPrivateContent_IsNeverCachedNorShownInline(t *testing.T) {
	t.Parallel()
	b := newRig(t).signedIn(t, owner)
	s := b.finished()
	base := "/chat-sessions/" + string(s.id)
	for _, path := range []string{"/diffs/" + string(s.diff), "/artifacts/" + string(s.artifact), "/artifacts/" + string(s.artifact) + "/raw", "/diffs/" + string(s.diff) + ".patch", "/events"} {
		if got := b.get(base + path).header.Get("Cache-Control"); got != "private, no-store" {
			t.Errorf("%s: Cache-Control %q", path, got)
		}
	}
	raw := b.get(base + "/artifacts/" + string(s.artifact) + "/raw")
	if raw.body != "<script>alert(1)</script>\nok\n" {
		t.Errorf("raw = %q", raw.body)
	}
	for name, want := range map[string]string{
		"Content-Type": "text/plain; charset=utf-8", "Content-Security-Policy": "default-src 'none'; sandbox",
		"Content-Disposition": "attachment; filename=artifact-" + core.Short(s.artifact) + ".txt",
	} {
		if got := raw.header.Get(name); got != want {
			t.Errorf("raw: %s = %q, want %q", name, got, want)
		}
	}
	if shown := b.get(base + "/artifacts/" + string(s.artifact)); strings.Contains(shown.body, "<script>alert") {
		t.Error("the artifact's page holds its content as HTML")
	}
	if patchText := b.get(base + "/diffs/" + string(s.diff) + ".patch"); patchText.body != patch {
		t.Errorf("the patch is %q", patchText.body)
	}
}

func TestCookie_IsBoundToHTTPS(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	plain := r.browser(t).get("/auth/github").header.Get("Set-Cookie")
	if !strings.HasPrefix(plain, "session=") || strings.Contains(plain, "Secure") {
		t.Errorf("http: %q", plain)
	}
	secure := newRig(t, func(o *web.Options, _ *chat.Gate) { o.PublicURL = "https://agent.example.org" })
	a := secure.browser(t).get("/auth/github")
	cookie := a.header.Get("Set-Cookie")
	for _, part := range []string{"__Host-session=", "Path=/", "HttpOnly", "Secure", "SameSite=Lax"} {
		if !strings.Contains(cookie, part) {
			t.Errorf("https: %q lacks %s", cookie, part)
		}
	}
	if strings.Contains(cookie, "Domain") || a.header.Get("Strict-Transport-Security") == "" {
		t.Errorf("https: %q, HSTS %q", cookie, a.header.Get("Strict-Transport-Security"))
	}
}

func TestLog_HoldsNoCodeNorText(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.signedIn(t, owner)
	cookie := b.cookie()
	id := b.create("a-very-private-request")
	b.get("/?q=a-very-private-search")
	b.get("/chat-sessions/" + string(id))
	r.stop()
	log := r.log.String()
	if !strings.Contains(log, `"msg":"request"`) || !strings.Contains(log, "/auth/github/callback") {
		t.Fatalf("the log has no requests:\n%s", log)
	}
	for _, secret := range []string{"code=", "state=", "a-very-private", cookie, "ghu_"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
}

func TestLimits_ArePerPerson(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *web.Options, _ *chat.Gate) { o.Limits = web.Limits{PerSecond: 0.001, Burst: 7} })
	first, second := r.signedIn(t, owner), r.signedIn(t, colleague)
	first.create("One") // weighs 5
	if a := first.json(http.MethodPost, "/chat-sessions", nil); a.status != http.StatusTooManyRequests || a.code() != "too_many_requests" || a.header.Get("Retry-After") == "" {
		t.Errorf("over the allowance: %d %s, Retry-After %q", a.status, a.body, a.header.Get("Retry-After"))
	}
	if a := first.get("/"); a.status != http.StatusOK {
		t.Errorf("the list, which costs nothing: %d", a.status)
	}
	second.create("Another person's")
}

func TestHealth(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.browser(t)
	for _, path := range []string{"/healthz", "/readyz"} {
		if a := b.get(path); a.status != http.StatusOK {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	r.cutDatabase(t)
	if a := b.get("/readyz"); a.status != http.StatusServiceUnavailable {
		t.Errorf("/readyz without a database: %d, want 503", a.status)
	}
	if a := b.get("/healthz"); a.status != http.StatusOK {
		t.Errorf("/healthz without a database: %d", a.status)
	}
	if a := b.get("/login", "Cookie", "session=abc", "Accept", "application/json"); a.status != http.StatusServiceUnavailable || a.code() != "database_unavailable" {
		t.Errorf("/login without a database: %d %s, want database_unavailable", a.status, a.body)
	}
}

// cutDatabase ends every connection to the test's database and refuses new ones.
func (r *rig) cutDatabase(t *testing.T) {
	t.Helper()
	config, err := pgx.ParseConfig(r.database)
	if err != nil {
		t.Fatal(err)
	}
	name := config.Database
	config.Database = "postgres"
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), "ALTER DATABASE "+pgx.Identifier{name}.Sanitize()+" WITH ALLOW_CONNECTIONS false"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name); err != nil {
		t.Fatal(err)
	}
}
