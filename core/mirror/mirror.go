// Package mirror is the control plane's git. It keeps one bare mirror per repository, gives a
// session's base to its sandbox as a pack, takes a work tree back as a pack into a quarantine, makes
// diffs from trees, and pushes. Only it runs git with a token, and only in repositories whose
// configuration is its own; nothing that a repository brings along is ever run.
package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"agent-sandboxing/core"
)

// Options of a Mirror.
type Options struct {
	Dir          string                       // where mirrors and quarantines live
	GitPath      string                       // "" means git of PATH, looked up once
	GitURL       func(core.Repository) string // token-free address of a repository
	Tokens       Tokens
	CloneDepth   int           // commits of history in a checkout; 0 means all
	CAFile       string        // certificates that git trusts; "" means the system's
	FixturesDir  string        // folder of fixture repositories; "" means there are none
	MaxPackBytes int64         // of a snapshot; 0 means 256 MiB
	MaxBaseBytes int64         // of what one fetch of a base may bring, packed; 0 means 4 GiB
	FetchTimeout time.Duration // of one fetch; 0 means 10 minutes
	FetchStall   time.Duration // without progress, which ends a fetch or a push; whole seconds, 0 means 30
	Log          *slog.Logger
}

// Tokens hands out installation tokens for one repository and one purpose, which it ends itself.
type Tokens interface {
	Mint(ctx context.Context, repo core.Repository, purpose core.TokenPurpose) (core.RepoToken, error)
	// Refused says that GitHub did not take a token, so that nobody gets it again.
	Refused(token core.RepoToken)
}

// Mirror is safe for concurrent use, also by several processes on one Dir.
type Mirror struct {
	git         runner
	repos       string // bare mirrors and their locks
	quarantines string
	locks       *locks
	gitURL      func(core.Repository) string
	tokens      Tokens
	depth       int
	fixtures    string
	maxPack     int64
	maxBase     uint64
	fetchWithin time.Duration
	log         *slog.Logger
	authRetry   time.Duration // wait after the refusal of a fresh token
}

const (
	defaultMaxPack = 256 << 20
	defaultMaxBase = 4 << 30
	stallTime      = 30 * time.Second
	// staleQuarantine is far above what the time limits of an import and a push add up to.
	staleQuarantine = 2 * time.Hour
	// freshToken is the age below which a token may be unknown to a part of GitHub, and authRetryAfter
	// how long that is given time.
	freshToken     = 10 * time.Second
	authRetryAfter = 1500 * time.Millisecond
)

// New makes the folders and removes quarantines that a dead process left.
func New(o Options) (*Mirror, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("mirror folder: %w", err)
	}
	m := &Mirror{
		repos: filepath.Join(dir, "repos"), quarantines: filepath.Join(dir, "quarantine"),
		gitURL: o.GitURL, tokens: o.Tokens, depth: o.CloneDepth, fixtures: o.FixturesDir,
		maxPack: cmp.Or(o.MaxPackBytes, defaultMaxPack), maxBase: uint64(cmp.Or(o.MaxBaseBytes, defaultMaxBase)),
		fetchWithin: cmp.Or(o.FetchTimeout, fetchTimeout), log: o.Log, authRetry: authRetryAfter,
	}
	for _, d := range []string{m.repos, m.quarantines} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("mirror folder: %w", err)
		}
	}
	m.locks = &locks{dir: m.repos, turn: map[string]chan struct{}{}}
	if m.git, err = newRunner(o.GitPath, filepath.Join(dir, "home"), o.CAFile); err != nil {
		return nil, err
	}
	m.git.stall = cmp.Or(o.FetchStall, stallTime)
	return m, m.sweep(time.Now().Add(-staleQuarantine))
}

func (m *Mirror) sweep(before time.Time) error {
	entries, err := os.ReadDir(m.quarantines)
	if err != nil {
		return fmt.Errorf("read quarantines: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.ModTime().After(before) {
			continue // gone meanwhile, or in use
		}
		if err := os.RemoveAll(filepath.Join(m.quarantines, e.Name())); err != nil {
			return fmt.Errorf("remove an old quarantine: %w", err)
		}
	}
	return nil
}

// key names a repository's mirror: by id, because names change hands.
func key(repo core.Repository) string {
	if repo.IsFixture() {
		return "fixture" + strconv.FormatInt(int64(repo.ID), 10)
	}
	return strconv.FormatInt(int64(repo.ID), 10)
}

func (m *Mirror) dir(repo core.Repository) string {
	return filepath.Join(m.repos, key(repo)+".git")
}

// open returns the mirror's folder, made empty when there is none. The caller holds the lock.
func (m *Mirror) open(ctx context.Context, repo core.Repository) (string, error) {
	dir := m.dir(repo)
	switch _, err := os.Stat(dir); {
	case err == nil:
		return dir, clearAbandoned(dir)
	case !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("open mirror: %w", err)
	}
	fresh := dir + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return "", fmt.Errorf("make mirror: %w", err)
	}
	if err := m.init(ctx, fresh); err != nil {
		return "", err
	}
	if err := os.Rename(fresh, dir); err != nil {
		return "", fmt.Errorf("make mirror: %w", err)
	}
	return dir, nil
}

// init makes an empty bare repository without templates, so without hooks and foreign settings.
func (m *Mirror) init(ctx context.Context, dir string) error {
	return m.git.run(ctx, call{dir: dir, args: []string{"init", "--quiet", "--bare", "--template=", "--initial-branch=none"}})
}

// clearAbandoned removes what a killed git left: its lock files would refuse every later write.
// Whoever holds our lock knows that no git of ours still writes.
func clearAbandoned(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return fmt.Errorf("look for abandoned files: %w", err)
		case e.IsDir() && filepath.Base(filepath.Dir(path)) == "objects" && len(e.Name()) == 2:
			return fs.SkipDir // loose objects: many, and never locked
		case e.IsDir():
			return nil
		case strings.HasSuffix(e.Name(), ".lock"), strings.HasPrefix(e.Name(), "tmp_"):
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("remove an abandoned file: %w", err)
			}
		}
		return nil
	})
}

// keepRef keeps a session's base from being lost when the branch moves on. That it exists says
// that this session was checked out before.
func keepRef(id core.SessionID) string { return "refs/agent/sessions/" + string(id) }

// resolve returns the commit of a name, "" when it does not exist.
func (m *Mirror) resolve(ctx context.Context, dir, name string) (string, error) {
	sha, err := m.git.line(ctx, call{dir: dir, args: []string{"rev-parse", "--verify", "--quiet", "--end-of-options", name + "^{commit}"}})
	if _, ok := errors.AsType[*gitError](err); ok && sha == "" {
		return "", nil
	}
	return sha, err
}

// isSHA accepts a full object name of either hash.
func isSHA(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}
