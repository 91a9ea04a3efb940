package mirror_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/core/mirror"
	"agent-sandboxing/core/mirror/mirrortest"
)

var (
	full      = flag.Bool("full", false, "hostile repositories in the sizes of make hostile-check")
	bombMiB   = flag.Int64("bomb", 0, "MiB of the bomb of the measured process")
	bombPaths = flag.Int64("paths", 0, "paths of its bomb of folders")
	deepTree  = 30_000 // folders in one another: more than the stack of git's recursion takes
)

// dangerous are trees that git's own checks refuse, wherever they come from.
func dangerous() map[string]func(*mirrortest.Objects) string {
	file := mirrortest.Entry{Mode: "100644", Name: "a"}
	named := func(names ...string) func(*mirrortest.Objects) string {
		return func(o *mirrortest.Objects) string {
			var entries []mirrortest.Entry
			for _, n := range names {
				entries = append(entries, mirrortest.Entry{Mode: "100644", Name: n})
			}
			return o.Tree(entries...)
		}
	}
	modules := func(text string) func(*mirrortest.Objects) string {
		return func(o *mirrortest.Objects) string {
			return o.Tree(mirrortest.Entry{Mode: "100644", Name: ".gitmodules", SHA: o.Blob(text)})
		}
	}
	return map[string]func(*mirrortest.Objects) string{
		"dot git":              named(".git"),
		"in another case":      named(".GIT"),
		"its short name":       named("git~1"),
		"with ignored letters": named(".g\u200cit"),
		"with a stream":        named(".git::$INDEX_ALLOCATION"),
		"with a backslash":     named(`.git\config`),
		"dot":                  named("."),
		"dot dot":              named(".."),
		"slash":                named("a/b"),
		"no name":              named(""),
		"twice":                named("a", "a"),
		"out of order":         named("b", "a"),
		"a folder and a file": func(o *mirrortest.Objects) string {
			return o.Tree(file, mirrortest.Entry{Mode: "40000", Name: "a", SHA: o.Tree(file)})
		},
		"dot git deep below": func(o *mirrortest.Objects) string {
			return o.Nested(o.Tree(mirrortest.Entry{Mode: "40000", Name: ".git", SHA: o.Tree(file)}), 5)
		},
		"a link for .gitmodules": func(o *mirrortest.Objects) string {
			return o.Tree(mirrortest.Entry{Mode: "120000", Name: ".gitmodules"})
		},
		"a submodule's address that is an option": modules("[submodule \"a\"]\n\tpath = a\n\turl = -u./payload\n"),
		"a submodule's path that is an option":    modules("[submodule \"a\"]\n\tpath = -u./payload\n\turl = https://h/x\n"),
		"a submodule's name that leads out":       modules("[submodule \"../../hooks\"]\n\tpath = a\n\turl = https://h/x\n"),
		"a submodule's command":                   modules("[submodule \"a\"]\n\tpath = a\n\turl = https://h/x\n\tupdate = !touch /tmp/x\n"),
	}
}

// broken are packs that cannot be what they say.
func broken() map[string]func(*mirrortest.Objects) string {
	file := mirrortest.Entry{Mode: "100644", Name: "a"}
	return map[string]func(*mirrortest.Objects) string{
		"deltas in a circle": func(o *mirrortest.Objects) string {
			o.RefDelta(strings.Repeat("01", 20), 10, 10, 10)
			o.RefDelta(strings.Repeat("02", 20), 10, 10, 10)
			return o.Tree(file)
		},
		"a delta of more than memory": func(o *mirrortest.Objects) string {
			o.RefDelta(o.Zeros(1<<20), 1<<20, 1<<20, 3<<30)
			return o.Tree(file)
		},
		"a delta of another size than said": func(o *mirrortest.Objects) string {
			o.RefDelta(o.Blob("x\n"), 1<<30, 1<<10, 1<<12)
			return o.Tree(file)
		},
		"a missing blob": func(o *mirrortest.Objects) string {
			return o.Tree(mirrortest.Entry{Mode: "100644", Name: "a", SHA: strings.Repeat("07", 20)})
		},
		"a missing folder": func(o *mirrortest.Objects) string {
			return o.Tree(mirrortest.Entry{Mode: "40000", Name: "a", SHA: strings.Repeat("07", 20)})
		},
		"a blob for a folder": func(o *mirrortest.Objects) string {
			return o.Tree(mirrortest.Entry{Mode: "40000", Name: "a", SHA: o.Blob("x\n")})
		},
	}
}

