package redact

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

const secret = "s3cr3t/value+with&odd=chars?"

func TestText_ReplacesEveryFormOfAKnownSecret(t *testing.T) {
	t.Parallel()
	quoted, err := json.Marshal("a\n" + secret)
	if err != nil {
		t.Fatal(err)
	}
	key := "-----BEGIN THING-----\nMIIEpAIBAAKCAQEAx0123456789abcdef\nQUJDREVGR0hJSktMTU5PUFFSU1RVVldY\n-----END THING-----\n"
	r := New(secret, key)
	tests := map[string]string{
		"raw":            "token is " + secret + " indeed",
		"base64":         base64.StdEncoding.EncodeToString([]byte(secret)),
		"base64 raw":     base64.RawStdEncoding.EncodeToString([]byte(secret)),
		"base64 url":     base64.URLEncoding.EncodeToString([]byte(secret)),
		"base64 shift 1": base64.StdEncoding.EncodeToString([]byte("x" + secret + "tail")),
		"base64 shift 2": base64.URLEncoding.EncodeToString([]byte("xy" + secret + "t")),
		"base64 shift 3": base64.StdEncoding.EncodeToString([]byte("x-access-token:" + secret)),
		"query":          "?t=" + url.QueryEscape(secret),
		"path":           "/" + url.PathEscape(secret) + "/x",
		"json":           string(quoted),
		"line of a key":  "key.pem:2:MIIEpAIBAAKCAQEAx0123456789abcdef",
		"key in json":    strings.ReplaceAll(key, "\n", `\n`),
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, n := r.Text(text)
			if n == 0 || !strings.Contains(out, Mark) {
				t.Fatalf("Text(%q) = %q, %d: nothing was redacted", text, out, n)
			}
			for _, form := range append(forms(secret), forms(strings.TrimSpace(key))...) {
				if strings.Contains(out, form) {
					t.Errorf("Text(%q) = %q still holds %q", text, out, form)
				}
			}
		})
	}
}

func TestText_CountsReplacements(t *testing.T) {
	t.Parallel()
	r := New(secret)
	out, n := r.Text(secret + " and [redacted] and " + secret + " and ghp_abcdefghijklmnop0123")
	if want := "[redacted] and [redacted] and [redacted] and [redacted]"; out != want || n != 3 {
		t.Errorf("got %q, %d; want %q, 3", out, n, want)
	}
}

func TestText_KnowsTokenShapes(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want string }{
		{"ghs_16C7e42F292c6912E7710c838347Ae178B4a.", "[redacted]."},
		{"set \\nghs_16C7e42F292c6912E7710c838347Ae178B4a", "set \\n[redacted]"},
		{"GET /?t=x-access-token%3Aghs_16C7e42F292c6912E7710c838347Ae178B4a&x=1", "GET /?t=x-access-token%3A[redacted]&x=1"},
		{"%3aghs_16C7e42F292c6912E7710c838347Ae178B4a", "%3a[redacted]"},
		{"ghs_987654_eyJhbGciOiJSUzI1NiJ9-_x.eyJpc3MiOiJ-_9.c2lnbmF0dXJl-_c2ln, said git", "[redacted], said git"},
		{"Basic eC1hY2Nlc3MtdG9rZW46Z2hzXzE2QzdlNDJG==", "Basic [redacted]"},
		{"github_pat_11ABCDEFG0abcdefghij_KLMNOP", "[redacted]"},
		{"OPENAI=sk-proj-abc123abc123abc123", "OPENAI=[redacted]"},
		{"id AKIAIOSFODNN7EXAMPLE;", "id [redacted];"},
		{"https://x-access-token:v1.abcdef@host/x.git", "https://x-access-token:[redacted]@host/x.git"},
		{"postgres://app:hunter22@db/x", "postgres://app:[redacted]@db/x"},
		{`Authorization: Bearer abcdefgh.ijkl`, `Authorization: Bearer [redacted]`},
		{"a\n-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----\nb", "a\n[redacted]\nb"},
		{"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\nMIIEvQIBADANBgkqhkiG9w0BAQ\n\nplain text", "[redacted]\n\nplain text"},
		// Words that only look a little like tokens stay.
		{"the sk-learn-compatible-estimator-api", "the sk-learn-compatible-estimator-api"},
		{"task-1234567890abcdefgh", "task-1234567890abcdefgh"},
		{"http://localhost:8080/path@x", "http://localhost:8080/path@x"},
		{"x-access-token:[redacted]@", "x-access-token:[redacted]@"},
		{"a commit 16c7e42f292c6912e7710c838347ae178b4a0000", "a commit 16c7e42f292c6912e7710c838347ae178b4a0000"},
	}
	r := New()
	for _, test := range tests {
		if got, _ := r.Text(test.in); got != test.want {
			t.Errorf("Text(%q) = %q, want %q", test.in, got, test.want)
		}
	}
}

