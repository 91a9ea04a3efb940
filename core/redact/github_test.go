package redact

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"
)

// installationTokens are GitHub's two kinds: forty characters, and the one of 2026 that holds a JWT.
func installationTokens() map[string]string {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	jwt := part(`{"alg":"RS256","kid":"~?~>","typ":"JWT"}`) + "." +
		part(`{"exp":1798764400,"iat":1798760800,"iss":"github","permissions":{"contents":"write","metadata":"read"},"repositories":[123456789],"nonce":"`+strings.Repeat("~?", 40)+`"}`) + "." +
		strings.Repeat("aB3-_Z9x", 20)
	return map[string]string{"short": "ghs_16C7e42F292c6912E7710c838347Ae178B4a", "stateless": "ghs_1234567_" + jwt}
}

// A token is taken out however it is written, known beforehand or told by its look alone.
func TestText_TakesOutBothKindsOfInstallationToken(t *testing.T) {
	t.Parallel()
	for kind, token := range installationTokens() {
		if kind == "short" && len(token) != 40 || kind == "stateless" && (len(token) < 500 || !strings.Contains(token, "-")) {
			t.Fatalf("the %s token has %d characters", kind, len(token))
		}
		basic := "x-access-token:" + token
		for form, text := range map[string]string{
			"raw":                token,
			"basic":              base64.StdEncoding.EncodeToString([]byte(basic)),
			"basic, URL":         base64.URLEncoding.EncodeToString([]byte(basic)),
			"basic, unpadded":    base64.RawStdEncoding.EncodeToString([]byte(basic)),
			"header":             "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(basic)),
			"bearer":             "authorization: bearer " + token,
			"userinfo":           "https://" + basic + "@github.com/o/r.git",
			"userinfo of a user": "https://" + token + "@github.com/o/r.git",
			"escaped":            url.QueryEscape(basic),
			"query":              "/callback?token=" + token + "&x=1",
			"JSON":               `{"token":"` + token + `","expires_at":"2026-01-01T00:00:00Z"}`,
			"quoted line":        `remote: fatal\n` + token + `\n`,
			"credential answer":  "username=x-access-token\npassword=" + token + "\n",
			"variable":           "GITHUB_TOKEN=" + token,
		} {
			for how, r := range map[string]*Redactor{"known": New(token), "by its look": New()} {
				out, n := r.Text("before " + text + " after")
				if n == 0 || !strings.HasPrefix(out, "before ") || !strings.HasSuffix(out, " after") {
					t.Errorf("%s token %s, %s: %d found in %q", kind, how, form, n, out)
				}
				for _, part := range pieces(token) {
					if strings.Contains(out, part) {
						t.Errorf("%s token %s, %s: %q holds %q", kind, how, form, out, part)
					}
				}
			}
		}
	}
}

// pieces are parts of a token, raw and as basic authentication encodes them, that give it away.
func pieces(token string) []string {
	const size = 12
	encoded := base64.StdEncoding.EncodeToString([]byte("x-access-token:" + token))[len(basicAccess):]
	var all []string
	for _, text := range []string{token[4:], encoded} {
		for at := 0; at+size <= len(text); at += size {
			all = append(all, text[at:at+size])
		}
	}
	return all
}
