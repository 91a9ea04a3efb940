package mirror

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"agent-sandboxing/core"
)

// Commit is everything that a commit's name depends on: the same values are the same commit.
type Commit struct {
	Tree    string
	Parent  string
	Merged  string // a second parent, "" for none
	Message string
	Name    string // of author and committer
	Email   string
	When    time.Time // whole seconds count
}

// Commit makes the commit in the quarantine and returns its name.
func (q *Quarantine) Commit(ctx context.Context, c Commit) (string, error) {
	if strings.ContainsAny(c.Name+c.Email, "<>\n\x00") || strings.Contains(c.Message, "\x00") {
		return "", errors.New("the commit's identity or message cannot be written")
	}
	who := fmt.Sprintf("%s <%s> %d +0000", c.Name, c.Email, c.When.Unix())
	parents := "parent " + c.Parent
	if c.Merged != "" {
		parents += "\nparent " + c.Merged
	}
	raw := fmt.Sprintf("tree %s\n%s\nauthor %s\ncommitter %s\n\n%s\n", c.Tree, parents, who, who, strings.TrimRight(c.Message, "\n"))
	return q.m.git.line(ctx, call{
		dir: q.dir, args: []string{"hash-object", "-t", "commit", "-w", "--stdin"}, stdin: strings.NewReader(raw),
	})
}

// IsAncestor says whether commit descends from ancestor, which a push never in force requires.
func (q *Quarantine) IsAncestor(ctx context.Context, ancestor, commit string) (bool, error) {
	err := q.m.git.run(ctx, call{dir: q.dir, config: hostileConfig, args: []string{"merge-base", "--is-ancestor", ancestor, commit}})
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 {
		return false, nil
	}
	return err == nil, err
}

// Contains says whether a commit is there at all and an ancestor of head.
func (q *Quarantine) Contains(ctx context.Context, commit, head string) (bool, error) {
	if !isSHA(commit) {
		return false, nil
	}
	kind, err := q.m.git.line(ctx, call{dir: q.dir, config: hostileConfig, args: []string{"cat-file", "-t", commit}})
	if ended(ctx, err) {
		return false, context.Cause(ctx)
	}
	if err != nil || kind != "commit" {
		return false, nil
	}
	return q.IsAncestor(ctx, commit, head)
}

// TreeOf is the tree of a commit.
func (q *Quarantine) TreeOf(ctx context.Context, commit string) (string, error) {
	return q.m.git.line(ctx, call{dir: q.dir, args: []string{"rev-parse", "--verify", "--end-of-options", commit + "^{tree}"}})
}

// Without returns tree as it is without the given changes: what they added is gone, what they changed or
// removed is as before. A file that is taken back replaces a folder of its name, and the reverse.
func (q *Quarantine) Without(ctx context.Context, tree string, changes []Change) (string, error) {
	if len(changes) == 0 {
		return tree, nil
	}
	steps := []call{
		{args: []string{"read-tree", tree}},
		{args: []string{"update-index", "--replace", "-z", "--index-info"}},
	}
	var back strings.Builder
	for _, c := range changes { // first all that goes, so that it does not stand in the way of what comes back
		fmt.Fprintf(&back, "0 %040d\t%s\x00", 0, c.Path)
	}
	for _, c := range changes {
		if c.OldSHA != "" {
			fmt.Fprintf(&back, "%s %s\t%s\x00", c.OldMode, c.OldSHA, cmp.Or(c.OldPath, c.Path))
		}
	}
	steps[1].stdin = strings.NewReader(back.String())
	for _, c := range steps {
		c.dir, c.config, c.limits = q.dir, hostileConfig, q.m.hostile()
		if err := q.m.git.run(ctx, c); err != nil {
			return "", q.unreadable(ctx, err)
		}
	}
	return q.m.git.line(ctx, call{dir: q.dir, config: hostileConfig, args: []string{"write-tree"}})
}

// Sizes returns the sizes of blobs in bytes, in the order asked for.
func (q *Quarantine) Sizes(ctx context.Context, blobs []string) ([]int64, error) {
	out, err := q.m.git.output(ctx, call{
		dir: q.dir, config: hostileConfig, limits: q.m.hostile(), stdin: strings.NewReader(strings.Join(blobs, "\n") + "\n"),
		args: []string{"cat-file", "--batch-check=%(objecttype) %(objectsize)", "--buffer"},
	})
	if err != nil {
		return nil, q.unreadable(ctx, err)
	}
	sizes := make([]int64, 0, len(blobs))
	for line := range strings.Lines(string(out)) {
		kind, size, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		n, err := strconv.ParseInt(size, 10, 64)
		if err != nil || kind != "blob" {
			return nil, rejected(errors.New("a listed file is no blob"))
		}
		sizes = append(sizes, n)
	}
	if len(sizes) != len(blobs) {
		return nil, rejected(errors.New("a listed file is missing"))
	}
	return sizes, nil
}

// EachBlob calls visit with the content of each blob, in the order asked for. The caller has made
// sure by Sizes that they are small.
func (q *Quarantine) EachBlob(ctx context.Context, blobs []string, visit func(i int, data []byte)) error {
	if len(blobs) == 0 {
		return nil
	}
	out, err := q.m.git.output(ctx, call{
		dir: q.dir, config: hostileConfig, limits: q.m.hostile(), stdin: strings.NewReader(strings.Join(blobs, "\n") + "\n"),
		args: []string{"cat-file", "--batch=%(objectsize)", "--buffer"},
	})
	if err != nil {
		return q.unreadable(ctx, err)
	}
	in := bufio.NewReader(bytes.NewReader(out))
	for i := range blobs {
		line, err := in.ReadString('\n')
		if err != nil {
			return rejected(err)
		}
		size, err := strconv.Atoi(strings.TrimSuffix(line, "\n"))
		if err != nil || size < 0 || size > maxOutput {
			return rejected(errors.New("odd size of a blob"))
		}
		data := make([]byte, size+1)
		if _, err := io.ReadFull(in, data); err != nil {
			return rejected(err)
		}
		visit(i, data[:size])
	}
	return nil
}

// FetchBranch brings the session's branch from GitHub into the quarantine and returns its head.
func (m *Mirror) FetchBranch(ctx context.Context, repo core.Repository, token core.RepoToken, q *Quarantine, branch string) (string, error) {
	r, err := newRemote(m.gitURL(repo), token)
	if err != nil {
		return "", err
	}
	const ref = "refs/agent/branch"
	err = m.bring(ctx, call{
		dir: q.dir, remote: r,
		args: []string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", r.url, "+refs/heads/" + branch + ":" + ref},
	})
	if err != nil {
		return "", fetchError(err)
	}
	return m.resolve(ctx, q.dir, ref)
}

// RemoteHead is the commit of a branch on GitHub, "" when there is no such branch.
func (m *Mirror) RemoteHead(ctx context.Context, repo core.Repository, token core.RepoToken, branch string) (string, error) {
	r, err := newRemote(m.gitURL(repo), token)
	if err != nil {
		return "", err
	}
	// ls-remote needs no repository, but an explicit one keeps it from looking for one.
	out, err := m.git.output(ctx, call{dir: m.git.home, args: []string{"ls-remote", "--quiet", "--refs", r.url, "refs/heads/" + branch}, remote: r})
	if err != nil {
		return "", fetchError(err)
	}
	for line := range strings.Lines(string(out)) {
		sha, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if name == "refs/heads/"+branch && isSHA(sha) {
			return sha, nil
		}
	}
	return "", nil
}
