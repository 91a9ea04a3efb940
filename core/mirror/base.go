package mirror

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"agent-sandboxing/core"
)

const fetchTimeout = 10 * time.Minute

// lenientFsck lets through defects that old, honest histories have. Everything that could hurt
// (.git look-alikes, odd modes, bad paths) stays an error.
var lenientFsck = []string{
	"fetch.fsck.zeroPaddedFilemode=ignore",
	"fetch.fsck.badTimezone=ignore",
	"fetch.fsck.missingSpaceBeforeDate=ignore",
	"fetch.fsck.missingEmail=ignore",
	"fetch.fsck.missingNameBeforeEmail=ignore",
	"fetch.fsck.badDate=ignore",
}

// withBase calls use with the mirror's folder and the session's base commit, which is present and
// kept there. The lock is held until use returns. With fresh the branch must still point to the base,
// unless this mirror keeps it for the session already.
func (m *Mirror) withBase(ctx context.Context, s core.ChatSession, fresh bool, use func(dir, base string) error) error {
	if s.Repository.IsFixture() {
		return m.withFixture(ctx, s, use)
	}
	if !isSHA(s.BaseSHA) || !safeBranch(s.BaseBranch) {
		return core.Fail(core.Invalid, "branch_missing", "This session's base branch cannot be fetched. Start a new session from another branch.")
	}
	held, err := m.locks.acquire(ctx, key(s.Repository))
	if err != nil {
		return err
	}
	defer held.release()
	dir, err := m.open(ctx, s.Repository)
	if err != nil {
		return err
	}
	kept, err := m.resolve(ctx, dir, keepRef(s.ID))
	if err != nil {
		return err
	}
	if kept != s.BaseSHA {
		if err := m.fetchBase(ctx, held, dir, s, fresh); err != nil {
			return err
		}
	}
	return use(dir, s.BaseSHA)
}

// fetchBase brings the base in and keeps it: with fresh by its branch, whose head it must be, else by
// itself, because the branch may have moved or be gone.
func (m *Mirror) fetchBase(ctx context.Context, held *lock, dir string, s core.ChatSession, fresh bool) error {
	incoming := "refs/agent/incoming/" + string(s.ID)
	err := m.withToken(ctx, s.Repository, func(r *remote) error {
		if !fresh {
			if err := m.fetch(ctx, held, dir, r, "+"+s.BaseSHA+":"+incoming); err != nil {
				return fetchError(err)
			}
			return nil
		}
		err := m.fetch(ctx, held, dir, r, "+refs/heads/"+s.BaseBranch+":"+incoming)
		if err != nil {
			return m.explainMissing(ctx, dir, r, s, err)
		}
		head, err := m.resolve(ctx, dir, incoming)
		if err == nil && head != s.BaseSHA {
			err = core.Fail(core.Conflict, "base_moved", fmt.Sprintf(
				"The branch %s moved from %.12s to %.12s before the session began. Nothing was run: start the session again from the new commit.",
				s.BaseBranch, s.BaseSHA, head))
		}
		return err
	})
	if err != nil {
		return err
	}
	script := fmt.Sprintf("update %s %s\ndelete %s\n", keepRef(s.ID), s.BaseSHA, incoming)
	return m.git.run(ctx, call{dir: dir, args: []string{"update-ref", "--stdin"}, stdin: strings.NewReader(script), lock: held})
}

func (m *Mirror) fetch(ctx context.Context, held *lock, dir string, r *remote, refspec string) error {
	args := []string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"}
	if m.depth > 0 {
		args = append(args, "--depth="+strconv.Itoa(m.depth))
	}
	args = append(args, r.url, refspec)
	return m.bring(ctx, call{dir: dir, args: args, remote: r, lock: held})
}

// withToken reads with a token of this repository. When GitHub refuses it, one more is minted and tried:
// a shared one may have lost its rights or have been revoked, and a fresh one may not be known everywhere.
func (m *Mirror) withToken(ctx context.Context, repo core.Repository, use func(*remote) error) error {
	token, err := m.useToken(ctx, repo, 0, use)
	if core.CodeOf(err) != CodeForbidden || token.Value == "" {
		return err
	}
	var pause time.Duration
	if time.Since(token.MintedAt) < freshToken {
		pause = m.authRetry
	}
	_, err = m.useToken(ctx, repo, pause, use)
	return err
}

