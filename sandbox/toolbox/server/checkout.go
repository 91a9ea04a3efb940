package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"agent-sandboxing/sandbox/toolbox/wire"
)

// maxShallow bounds the shallow file. Bytes.
const maxShallow = 1 << 20

// rawAttributes, as the strongest attributes of the repository, make git take and give every file as
// the bytes that it has, whatever .gitattributes says.
const rawAttributes = "* -text -ident -filter -working-tree-encoding\n"

// checkout makes the repository from body: the shallow file, the index of a pack, and the pack. What
// an earlier attempt left unfinished is removed; a finished one is never touched again, except that
// BaseOnly makes the platform's part of it anew.
func (w worktree) checkout(ctx context.Context, a wire.CheckoutArgs, body io.ReadCloser) error {
	if !isSHA1(a.BaseSHA) || !isRefName(a.Branch) || !isRefName(a.BaseRef) || a.RemoteURL == "" ||
		strings.ContainsFunc(a.RemoteURL, func(r rune) bool { return r < ' ' || r == 0x7f }) ||
		a.ShallowSize < 0 || a.ShallowSize > maxShallow || a.IndexSize <= 0 {
		return wire.Fail(wire.BadRequest, "checkout")
	}
	clear := w.clear
	if a.BaseOnly {
		clear = w.clearPlatform
	}
	if err := clear(); err != nil {
		return err
	}
	shallow, err := io.ReadAll(io.LimitReader(body, a.ShallowSize))
	if err != nil {
		return err
	}
	mark := step{"mark", func() error { return w.put(startedFile, a.BaseSHA+"\n") }}
	base := []step{
		{"objects", func() error {
			return w.makeGitDir(baseGit, gitDir{bare: true, head: "refs/heads/base", refs: map[string]string{"refs/heads/base": a.BaseSHA}, shallow: string(shallow)})
		}},
		{"pack", func() error { return w.takePack(body, a) }},
	}
	repository := []step{
		{"repository", func() error { return w.makeGitDir("repo/.git", repositoryOf(a, string(shallow))) }},
		{"link", func() error { return w.linkPacks() }},
		{"read-tree", func() error {
			work := path.Join(w.files.layout.Workspace, "repo")
			return w.git(ctx, "read-tree", gitCall{dir: "repo/.git", cwd: "repo", args: []string{"read-tree", "-m", "-u", a.BaseSHA}, env: []string{"GIT_WORK_TREE=" + work}})
		}},
	}
	finish := step{"finish", func() error { return w.put(baseFile, a.BaseSHA+"\n") }}
	steps := slices.Concat([]step{mark}, base, repository, []step{finish})
	if a.BaseOnly { // without the mark, which would make the repository one that may be removed
		steps = append(base, step{"verify", func() error {
			return w.git(ctx, "verify", gitCall{dir: baseGit, args: []string{"cat-file", "-e", a.BaseSHA + "^{tree}"}})
		}}, finish)
	}
	for _, s := range steps {
		err := s.do()
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case errorCode(err) == wire.DiskFull:
			return wire.Fail(wire.DiskFull, s.name)
		default:
			return wire.Fail(wire.CheckoutFailed, s.name)
		}
	}
	return nil
}

// step is a part of a checkout, named in the message when it fails.
type step struct {
	name string
	do   func() error
}

// clear makes room for a checkout, or says that there is one.
func (w worktree) clear() error {
	root := w.files.workspace
	if _, err := root.Lstat(baseFile); err == nil {
		return wire.Fail(wire.CheckoutExists, "")
	}
	entries, _, err := readEntries(root, "repo")
	if err != nil {
		return fileError(err, "repo")
	}
	if _, err := root.Lstat(startedFile); len(entries) > 0 && err != nil {
		return wire.Fail(wire.CheckoutExists, "")
	}
	if err := w.empty("repo"); err != nil {
		return err
	}
	return w.clearPlatform()
}

// clearPlatform makes room for the base, whatever commands have made of the platform's folder.
func (w worktree) clearPlatform() error {
	root := w.files.workspace
	if info, err := root.Lstat(platformDir); err == nil && !info.IsDir() {
		_ = root.Remove(platformDir) // else the next step says why not
	}
	if err := root.MkdirAll(platformDir, 0o755); err != nil {
		return fileError(err, platformDir)
	}
	w.unlock(platformDir, 0)
	return w.empty(platformDir)
}

