package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"agent-sandboxing/core"
)

// Quarantine is a throw-away bare repository whose alternate is the mirror. Objects that a sandbox
// sent stay in it; the mirror never gets them. It must be closed.
type Quarantine struct {
	m    *Mirror
	dir  string
	Base string // the session's base commit
	Tree string // the imported work tree, "" when nothing was imported
	// Nested are folders that were repositories of their own; their files are plain files of Tree.
	Nested []string
}

const (
	importTimeout = 3 * time.Minute
	importCPU     = 120
)

// hostile bounds every command that reads objects which a sandbox sent.
func (m *Mirror) hostile() limits {
	return limits{cpu: importCPU, file: uint64(m.maxPack) + 512<<20}
}

// hostileConfig keeps threads within those limits.
var hostileConfig = []string{"pack.threads=1"}

// Open makes a quarantine that sees the session's base.
func (m *Mirror) Open(ctx context.Context, s core.ChatSession) (*Quarantine, error) {
	q := &Quarantine{m: m}
	err := m.withBase(ctx, s, false, func(dir, base string) error {
		var err error
		if q.dir, err = os.MkdirTemp(m.quarantines, "q-"); err != nil {
			return fmt.Errorf("make quarantine: %w", err)
		}
		q.Base = base
		if err := m.init(ctx, q.dir); err != nil {
			return err
		}
		alternates := filepath.Join(q.dir, "objects", "info", "alternates")
		if err := os.WriteFile(alternates, []byte(filepath.Join(dir, "objects")+"\n"), 0o600); err != nil {
			return fmt.Errorf("make quarantine: %w", err)
		}
		// Where the mirror ends, the quarantine's walks end too.
		shallow, err := os.ReadFile(filepath.Join(dir, "shallow"))
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(q.dir, "shallow"), shallow, 0o600)
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, q.Close())
	}
	// A fetch into the quarantine tells the server what is already here by this reference.
	if err := m.git.run(ctx, call{dir: q.dir, args: []string{"update-ref", "refs/agent/base", q.Base}}); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

// Close removes it with everything that was imported.
func (q *Quarantine) Close() error {
	if q.dir == "" {
		return nil
	}
	return os.RemoveAll(q.dir)
}

// Import takes the session's work tree into a quarantine. A sandbox that could not make a snapshot
// is snapshot_failed (or its own core.Error, such as sandbox_lost); a pack that git refuses, or that
// is too large or too costly, is snapshot_rejected.
func (m *Mirror) Import(ctx context.Context, s core.ChatSession, ws core.PlatformWorkspace) (*Quarantine, error) {
	q, err := m.Open(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := q.take(ctx, ws); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

// take feeds one snapshot to index-pack, which is under limits before its first byte arrives.
func (q *Quarantine) take(ctx context.Context, ws core.PlatformWorkspace) error {
	read, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("snapshot pipe: %w", err)
	}
	index, err := q.m.git.start(ctx, call{
		dir: q.dir, config: hostileConfig, limits: q.m.hostile(), timeout: importTimeout, stdin: read,
		args: []string{"index-pack", "--stdin", "--fix-thin", "--strict", "--threads=1", fmt.Sprintf("--max-input-size=%d", q.m.maxPack)},
	})
	_ = read.Close() // the child has its own
	if err != nil {
		return errors.Join(err, write.Close())
	}
	pack := &counter{w: write}
	sending, cancel := context.WithTimeoutCause(ctx, importTimeout, errTimeLimit)
	snap, sendErr := ws.Snapshot(sending, pack)
	cancel()
	_ = write.Close()
	indexErr := index.wait()
	switch {
	case ended(ctx, indexErr, sendErr):
		return context.Cause(ctx)
	case pack.refused:
		return rejected(indexErr)
	case sendErr != nil:
		if _, ok := errors.AsType[*core.Error](sendErr); ok {
			return sendErr
		}
		return snapshotFailed("The sandbox could not hand over its work tree. Try again.").Because(sendErr)
	case indexErr != nil && pack.n > 0: // nothing new to send is no pack at all
		return rejected(indexErr)
	}
	return q.accept(ctx, snap)
}

// accept checks what the sandbox says of its snapshot.
func (q *Quarantine) accept(ctx context.Context, snap core.Snapshot) error {
	if !isSHA(snap.TreeSHA) || snap.BaseSHA != q.Base {
		return snapshotFailed("The sandbox's snapshot does not belong to this session's base. Try again.")
	}
	kind, err := q.m.git.line(ctx, call{dir: q.dir, config: hostileConfig, limits: q.m.hostile(), args: []string{"cat-file", "-t", snap.TreeSHA}})
	if ended(ctx, err) {
		return context.Cause(ctx)
	}
	if err != nil || kind != "tree" {
		return rejected(err)
	}
	q.Tree, q.Nested = snap.TreeSHA, snap.NestedRepositories
	return nil
}

func snapshotFailed(message string) *core.Error {
	return core.Fail(core.Unavailable, "snapshot_failed", message)
}

func rejected(cause error) *core.Error {
	message := "The work tree cannot be read as safe git objects. Remove unusual files (names such as .git inside folders, damaged repositories) and try again."
	if errors.Is(cause, errTooManyChanges) {
		message = fmt.Sprintf("The work tree differs from its base in more than %d files. Remove generated folders from it, or add them to .gitignore, and try again.", maxChanges)
	} else if failed, ok := errors.AsType[*gitError](cause); ok {
		switch {
		case failed.says("exceeds maximum allowed size"), failed.signal() == syscall.SIGXFSZ:
			message = "The changes are too large to take over. Remove large new files from the work tree, or add them to .gitignore, and try again."
		case errors.Is(failed, errTimeLimit), failed.exhausted():
			message = "Reading the changes took too much memory or time. Remove very large files from the work tree and try again."
		}
	}
	return core.Fail(core.Conflict, "snapshot_rejected", message).Because(cause)
}

// counter counts what a sandbox sends and remembers that index-pack would not take more of it.
type counter struct {
	w       io.Writer
	n       int64
	refused bool
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	if err != nil {
		c.refused = true
	}
	return n, err
}

// ReadBase reads a file at the session's base commit, at most limit bytes; nil when it is not there
// or no regular file.
func (m *Mirror) ReadBase(ctx context.Context, s core.ChatSession, path string, limit int64) ([]byte, error) {
	if !fs.ValidPath(path) {
		return nil, nil
	}
	var data []byte
	err := m.withBase(ctx, s, false, func(dir, base string) error {
		entry, err := m.git.line(ctx, call{dir: dir, args: []string{"ls-tree", "-z", "--full-tree", base, "--", path}})
		if err != nil {
			return err
		}
		meta, name, _ := strings.Cut(strings.TrimSuffix(entry, "\x00"), "\t")
		f := strings.Fields(meta)
		if name != path || len(f) != 3 || f[1] != "blob" || f[0] == "120000" {
			return nil
		}
		out := &capped{limit: int(limit)}
		err = m.git.run(ctx, call{dir: dir, args: []string{"cat-file", "blob", f[2]}, stdout: out})
		if err != nil && !out.over {
			return err
		}
		data = append([]byte{}, out.buf.Bytes()...)
		return nil
	})
	return data, err
}