func TestAdd_IgnoresWhatIsTooShortAndTrims(t *testing.T) {
	t.Parallel()
	r := New("", "a", "12345", "  spaced-secret\n")
	if out, n := r.Text("a 12345 b spaced-secret"); out != "a 12345 b [redacted]" || n != 1 {
		t.Errorf("got %q, %d", out, n)
	}
}

func TestAddUntil_ForgetsAtTheEndAndNeverWhatIsForEver(t *testing.T) {
	t.Parallel()
	r := New("lasting-secret")
	r.AddUntil(time.Now().Add(time.Hour), "living-secret")
	r.AddUntil(time.Now().Add(-time.Hour), "ended-secret")
	r.AddUntil(time.Now().Add(-time.Hour), "lasting-secret")
	r.Add("another-secret") // forgets what has ended
	if out, _ := r.Text("lasting-secret living-secret ended-secret another-secret"); out != "[redacted] [redacted] ended-secret [redacted]" {
		t.Errorf("got %q", out)
	}
}

func TestRedactor_IsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	r := New()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			mine := strings.Repeat(string(rune('a'+i)), 12)
			r.Add(mine)
			if out, _ := r.Text("x" + mine + "y"); out != "x[redacted]y" {
				t.Errorf("got %q", out)
			}
		})
	}
	wg.Wait()
}

func TestClean(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want string }{
		{"plain\n\ttext é", "plain\n\ttext é"},
		{"\x1b[31mred\x1b[0m", "red"},
		{"\x1b]0;title\x07after", "after"},
		{"10%\r50%\r100%\r\ndone\r\n", "100%\ndone\n"},
		{"a\x00b\x07c\x7fd\u0085e", "a\uFFFDbcde"},
		{"bad \xff byte", "bad \uFFFD byte"},
		{"\x1b]0;never ends\nnext line", "\nnext line"},
		{"no\u00a0break", "no\u00a0break"},
	}
	for _, test := range tests {
		if got := Clean(test.in); got != test.want {
			t.Errorf("Clean(%q) = %q, want %q", test.in, got, test.want)
		}
	}
}

func TestCuts_KeepWholeRunes(t *testing.T) {
	t.Parallel()
	const s = "aé日本🙂z" // 1+2+3+3+4+1 bytes
	for limit := -1; limit <= len(s)+1; limit++ {
		for name, got := range map[string]string{"Cut": Cut(s, limit), "Head": Head(s, limit), "Tail": Tail(s, limit)} {
			if len(got) > max(limit, 0) || !utf8.ValidString(got) {
				t.Errorf("%s(%d) = %q", name, limit, got)
			}
		}
	}
	if got := Cut("abcdefgh", 6); got != "abc…" {
		t.Errorf("Cut = %q", got)
	}
	if got := Line("a\n\n  b\tc", 100); got != "a b c" {
		t.Errorf("Line = %q", got)
	}
	long := strings.Repeat("x", 3000)
	if got := Ends(long, 100, 200); !strings.Contains(got, "[… 2.6 KiB left out …]") || len(got) > 400 {
		t.Errorf("Ends = %q", got)
	}
}