// empty removes what is in dir, which itself may lie in a folder that is not ours to write.
func (w worktree) empty(dir string) error {
	entries, _, err := readEntries(w.files.workspace, dir)
	if err != nil {
		return fileError(err, dir)
	}
	for _, e := range entries {
		if err := w.files.workspace.RemoveAll(path.Join(dir, e.Name())); err != nil {
			return fileError(err, e.Name())
		}
	}
	return nil
}

// unlock gives the owner's rights back to dir and the folders in it, without which nothing in them can be
// removed. What is too deep is left to fail.
func (w worktree) unlock(dir string, depth int) {
	_ = w.files.workspace.Chmod(dir, 0o700)
	entries, _, err := readEntries(w.files.workspace, dir)
	if err != nil || depth > maxDepth {
		return
	}
	for _, e := range entries {
		if e.IsDir() {
			w.unlock(path.Join(dir, e.Name()), depth+1)
		}
	}
}

// gitDir is a git directory as files: nothing of git's templates is in it.
type gitDir struct {
	bare    bool
	remote  string
	head    string // the ref that HEAD points to
	refs    map[string]string
	shallow string
	raw     bool
}

func repositoryOf(a wire.CheckoutArgs, shallow string) gitDir {
	return gitDir{
		remote: a.RemoteURL,
		head:   "refs/heads/" + a.Branch,
		refs: map[string]string{
			"refs/heads/" + a.Branch:           a.BaseSHA,
			"refs/remotes/origin/" + a.BaseRef: a.BaseSHA,
		},
		shallow: shallow,
		raw:     true,
	}
}

func (w worktree) makeGitDir(dir string, g gitDir) error {
	files := map[string]string{
		"HEAD":   "ref: " + g.head + "\n",
		"config": g.config(),
	}
	for ref, sha := range g.refs {
		files[ref] = sha + "\n"
	}
	if g.shallow != "" {
		files["shallow"] = g.shallow
	}
	if g.raw {
		files["info/attributes"] = rawAttributes
	}
	for _, d := range []string{"objects/pack", "objects/info", "refs/heads", "refs/tags"} {
		if err := w.files.workspace.MkdirAll(path.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	for name, text := range files {
		if err := w.put(path.Join(dir, name), text); err != nil {
			return err
		}
	}
	return nil
}

func (g gitDir) config() string {
	var b strings.Builder
	fmt.Fprintf(&b, "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = %t\n\tlogallrefupdates = %t\n\tautocrlf = false\n", g.bare, !g.bare)
	b.WriteString("[gc]\n\tauto = 0\n")
	if g.remote != "" {
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(g.remote)
		fmt.Fprintf(&b, "[remote \"origin\"]\n\turl = \"%s\"\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n", quoted)
	}
	return b.String()
}

// takePack writes an index and the pack that it belongs to. Git holds the checksums of the two against
// each other when it opens them, so that half a pack is never taken for one.
func (w worktree) takePack(body io.Reader, a wire.CheckoutArgs) error {
	name := path.Join(baseGit, "objects/pack/pack-"+a.BaseSHA)
	for _, part := range []struct {
		suffix string
		from   io.Reader
	}{{".idx", io.LimitReader(body, a.IndexSize)}, {".pack", body}} {
		file, err := w.files.workspace.OpenFile(name+part.suffix, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
		if err != nil {
			return err
		}
		_, err = io.Copy(file, part.from)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return nil
}

// linkPacks gives the repository the base's objects. Removing them there leaves ours.
func (w worktree) linkPacks() error {
	const packs = "objects/pack"
	entries, _, err := readEntries(w.files.workspace, path.Join(baseGit, packs))
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(packs, e.Name())
		if err := w.files.workspace.Link(path.Join(baseGit, name), path.Join("repo/.git", name)); err != nil {
			return err
		}
	}
	return nil
}

// isRefName follows git's rules for the part of a ref behind refs/heads/.
func isRefName(name string) bool {
	if name == "" || len(name) > 1024 || strings.ContainsAny(name, " ~^:?*[\\") || strings.Contains(name, "..") ||
		strings.Contains(name, "@{") || strings.Contains(name, "//") || name == "@" ||
		strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || part[0] == '-' || strings.HasSuffix(part, ".") || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}

// errorCode is the code of a wire.Error in err's chain, or of the operating system's error.
func errorCode(err error) wire.Code {
	if known, ok := errors.AsType[*wire.Error](err); ok {
		return known.Code
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return errorCode(fileError(err, ""))
	}
	return wire.Failed
}