// A pack is whatever a sandbox sends. None of these becomes a tree that anything reads.
func TestImport_RefusesHostilePacks(t *testing.T) {
	t.Parallel()
	file := mirrortest.Entry{Mode: "100644", Name: "a"}
	trees := map[string]func(*mirrortest.Objects) string{
		"a commit for a tree": func(o *mirrortest.Objects) string { return o.Commit(o.Tree(file)) },
		"an unknown tree":     func(o *mirrortest.Objects) string { o.Tree(file); return strings.Repeat("ab", 20) },
	}
	maps.Copy(trees, dangerous())
	maps.Copy(trees, broken())
	packs := map[string]func(*mirrortest.Objects) []byte{
		"no pack":       func(*mirrortest.Objects) []byte { return []byte("PACKnonsense that is no pack at all") },
		"a cut pack":    func(o *mirrortest.Objects) []byte { p := o.Pack(); return p[:len(p)-7] },
		"more to come":  func(o *mirrortest.Objects) []byte { return o.PackOf(3000) },
		"none, it says": func(o *mirrortest.Objects) []byte { return o.PackOf(0) },
		"another sum":   func(o *mirrortest.Objects) []byte { p := o.Pack(); p[len(p)-1] ^= 1; return p },
		"a broken blob": func(o *mirrortest.Objects) []byte { p := o.Pack(); p[16] ^= 0xff; return p },
	}
	b := setup(t)
	b.checkout(t, b.session) // all sessions find their base in the mirror
	refused := func(name string, tree string, pack []byte) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSession(b.repo, b.session.BaseSHA)
			q, err := b.mirror.Import(t.Context(), s, forged{snap: core.Snapshot{TreeSHA: tree, BaseSHA: s.BaseSHA}, pack: pack})
			wantCode(t, err, "snapshot_rejected")
			if q != nil {
				t.Error("a refused import gave a quarantine")
			}
		})
	}
	for name, plant := range trees {
		o := &mirrortest.Objects{}
		tree := plant(o)
		refused(name, tree, o.Pack())
	}
	for name, spoil := range packs {
		o := &mirrortest.Objects{}
		tree := o.Tree(file)
		refused(name, tree, spoil(o))
	}
}

// GitHub's word is not taken either: what could hurt is refused with a code, what is broken is no
// repository, and neither leaves anything in the mirror.
func TestFetch_RefusesHostileObjects(t *testing.T) {
	t.Parallel()
	refused := func(name string, plant func(*mirrortest.Objects) string, codes ...string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			honest := b.session.BaseSHA
			o := &mirrortest.Objects{}
			head := o.Commit(plant(o))
			b.server.Point(t, b.repo, "main", head)
			b.server.Fault(sends(o.Pack()))
			s := newSession(b.repo, head)
			_, _, err := b.mirror.Checkout(t.Context(), s, false)
			if !slices.Contains(codes, core.CodeOf(err)) {
				t.Errorf("err = %v, want one of %v", err, codes)
			}
			if left := partial(t, b.dir); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			b.server.Fault(nil)
			b.server.Point(t, b.repo, "main", honest)
			b.checkout(t, b.session)
		})
	}
	for name, plant := range dangerous() {
		refused(name, plant, "repository_rejected")
	}
	for name, plant := range broken() {
		refused(name, plant, "repository_rejected", "github_unavailable", "clone_too_large")
	}
}

// forged is a sandbox that sends what it likes.
type forged struct {
	core.PlatformWorkspace
	snap core.Snapshot
	pack []byte
}

func (f forged) Snapshot(_ context.Context, pack io.Writer) (core.Snapshot, error) {
	_, _ = pack.Write(f.pack) // git may have had enough
	return f.snap, nil
}

