package handlers

import (
	"net/url"
	"strings"
)

// localPath returns s when it is a path of this site that may be gone to after sign-in, else "/".
func localPath(s string) string {
	if len(s) > 2048 || !strings.HasPrefix(s, "/") || strings.HasPrefix(s, "//") || strings.ContainsRune(s, '\\') {
		return "/"
	}
	for _, r := range s {
		if r < 0x20 || r == 0x7f {
			return "/"
		}
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || strings.HasPrefix(u.Path, "//") || strings.ContainsRune(u.Path, '\\') {
		return "/"
	}
	for _, p := range []string{"/auth", "/login", "/logout"} {
		if u.Path == p || strings.HasPrefix(u.Path, p+"/") {
			return "/"
		}
	}
	return s
}