// useToken gives a minted token the pause to become known; the zero token says that there was none.
func (m *Mirror) useToken(ctx context.Context, repo core.Repository, pause time.Duration, use func(*remote) error) (core.RepoToken, error) {
	token, err := m.tokens.Mint(ctx, repo, core.TokenRead)
	if err != nil {
		return core.RepoToken{}, err
	}
	r, err := newRemote(m.gitURL(repo), token)
	if err != nil {
		return core.RepoToken{}, err
	}
	select {
	case <-time.After(pause):
	case <-ctx.Done():
		return core.RepoToken{}, context.Cause(ctx)
	}
	err = use(r)
	if core.CodeOf(err) == CodeForbidden {
		m.tokens.Refused(token)
	}
	return token, err
}

// explainMissing tells an empty repository from a branch that is gone. Something that answers in
// GitHub's place, such as a proxy's page, looks empty too.
func (m *Mirror) explainMissing(ctx context.Context, dir string, r *remote, s core.ChatSession, err error) error {
	failed, ok := errors.AsType[*gitError](err)
	if !ok || !failed.says("couldn't find remote ref") {
		return fetchError(err)
	}
	heads, listErr := m.git.output(ctx, call{dir: dir, args: []string{"ls-remote", "--quiet", "--heads", r.url}, remote: r})
	switch {
	case listErr != nil:
		return fetchError(listErr)
	case len(heads) == 0:
		return core.Fail(core.Conflict, "empty_repository",
			"GitHub shows no branch of "+s.Repository.FullName()+". If it has commits there, try again in a minute; else push a first one and start a session.").Because(err)
	}
	return core.Fail(core.Conflict, "branch_missing",
		"The branch "+s.BaseBranch+" is not on GitHub any more. Start a session from another branch.").Because(err)
}

// boundary lists the commits at which a checkout of base is cut: the depth-th generation, and
// where the mirror itself ends. The caller holds the lock, so that both readings agree.
func (m *Mirror) boundary(ctx context.Context, dir, base string) ([]string, error) {
	cut, err := shallowFile(dir)
	if err != nil || (m.depth == 0 && len(cut) == 0) {
		return nil, err
	}
	out, err := m.git.output(ctx, call{dir: dir, args: []string{"rev-list", "--parents", base}})
	if err != nil {
		return nil, err
	}
	parents := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 0 {
			parents[f[0]] = f[1:]
		}
	}
	return cutAt(base, parents, cut, m.depth), nil
}

// cutAt walks generation by generation from base and returns where the walk has to stop although
// history goes on. depth 0 means no limit.
func cutAt(base string, parents map[string][]string, shallow map[string]bool, depth int) []string {
	var cut []string
	seen := map[string]bool{base: true}
	for level, generation := []string{base}, 1; len(level) > 0; generation++ {
		var next []string
		for _, commit := range level {
			if shallow[commit] || (depth > 0 && generation >= depth && len(parents[commit]) > 0) {
				cut = append(cut, commit)
				continue
			}
			for _, p := range parents[commit] {
				if !seen[p] {
					seen[p] = true
					next = append(next, p)
				}
			}
		}
		level = next
	}
	return cut
}

func shallowFile(dir string) (map[string]bool, error) {
	data, err := os.ReadFile(dir + "/shallow")
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read shallow file: %w", err)
	}
	cut := map[string]bool{}
	for _, sha := range bytes.Fields(data) {
		cut[string(sha)] = true
	}
	return cut, nil
}

// safeBranch refuses what git refuses in a branch name, and so everything that would change the
// meaning of a refspec.
func safeBranch(name string) bool {
	if name == "" || len(name) > 255 || name == "@" || strings.HasPrefix(name, "-") ||
		strings.ContainsAny(name, " ~^:?*[\\\x7f") || strings.Contains(name, "..") || strings.Contains(name, "@{") ||
		strings.HasSuffix(name, ".") {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return strings.IndexFunc(name, func(r rune) bool { return r < 0x20 }) < 0
}