// Folders that lie too deep in one another for git's own recursion end the one git that reads them.
func TestImport_SurvivesATreeOfEnormousDepth(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := &mirrortest.Objects{}
	tree := o.Nested(o.Tree(mirrortest.Entry{Mode: "100644", Name: "a"}), deepTree)
	ws := forged{snap: core.Snapshot{TreeSHA: tree, BaseSHA: b.session.BaseSHA}, pack: o.Pack()}
	_, err := b.mirror.Capture(t.Context(), b.session, ws)
	wantCode(t, err, "snapshot_rejected")
}

// From GitHub such a tree is taken as long as git can name its files within its memory.
func TestFetch_SurvivesATreeOfEnormousDepth(t *testing.T) {
	t.Parallel()
	depth, code := 2_000, ""
	if *full {
		depth, code = 60_000, "clone_too_large"
	}
	b := setup(t)
	o := &mirrortest.Objects{}
	head := o.Commit(o.Nested(o.Tree(mirrortest.Entry{Mode: "100644", Name: "a"}), depth))
	b.session.BaseSHA = b.server.Plant(t, b.repo, "main", head, o)
	b.server.Fault(sends(o.Pack())) // the server's own git could not
	_, pack, err := b.mirror.Checkout(t.Context(), b.session, false)
	if code == "" && err == nil {
		_, err = io.Copy(io.Discard, pack)
		_ = pack.Close()
	}
	if core.CodeOf(err) != code && err != nil {
		t.Errorf("err = %v, want code %q", err, code)
	}
	if left := partial(t, b.dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// sends answers whoever asks for objects with this pack, whatever was asked for.
func sends(pack []byte) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !isPack(r) {
			return false
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		_, _ = io.WriteString(w, "000dpackfile\n")
		for part := range slices.Chunk(pack, 60_000) {
			_, _ = fmt.Fprintf(w, "%04x\x01%s", len(part)+5, part) // git may have had enough
		}
		_, _ = io.WriteString(w, "0000")
		return true
	}
}

// usage is the largest resident memory of one process and of the largest of its children, in MiB.
type usage struct{ Self, Children int64 }

// What a bomb holds when it is unpacked is never held: neither by us nor by git, whether it comes from
// GitHub or from a sandbox, and however it is looked at.
func TestBomb_MemoryIsFlat(t *testing.T) {
	t.Parallel()
	large := int64(48)
	if *full {
		large = 300
	}
	small, big := measure(t, "bomb", 8), measure(t, "bomb", large)
	t.Logf("8 MiB: %d MiB here, %d MiB git; %d MiB: %d MiB here, %d MiB git", small.Self, small.Children, large, big.Self, big.Children)
	if grown := big.Self - small.Self; grown > 24 {
		t.Errorf("our process grew by %d MiB", grown)
	}
	if grown := big.Children - small.Children; grown > 24 || big.Children > 64 {
		t.Errorf("git grew by %d MiB to %d MiB", grown, big.Children)
	}
}

// A tree of shared folders names millions of files in a pack of a few KiB. They are counted as they come.
func TestBomb_ManyPathsAreRefusedWithoutHoldingThem(t *testing.T) {
	t.Parallel()
	small, big := measure(t, "paths", 110_000), measure(t, "paths", 1_000_000)
	t.Logf("110,000 paths: %d MiB here; 1,000,000: %d MiB here, %d MiB git", small.Self, big.Self, big.Children)
	if grown := big.Self - small.Self; grown > 24 {
		t.Errorf("our process grew by %d MiB", grown)
	}
}

func TestBomb_MeasuredPaths(t *testing.T) {
	if *bombPaths == 0 {
		return // TestBomb_ManyPathsAreRefusedWithoutHoldingThem is the test
	}
	b := setup(t)
	o := &mirrortest.Objects{}
	top := repeated(o, "40000", repeated(o, "40000", repeated(o, "100644", o.Blob("a\n"), 100), 100), int(*bombPaths/10_000))
	pack := o.Pack()
	if len(pack) > 32<<10 {
		t.Errorf("a pack of %d bytes", len(pack))
	}
	ws := forged{snap: core.Snapshot{TreeSHA: top, BaseSHA: b.session.BaseSHA}, pack: pack}
	_, err := b.mirror.Capture(t.Context(), b.session, ws)
	wantCode(t, err, "snapshot_rejected")
	if message := core.MessageOf(err); !strings.Contains(message, "more than 100000 files") {
		t.Errorf("message %q", message)
	}
	report(t)
}

// repeated is a tree that holds one object under count names.
func repeated(o *mirrortest.Objects, mode, sha string, count int) string {
	entries := make([]mirrortest.Entry, count)
	for i := range entries {
		entries[i] = mirrortest.Entry{Mode: mode, Name: fmt.Sprintf("%03d", i), SHA: sha}
	}
	return o.Tree(entries...)
}

// measure runs the measured test of a bomb in a process of its own, because children count for ever.
func measure(t *testing.T, bomb string, size int64) (u usage) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBomb_Measured", "-"+bomb+"="+strconv.FormatInt(size, 10))
	out, err := cmd.CombinedOutput()
	_, line, found := strings.Cut(string(out), "measured ")
	line, _, _ = strings.Cut(line, "\n")
	if err != nil || !found || json.Unmarshal([]byte(line), &u) != nil {
		t.Fatalf("the measured process: %v\n%s", err, out)
	}
	return u
}

