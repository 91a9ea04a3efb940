package toolbox

import (
	"context"
	"io"
	"strings"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/toolbox/wire"
)

// maxNames bounds the paths in the answer of a snapshot or checkpoint.
const maxNames = 20_000

// Checkout makes the repository from one pack and its index. Errors: checkout_exists, checkout_failed.
// pack must end when ctx does.
func (c *Client) Checkout(ctx context.Context, spec core.Checkout, pack io.Reader) error {
	shallow := shallowFile(spec.Shallow)
	args := wire.CheckoutArgs{
		BaseSHA:     spec.BaseSHA,
		Branch:      spec.Branch,
		BaseRef:     spec.BaseRef,
		RemoteURL:   spec.RemoteURL,
		ShallowSize: int64(len(shallow)),
		IndexSize:   spec.IndexBytes,
		BaseOnly:    spec.BaseOnly,
	}
	body := io.MultiReader(strings.NewReader(shallow), pack)
	_, err := do[wire.CheckoutArgs, struct{}](ctx, c, c.work(request{verb: wire.VerbCheckout, body: body}), args)
	return err
}

// work makes r one that may look at the whole work tree.
func (c *Client) work(r request) request {
	r.within, r.program = c.opts.Work, true
	return r
}

func shallowFile(commits []string) string {
	var b strings.Builder
	for _, sha := range commits {
		b.WriteString(sha)
		b.WriteByte('\n')
	}
	return b.String()
}

// GitState reads the repository's branch, HEAD and whether the work tree differs from HEAD.
// Error: checkout_missing, also when the base cannot be read.
func (c *Client) GitState(ctx context.Context) (core.GitState, error) {
	res, err := do[struct{}, wire.GitState](ctx, c, c.work(request{verb: wire.VerbGitState}), struct{}{})
	if err != nil {
		return core.GitState{}, err
	}
	if len(res.Branch) > 1024 || strings.ContainsFunc(res.Branch, func(r rune) bool { return r < ' ' || r == 0x7f }) ||
		res.Head != "" && !hexSHA1.MatchString(res.Head) || !hexSHA1.MatchString(res.Base) {
		return core.GitState{}, c.forged()
	}
	return core.GitState{Branch: res.Branch, Head: res.Head, Base: res.Base, Dirty: res.Dirty}, nil
}

// SwitchBranch puts a clean work tree on a branch, made where the work tree stands when it is missing.
// Error: branch_switch_failed.
func (c *Client) SwitchBranch(ctx context.Context, branch string) error {
	_, err := do[wire.SwitchArgs, struct{}](ctx, c, c.work(request{verb: wire.VerbSwitch}), wire.SwitchArgs{Branch: branch})
	return err
}

// Snapshot records the work tree and writes the objects that base lacks as one pack. Every other
// process in the sandbox is killed first. Errors: checkout_missing, snapshot_failed. What comes out
// is untrusted: index it strictly, under limits.
func (c *Client) Snapshot(ctx context.Context, pack io.Writer) (core.Snapshot, error) {
	req := c.work(request{verb: wire.VerbSnapshot, sink: pack, shape: shape{wire.MaxResult, maxNames + 16}})
	res, err := do[struct{}, wire.SnapshotResult](ctx, c, req, struct{}{})
	if err != nil {
		return core.Snapshot{}, err
	}
	nested, ok := names(res.Nested)
	if !ok || !hexSHA1.MatchString(res.TreeSHA) || !hexSHA1.MatchString(res.BaseSHA) {
		return core.Snapshot{}, c.forged()
	}
	return core.Snapshot{TreeSHA: res.TreeSHA, BaseSHA: res.BaseSHA, NestedRepositories: nested}, nil
}

// Checkpoint writes an archive of at most maxBytes. Every other process in the sandbox is killed
// first. The archive is opaque here: only another toolbox unpacks it. Errors: checkout_missing,
// checkpoint_failed.
func (c *Client) Checkpoint(ctx context.Context, w io.Writer, maxBytes int64) (core.CheckpointInfo, error) {
	archive := &limited{to: w, room: maxBytes}
	req := c.work(request{verb: wire.VerbCheckpoint, sink: archive, shape: shape{wire.MaxResult, 2*maxNames + 16}})
	res, err := do[wire.CheckpointArgs, wire.CheckpointResult](ctx, c, req, wire.CheckpointArgs{MaxBytes: maxBytes})
	if err != nil {
		return core.CheckpointInfo{}, err
	}
	deleted, ok := names(res.Deleted)
	missing, ok2 := names(res.Missing)
	if !ok || !ok2 || res.Files < 0 || !hexSHA1.MatchString(res.BaseSHA) {
		return core.CheckpointInfo{}, c.forged()
	}
	return core.CheckpointInfo{
		BaseSHA: res.BaseSHA,
		Deleted: deleted,
		Files:   res.Files,
		Bytes:   maxBytes - archive.room,
		Missing: missing,
	}, nil
}

// Restore applies an archive of Checkpoint on a fresh checkout of the same base. r must end when ctx
// does. Errors: checkout_missing, restore_failed.
func (c *Client) Restore(ctx context.Context, info core.CheckpointInfo, r io.Reader) error {
	req := c.work(request{verb: wire.VerbRestore, body: r})
	_, err := do[wire.RestoreArgs, struct{}](ctx, c, req, wire.RestoreArgs{BaseSHA: info.BaseSHA})
	return err
}

// KillAll ends every process in the sandbox but the toolbox.
func (c *Client) KillAll(ctx context.Context) (int, error) {
	res, err := do[struct{}, wire.KillResult](ctx, c, request{verb: wire.VerbKillAll}, struct{}{})
	if err != nil {
		return 0, err
	}
	if res.Killed < 0 {
		return 0, c.forged()
	}
	return res.Killed, nil
}

// Ping proves that the toolbox answers, by the cheapest request that it has to work for.
func (c *Client) Ping(ctx context.Context) error {
	_, err := do[struct{}, struct{}](ctx, c, request{verb: wire.VerbPing}, struct{}{})
	return err
}

// Space is what the file system below the workspace has left, in bytes: the Docker host's, unless the
// volume has a quota of its own.
func (c *Client) Space(ctx context.Context) (int64, error) {
	left, err := do[struct{}, wire.SpaceResult](ctx, c, request{verb: wire.VerbSpace}, struct{}{})
	if err == nil && left.Free < 0 {
		return 0, c.forged()
	}
	return left.Free, err
}

func names(raw []wire.Name) ([]string, bool) {
	if len(raw) > maxNames {
		return nil, false
	}
	var paths []string
	for _, n := range raw {
		if !validPath(string(n)) {
			return nil, false
		}
		paths = append(paths, string(n))
	}
	return paths, true
}

// limited passes on at most room bytes.
type limited struct {
	to   io.Writer
	room int64
}

func (l *limited) Write(p []byte) (int, error) {
	if int64(len(p)) > l.room {
		return 0, errForged
	}
	l.room -= int64(len(p))
	return l.to.Write(p)
}
