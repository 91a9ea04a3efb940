package mirror

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"agent-sandboxing/core"

	"github.com/google/go-cmp/cmp"
)

const shaA, shaB = "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"

func FuzzParseChanges(f *testing.F) {
	zero := strings.Repeat("0", 40)
	for _, seed := range []string{
		"",
		":100644 100644 " + shaA + " " + shaB + " M\x00a\x001\t2\ta\x00",
		":000000 100644 " + zero + " " + shaB + " A\x00a\nb\x00-\t-\ta\nb\x00",
		":100644 100755 " + shaA + " " + shaA + " R100\x00old\x00new\x000\t0\t\x00old\x00new\x00",
		":100644 000000 " + shaA + " " + zero + " D\x00x\ty\x000\t9\tx\ty\x00",
		":100644 100644 " + shaA + " " + shaB + " M\x00a\x001\t2\tb\x00",
		":100644 100644 " + shaA + " " + shaB + " U\x00a\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		changes, err := parseChanges(bytes.NewReader(data))
		if err != nil {
			return
		}
		for _, c := range changes {
			switch c.Status {
			case "added", "modified", "deleted", "renamed", "mode", "type":
			default:
				t.Errorf("status %q", c.Status)
			}
			if c.Path == "" || (c.Status == "renamed") != (c.OldPath != "") || c.Additions < 0 || c.Deletions < 0 || strings.ContainsRune(c.Path, 0) {
				t.Errorf("change %+v", c)
			}
		}
	})
}

func FuzzParsePorcelain(f *testing.F) {
	const ref = "refs/heads/agent/x"
	for _, seed := range []string{
		"To http://127.0.0.1/o/r.git\n!\t" + shaA + ":" + ref + "\t[rejected] (stale info)\nDone\n",
		"!\t" + shaA + ":" + ref + "\t[remote rejected] (push declined due to repository rule violations)\n",
		"*\t" + shaA + ":" + ref + "\t[new branch]\nDone\n", "!\t:" + ref + "\t", "!\t\t(", "=\t:" + ref + "\t[up to date]\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, out string) {
		reason, refused := parsePorcelain(out, ref)
		if refused && !strings.Contains(out, "!\t") || !refused && reason != "" {
			t.Errorf("%q refused %v", reason, refused)
		}
		err := pushRefused(reason, &gitError{verb: "push", stderr: out, cause: errors.New("exit status 1")})
		message := core.MessageOf(err)
		if core.CodeOf(err) == "internal" || strings.ContainsAny(message, "\n\r\x1b\x00") || (utf8.ValidString(out) && !utf8.ValidString(message)) {
			t.Errorf("message %q", message)
		}
	})
}

func FuzzCutPatch(f *testing.F) {
	f.Add([]byte("diff --git a/a b/a\n+x\ndiff --git a/b b/b\n+y\n"), 25)
	f.Add([]byte("diff --git a/a b/a\n+"+strings.Repeat("x", 70_000)+"\ndiff --git a/b b/b\n"), 100)
	f.Add([]byte(""), 0)
	f.Fuzz(func(t *testing.T, data []byte, limit int) {
		if limit < 0 || limit > 1<<20 {
			return
		}
		patch, truncated, whole := cutPatch(bytes.NewReader(data), limit, 1<<30)
		if !whole || len(patch) > limit || truncated == bytes.Equal(patch, data) {
			t.Errorf("%d of %d bytes, limit %d, truncated %v, whole %v", len(patch), len(data), limit, truncated, whole)
		}
	})
}

func TestSafeBranch_AgreesWithGit(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"main", "feature/x", "a.b", "ünïcode", "v1.0", "a@b", "HEAD", "-x", "a..b", "a b", "a~1", "a^", "a:b", "a?", "a*", "a[b", `a\b`,
		"a//b", "/a", "a/", "a.lock", "a.lock/b", ".a", "a/.b", "a.", "@", "@{x", "a@{b", "a\x7f", "a\tb", "a\nb", "",
	} {
		err := exec.CommandContext(t.Context(), "git", "check-ref-format", "refs/heads/"+name).Run()
		allowed := err == nil && name != "@" && !strings.HasPrefix(name, "-") // as `git branch` does
		if got := safeBranch(name); got != allowed {
			t.Errorf("safeBranch(%q) = %v, git says %v", name, got, allowed)
		}
	}
}

func TestCutAt_StopsAtTheDepthAndWhereTheMirrorEnds(t *testing.T) {
	t.Parallel()
	// d joins b and c, which both come from a; z is the root.
	parents := map[string][]string{"d": {"b", "c"}, "b": {"a"}, "c": {"a"}, "a": {"z"}, "z": nil}
	for _, c := range []struct {
		depth   int
		shallow []string
		want    []string
	}{
		{0, nil, nil},
		{1, nil, []string{"d"}},
		{2, nil, []string{"b", "c"}},
		{3, nil, []string{"a"}},
		{4, nil, nil}, // the root is no boundary
		{0, []string{"b"}, []string{"b"}},
		{3, []string{"b"}, []string{"b", "a"}},
	} {
		shallow := map[string]bool{}
		for _, s := range c.shallow {
			shallow[s] = true
		}
		if diff := cmp.Diff(c.want, cutAt("d", parents, shallow, c.depth)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", fmt.Sprint(c.depth, c.shallow), diff)
		}
	}
}

func TestRemote_RefusesAddressesThatCouldCarryTheToken(t *testing.T) {
	t.Parallel()
	token := core.RepoToken{Value: "t"}
	for _, address := range []string{"ext::sh", "file:///tmp/x", "ssh://h/x", "git://h/x", "https://user@h/x", "https://u:p@h/x", "https:///x", "/tmp/x", "https://h/x?y=1", "https://h/x#y", "-x"} {
		if _, err := newRemote(address, token); err == nil {
			t.Errorf("%s was accepted", address)
		}
	}
	for _, value := range []string{"", "a\nb", "a\rb", "a\x00b"} {
		if _, err := newRemote("https://h/x", core.RepoToken{Value: value}); err == nil {
			t.Errorf("token %q was accepted", value)
		}
	}
}
