package bashpolicy

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"agent-sandboxing/core"
)

func TestCheck_SeedHas63Commands(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, name := range seedNames {
		seen[name] = true
	}
	if len(seedNames) != 63 || len(seen) != 63 {
		t.Errorf("policy seed names %d commands, %d different ones, want 63", len(seedNames), len(seen))
	}
}

func TestCheck_Policies(t *testing.T) {
	t.Parallel()
	tests := []struct {
		policy  core.BashPolicy
		command string
		rule    string // "" when allowed
	}{
		{core.PolicyBuild, "go test ./...", ""},
		{core.PolicyBuild, "npm test", ""},
		{core.PolicyBuild, "pytest -q", ""},
		{core.PolicyBuild, "python3 -m unittest", ""},
		{core.PolicyBuild, "touch /tmp/x", ""},
		{core.PolicyBuild, "make build", ""},
		{core.PolicyBuild, "git commit -m x", "git_not_allowed"},
		{core.PolicyBuild, "curl https://example.org", "command_not_allowed"},
		{core.PolicyBuild, "node -e 1", "inline_code_not_allowed"},
		{core.PolicyBuild, "cat /etc/passwd", "path_outside_workspace"},
		{core.PolicyReadonly, "git diff --stat", ""},
		{core.PolicyReadonly, "grep -rn x src 2>/dev/null", ""},
		{core.PolicyReadonly, "rm x", "command_not_allowed"},
		{core.PolicyReadonly, "echo x > f", "redirect_not_allowed"},
		{core.PolicyReadonly, "git add x", "git_not_allowed"},
		{core.PolicyReadonly, "sed -i s/a/b/ f", "option_not_allowed"},
		{core.PolicyReadonly, "node x.js", "command_not_allowed"},
		{core.BashPolicy("unknown"), "ls", "command_not_allowed"},
	}
	for _, test := range tests {
		_, r := Check(test.policy, test.command)
		got := ""
		if r != nil {
			got = r.Rule
		}
		if got != test.rule {
			t.Errorf("%s: %q gives %q, want %q", test.policy, test.command, got, test.rule)
		}
	}
}

func TestCheck_SedRunsInItsSandboxMode(t *testing.T) {
	t.Parallel()
	got, r := Check(core.PolicySeed, `sed -i 's/a/b/' x`)
	if want := `sed '--sandbox' '-i' 's/a/b/' 'x'`; r != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, r, want)
	}
	// Behind -- it is the name of a file, behind -e a program.
	for _, command := range []string{"sed -e 1e -- --sandbox", "sed -e --sandbox x", "sed --sandbo -e 1e x"} {
		if got, r := Check(core.PolicySeed, command); r != nil || !strings.HasPrefix(got, "sed '--sandbox' ") {
			t.Errorf("%q becomes %q, %v", command, got, r)
		}
	}
}

// The text that runs must mean in any shell what the text that was judged means in bash.
func TestCheck_CanonicalTextMeansTheSame(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a.txt", "b.txt", "c d.txt", "x1.go", "x2.go", ".hidden", "it's"} {
		if err := os.WriteFile(dir+"/"+name, []byte(name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	commands := []string{
		`printf '[%s]' a'b'"c" \$x "\$y" '$z' "a\\b" "a\b" a\\b "it's" 'say "x"'`,
		`printf '[%s]' *.txt x[0-9].go x[!1].go x[^1].go "*.txt" \*.txt ?.txt .h* [[:alpha:]].txt`,
		`printf '[%s]' "a'b" '' "" a"*"b no-such-*`,
		"printf '[%s]' \"two\nlines\" one\\\nline",
		`printf '[%s]' "c d.txt" c\ d.txt it\'s {} {a} a{b}c =x "a=~" a~ "~"`,
		`printf x > out.txt && cat out.txt a.txt | sort -r && ! grep -q nothing a.txt`,
		`cat missing > both.log 2>&1 || wc -l < a.txt`,
		`cat a.txt missing &> both.log ; `,
		`A=1 B='two words' env | grep -e '^A=' -e '^B=' | sort`,
		`printf '%s\n' '#not a comment' # a comment`,
		`echo 'a\nb' "c\td" && echo -n x && echo -E 'a\tb' && echo -e 'a\tb\x41\u00e9\07\e[0m\q\' && echo -e 'cut\c' here`,
		`test abc == abc && echo equal`,
		`printf '[%s]' - -- '!' ! '[' ] "a]b" [`,
	}
	for _, command := range commands {
		canonical, r := Check(core.PolicySeed, command)
		if r != nil {
			t.Errorf("%q is refused: %s", command, r.Rule)
			continue
		}
		want, wantErr := shell(t, dir, "bash", command)
		got, gotErr := shell(t, dir, "sh", canonical)
		if got != want || (gotErr == nil) != (wantErr == nil) {
			t.Errorf("%q\n in bash: %q %v\n as %q\n in sh: %q %v", command, want, wantErr, canonical, got, gotErr)
		}
	}
}

func shell(t *testing.T, dir, name, text string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, "-c", text)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"}
	var out bytes.Buffer
	cmd.Stdout = &out
	err := cmd.Run()
	return out.String(), err
}

func FuzzCheck(f *testing.F) {
	for _, line := range append(allowed(f), denied(f)...) {
		f.Add(line.Command)
	}
	f.Fuzz(func(t *testing.T, src string) {
		stricter := core.BashPolicy("") // that allows src
		for _, policy := range []core.BashPolicy{core.PolicyReadonly, core.PolicySeed, core.PolicyBuild, core.PolicyOpen} {
			canonical, r := Check(policy, src)
			if r != nil && stricter != "" {
				t.Errorf("%q is allowed under %s and refused under %s by %s", src, stricter, policy, r.Rule)
			}
			if r != nil {
				if r.Rule == "" || r.Message == "" {
					t.Errorf("%s: %q is refused without a reason", policy, src)
				}
				continue
			}
			stricter = policy
			again, r := Check(policy, canonical)
			if r != nil {
				t.Fatalf("%s: %q is allowed as %q, which is refused by %s", policy, src, canonical, r.Rule)
			}
			if again != canonical {
				t.Errorf("%s: %q renders as %q and then as %q", policy, src, canonical, again)
			}
		}
	})
}