func TestBomb_Measured(t *testing.T) {
	if *bombMiB == 0 {
		return // TestBomb_MemoryIsFlat is the test
	}
	b := setup(t)
	o := &mirrortest.Objects{}
	files := []mirrortest.Entry{{Mode: "100644", Name: "README.md"}, {Mode: "100644", Name: "zeros", SHA: o.Zeros(*bombMiB << 20)}}
	b.session.BaseSHA = b.server.Plant(t, b.repo, "main", o.Commit(o.Tree(files...)), o)
	_, pack, err := b.mirror.Checkout(t.Context(), b.session, false)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, pack); err != nil || n > 2<<20 {
		t.Errorf("a pack of %d bytes, %v", n, err)
	}
	_ = pack.Close()
	if data, err := b.mirror.ReadBase(t.Context(), b.session, "zeros", 1000); err != nil || len(data) != 1000 {
		t.Errorf("%d bytes of the base's, %v", len(data), err)
	}

	sent := &mirrortest.Objects{}
	more := sent.Zeros(*bombMiB<<20 + 1)
	tree := sent.Tree(mirrortest.Entry{Mode: "100644", Name: "README.md"}, mirrortest.Entry{Mode: "100644", Name: "more", SHA: more}, mirrortest.Entry{Mode: "100644", Name: "zeros", SHA: more})
	ws := forged{snap: core.Snapshot{TreeSHA: tree, BaseSHA: b.session.BaseSHA}, pack: sent.Pack()}
	diff, err := b.mirror.Capture(t.Context(), b.session, ws)
	if err != nil || len(diff.Files) != 2 || len(diff.Patch) > 4000 {
		t.Errorf("%d files, a patch of %d bytes, %v", len(diff.Files), len(diff.Patch), err)
	}
	b.push(t, ws)
	report(t)
}

// report prints what measure reads.
func report(t *testing.T) {
	t.Helper()
	var children syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children); err != nil {
		t.Fatal(err)
	}
	u, err := json.Marshal(usage{Self: peak(t), Children: children.Maxrss >> 10})
	fmt.Printf("measured %s\n", u)
	if err != nil {
		t.Error(err)
	}
}

// push takes a snapshot all the way to the server.
func (b *bundle) push(t *testing.T, ws core.PlatformWorkspace) {
	t.Helper()
	ctx := t.Context()
	q, err := b.mirror.Import(ctx, b.session, ws)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	changes, err := q.Changes(ctx, q.Base, q.Tree)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if _, err := q.Sizes(ctx, []string{c.NewSHA}); err != nil {
			t.Error(err)
		}
	}
	commit, err := q.Commit(ctx, mirror.Commit{Tree: q.Tree, Parent: q.Base, Message: "Change", Name: "bot", Email: "bot@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	token, err := b.server.Mint(ctx, b.repo, core.TokenPublish)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.mirror.Push(ctx, b.repo, token, q, commit, b.session.Branch, ""); err != nil {
		t.Error(err)
	}
}

// peak is the largest resident memory that this process ever had, in MiB.
func peak(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(status) {
		if value, ok := bytes.CutPrefix(line, []byte("VmHWM:")); ok {
			kib, err := strconv.ParseInt(strings.Fields(string(value))[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib >> 10
		}
	}
	t.Fatal("no peak in /proc/self/status")
	return 0
}
