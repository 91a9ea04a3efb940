package handlers

import (
	"net/url"
	"strings"
	"testing"
)

func TestLocalPath(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"/":                             "/",
		"/chat-sessions/x?tab=changes":  "/chat-sessions/x?tab=changes",
		"/new?installation=1#branch":    "/new?installation=1#branch",
		"":                              "/",
		"//evil.test":                   "/",
		"/\\evil.test":                  "/",
		"\\/evil.test":                  "/",
		"https://evil.test":             "/",
		"javascript:alert(1)":           "/",
		"/%2f/evil.test":                "/",
		"/\tx":                          "/",
		"/\r\nSet-Cookie: a=b":          "/",
		"/auth/github":                  "/",
		"/login":                        "/",
		"/logout":                       "/",
		"/authors":                      "/authors",
		"/" + strings.Repeat("a", 4000): "/",
	} {
		if got := localPath(in); got != want {
			t.Errorf("localPath(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzLocalPath(f *testing.F) {
	for _, s := range []string{"/", "//a", "/\\a", "/a?b=//c", "/%5c/evil.test", "/.//evil.test", "/a/..//evil.test", "/\u2028", "/%0d%0aX: y"} {
		f.Add(s)
	}
	base, err := url.Parse("https://app.test/login")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got := localPath(in)
		u, err := url.Parse(got)
		if err != nil {
			t.Fatalf("localPath(%q) = %q, which does not parse: %v", in, got, err)
		}
		if to := base.ResolveReference(u); to.Host != "app.test" || to.Scheme != "https" {
			t.Errorf("localPath(%q) leads to %s", in, to)
		}
		if strings.ContainsAny(got, "\r\n\t\\") || strings.HasPrefix(got, "//") {
			t.Errorf("localPath(%q) = %q", in, got)
		}
	})
}