func FuzzText_LeavesNoKnownSecret(f *testing.F) {
	f.Add("before ", "s3cr3t-value", " after")
	f.Add("[redac", "[redacted]", "ted]")
	f.Add("-----BEGIN PRIVATE KEY-----", "ghp_abcdefghijklmnopqrst", "\x00\xff")
	f.Fuzz(func(t *testing.T, before, value, after string) {
		value = strings.TrimSpace(value)
		if len(value) < minSecret || strings.Contains(Mark, value) || strings.ContainsAny(value, "[]") {
			return
		}
		out, n := New(value).Text(before + value + after)
		if strings.Contains(out, value) {
			t.Errorf("%q is still in %q", value, out)
		}
		if n == 0 {
			t.Errorf("nothing counted in %q", out)
		}
	})
}

func FuzzClean(f *testing.F) {
	f.Add("\x1b[1;31mx\x1b[0m\r\n\xff", 5)
	f.Add("10%\r20%\r", 3)
	f.Add("\u009b31m\x9b\xc2", 1)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		out := Clean(s)
		if !utf8.ValidString(out) {
			t.Errorf("Clean(%q) = %q is not UTF-8", s, out)
		}
		for _, r := range out {
			if r != '\n' && printable(r) != r {
				t.Errorf("Clean(%q) = %q keeps %U", s, out, r)
			}
		}
		if strings.Count(out, "\n") != strings.Count(s, "\n") {
			t.Errorf("Clean(%q) = %q changed the number of lines", s, out)
		}
		if again := Clean(out); again != out {
			t.Errorf("Clean is not idempotent: %q, %q", out, again)
		}
		if got := Cut(out, limit); len(got) > max(limit, 0) || !utf8.ValidString(got) {
			t.Errorf("Cut(%q, %d) = %q", out, limit, got)
		}
	})
}

// However a text is cut, notice included: it is within its bound, and valid when it was. What is
// stored of an answer has 500 bytes, which no multiple of three or four is.
func FuzzCuts(f *testing.F) {
	f.Add(strings.Repeat("错", 300), 500, 200)
	f.Add(strings.Repeat("🙂", 200), 500, 7)
	f.Add("ends in half \xe9\x94", 13, 1)
	f.Add("\x80\x80\x80\x80", 2, 2)
	f.Fuzz(func(t *testing.T, s string, limit, tail int) {
		limit, tail = min(max(limit, -1), 1<<20), min(max(tail, 0), 1<<20)
		for name, got := range map[string]string{"Cut": Cut(s, limit), "Head": Head(s, limit), "Tail": Tail(s, limit), "Line": Line(s, limit)} {
			if len(got) > max(limit, 0) || utf8.ValidString(s) && !utf8.ValidString(got) {
				t.Errorf("%s(%q, %d) = %q", name, s, limit, got)
			}
		}
		got := Ends(s, max(limit, 0), tail)
		if len(got) > len(s) || utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Errorf("Ends(%q, %d, %d) = %q", s, limit, tail, got)
		}
		if got := Cut(Clean(s), limit); !utf8.ValidString(got) || len(got) > max(limit, 0) || strings.ContainsRune(got, 0) {
			t.Errorf("a clean cut of %q is %q", s, got)
		}
	})
}

// The quick look before a pattern never rules out what the pattern finds.
func FuzzShapes_TheQuickLookMissesNothing(f *testing.F) {
	for _, s := range []string{
		"ghp_abcdefghijklmnop0123", "xghghs_16C7e42F292c6912E7710c838347Ae178B4a", "gh", "ghgh_", "github_pat_11ABCDEFG0abcdefghij_KLMNOP", "glpat-0123456789abcdefgh",
		"sk-proj-abc123abc123abc123", "AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE", "AIza0123456789012345678901234567890abcde", "xoxb-0123456789", "npm_012345678901234567890123456789012345",
		"eyJhbGciOiJI.eyJzdWIiOiIx.abcdefgh", "x-access-token:abcd", "ftp://u:pass@h", "aUTHORIZATION: Bearer abcdefgh", "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for i, shape := range tokenShapes {
			if shape.pattern.MatchString(s) && !shape.may(s) {
				t.Errorf("shape %d is missed in %q", i, s)
			}
		}
	})
}
