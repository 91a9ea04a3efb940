package contract

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

const (
	mintPath = "/app/installations/7/access_tokens"
	minted   = `{"token":"ghs_x","expires_at":"2026-01-02T03:04:05Z","permissions":{"contents":"read"}}`
	refusal  = `{"message":"Bad credentials","documentation_url":"https://docs.github.com/rest","status":"401"}`
)

// exchange is one with JSON both ways.
func exchange(t *testing.T, method, address, body string, status int, answer string) Exchange {
	t.Helper()
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	json := http.Header{"Content-Type": {"application/json; charset=utf-8"}}
	return Exchange{Method: method, URL: at, Request: json, Body: []byte(body), Status: status, Response: json.Clone(), Answer: []byte(answer)}
}

func TestCheck_EachWayToBreakTheDescription(t *testing.T) {
	t.Parallel()
	c, err := New()
	if err != nil {
		t.Fatal(err)
	}
	moved := exchange(t, "GET", "/repos/o/r", "", 301, refusal)
	moved.Response.Set("Location", "/repositories/7")
	tests := []struct {
		name string
		x    Exchange
		want string // "" means that it is fine
	}{
		{"a mint", exchange(t, "POST", mintPath, `{"repository_ids":[1],"permissions":{"contents":"read"}}`, 201, minted), ""},
		{"a mint without a body", exchange(t, "POST", mintPath, "", 201, minted), ""},
		{"a permission that there is not", exchange(t, "POST", mintPath, `{"permissions":{"contents":"admin"}}`, 201, minted), "request"},
		{"a field of another type", exchange(t, "POST", mintPath, `{"repository_ids":["1"]}`, 201, minted), "request"},
		{"a misspelt field", exchange(t, "POST", mintPath, `{"repository_idz":[1]}`, 201, minted), `unknown field "repository_idz"`},
		{"a misspelt parameter", exchange(t, "GET", "/repos/o/r/pulls?heads=a", "", 200, `[]`), `unknown parameter "heads"`},
		{"a parameter out of its values", exchange(t, "GET", "/repos/o/r/pulls?state=merged", "", 200, `[]`), "request"},
		{"an answer without what it must have", exchange(t, "POST", mintPath, "", 201, `{"token":"ghs_x"}`), "answer 201"},
		{"an answer of another type", exchange(t, "GET", "/repos/o/r/pulls", "", 200, `{}`), "answer 200"},
		{"a status of success that there is not", exchange(t, "POST", mintPath, "", 200, minted), "answer 200"},
		{"a refusal that is not listed", exchange(t, "POST", mintPath, "", 429, refusal), ""},
		{"a refusal in another shape", exchange(t, "POST", mintPath, "", 429, `{"error":"no"}`), "no message"},
		{"a refusal that is no JSON", exchange(t, "POST", mintPath, "", 502, `<html>`), "answer 502"},
		{"a redirect", moved, ""},
		{"a redirect to nowhere", exchange(t, "POST", mintPath, "", 302, refusal), "redirect to nowhere"},
		{"an address that there is not", exchange(t, "GET", "/repos/o/r/secrets", "", 200, `{}`), "has no GET /repos/o/r/secrets"},
		{"a name with slashes", exchange(t, "GET", "/repos/o/r/git/ref/heads/a/b/c", "", 404, refusal), ""},
		{"by id", exchange(t, "GET", "/repositories/7/pulls", "", 200, `[]`), ""},
		{"a body where there is none", exchange(t, "DELETE", "/installation/token", `{"a":1}`, 204, ""), "a body where there is none"},
	}
	for _, tt := range tests {
		err := c.Check(tt.x)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
