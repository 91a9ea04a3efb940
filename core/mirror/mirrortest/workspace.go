package mirrortest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agent-sandboxing/core"
)

// Workspace is a checkout in a temporary folder. Only what the mirror asks of a sandbox is there;
// any other method of the embedded nil interface panics.
type Workspace struct {
	core.PlatformWorkspace
	Dir  string // the work tree
	snap string // git directory of snapshots
	base string

	// Tamper may change what a snapshot says and sends.
	Tamper func(snap *core.Snapshot, pack []byte) []byte
	// Missing is what a checkpoint says that it has no room for.
	Missing []string
}

// NewWorkspace is empty until Checkout.
func NewWorkspace(tb testing.TB) *Workspace {
	tb.Helper()
	dir := tb.TempDir()
	return &Workspace{Dir: filepath.Join(dir, "repo"), snap: filepath.Join(dir, "snap.git")}
}

// Base is the commit that it was checked out at.
func (w *Workspace) Base() string { return w.base }

// OpenWorkspace is the workspace whose work tree another process has checked out at base.
func OpenWorkspace(dir, base string) *Workspace {
	return &Workspace{Dir: dir, snap: filepath.Join(filepath.Dir(dir), "snap.git"), base: base}
}

// Checkout builds the repository from the pack as a sandbox does.
func (w *Workspace) Checkout(ctx context.Context, spec core.Checkout, pack io.Reader) error {
	w.base = spec.BaseSHA
	if _, err := w.git(ctx, nil, nil, "init", "--quiet", "--initial-branch="+spec.Branch, w.Dir); err != nil {
		return err
	}
	at := "--git-dir=" + w.Dir + "/.git"
	if len(spec.Shallow) > 0 {
		if err := os.WriteFile(w.Dir+"/.git/shallow", []byte(strings.Join(spec.Shallow, "\n")+"\n"), 0o644); err != nil {
			return err
		}
	}
	base := filepath.Join(w.Dir, ".git/objects/pack/pack-"+spec.BaseSHA)
	for _, part := range []struct {
		suffix string
		from   io.Reader
	}{{".idx", io.LimitReader(pack, spec.IndexBytes)}, {".pack", pack}} {
		data, err := io.ReadAll(part.from)
		if err == nil {
			err = os.WriteFile(base+part.suffix, data, 0o644)
		}
		if err != nil {
			return err
		}
	}
	if _, err := w.git(ctx, nil, nil, at, "verify-pack", base+".pack"); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"update-ref", "refs/remotes/origin/" + spec.BaseRef, spec.BaseSHA},
		{"remote", "add", "origin", spec.RemoteURL},
		{"update-ref", "refs/heads/" + spec.Branch, spec.BaseSHA},
		{"--work-tree=" + w.Dir, "reset", "--quiet", "--hard"},
		{"fsck", "--connectivity-only"},
	} {
		if _, err := w.git(ctx, nil, nil, append([]string{at}, args...)...); err != nil {
			return err
		}
	}
	if _, err := w.git(ctx, nil, nil, "init", "--quiet", "--bare", w.snap); err != nil {
		return err
	}
	alternates := []byte(w.Dir + "/.git/objects\n")
	return os.WriteFile(filepath.Join(w.snap, "objects", "info", "alternates"), alternates, 0o644)
}

// Snapshot packs the work tree minus the base.
func (w *Workspace) Snapshot(ctx context.Context, pack io.Writer) (core.Snapshot, error) {
	at := []string{"--git-dir=" + w.snap, "--work-tree=" + w.Dir, "-c", "core.bare=false"}
	for _, args := range [][]string{{"read-tree", w.base}, {"add", "-A"}} {
		if _, err := w.git(ctx, nil, nil, append(at, args...)...); err != nil {
			return core.Snapshot{}, err
		}
	}
	tree, err := w.git(ctx, nil, nil, append(at, "write-tree")...)
	if err != nil {
		return core.Snapshot{}, err
	}
	snap := core.Snapshot{TreeSHA: strings.TrimSpace(tree), BaseSHA: w.base}
	var out bytes.Buffer
	revs := strings.NewReader(snap.TreeSHA + "\n^" + w.base + "\n")
	if _, err := w.git(ctx, revs, &out, "--git-dir="+w.snap, "pack-objects", "--revs", "--thin", "--stdout", "-q"); err != nil {
		return core.Snapshot{}, err
	}
	data := out.Bytes()
	if w.Tamper != nil {
		data = w.Tamper(&snap, data)
	}
	_, err = pack.Write(data)
	return snap, err
}

// git runs one command; its stdout goes to out, or is returned when out is nil.
func (w *Workspace) git(ctx context.Context, in io.Reader, out io.Writer, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Env = environ()
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &stdout, &stderr
	if out != nil {
		cmd.Stdout = out
	}
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}

// Write writes a file below the work tree or, as a sandbox does, below /tmp.
func (w *Workspace) Write(_ context.Context, f core.WriteFile) (core.FileStat, error) {
	path := f.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(w.Dir, path)
	}
	return core.FileStat{Path: f.Path, Kind: core.FileRegular, Size: int64(len(f.Data))}, os.WriteFile(path, f.Data, 0o600)
}

// Run runs a command in the work tree.
func (w *Workspace) Run(ctx context.Context, c core.Command) (core.CommandResult, error) {
	cmd := exec.CommandContext(ctx, "bash", "--noprofile", "--norc", "-c", c.Shell)
	cmd.Dir, cmd.Env = w.Dir, environ()
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return core.CommandResult{Exit: exit.ExitCode(), Head: out}, nil
	}
	return core.CommandResult{Head: out}, err
}

// Checkpoint writes a tar of the whole work tree.
func (w *Workspace) Checkpoint(ctx context.Context, out io.Writer, _ int64) (core.CheckpointInfo, error) {
	cmd := exec.CommandContext(ctx, "tar", "--directory", w.Dir, "--exclude=./.git", "--create", ".")
	cmd.Stdout = out
	return core.CheckpointInfo{BaseSHA: w.base, Missing: w.Missing}, cmd.Run()
}

// Restore makes the work tree what it was at a Checkpoint.
func (w *Workspace) Restore(ctx context.Context, _ core.CheckpointInfo, from io.Reader) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", "find . -mindepth 1 -maxdepth 1 ! -name .git -exec rm -rf {} + && tar --extract")
	cmd.Dir, cmd.Stdin = w.Dir, from
	return cmd.Run()
}
