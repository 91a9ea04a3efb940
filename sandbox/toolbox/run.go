package toolbox

import (
	"context"
	"encoding/base64"
	"fmt"
	"regexp"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/toolbox/wire"
)

const (
	defaultTimeout  = 120 * time.Second
	maxTimeout      = 24 * time.Hour
	defaultKeepHead = 10 << 10
	defaultKeepTail = 40 << 10
	maxKeep         = 1 << 20
	maxLog          = 10 << 20
)

var (
	logName    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)
	signalName = regexp.MustCompile(`^[A-Z0-9+-]{1,12}$`)
)

// Run executes cmd in the sandbox. When ctx is cancelled the tree is killed; the result then holds
// the output so far and the error is ctx's.
func (c *Client) Run(ctx context.Context, cmd core.Command) (core.CommandResult, error) {
	args := wire.RunArgs{
		Shell:    []byte(cmd.Shell),
		Dir:      wire.Name(cmd.Dir),
		Timeout:  min(orDefault(cmd.Timeout, defaultTimeout), maxTimeout).Milliseconds(),
		KeepHead: min(orDefault(cmd.KeepHead, defaultKeepHead), maxKeep),
		KeepTail: min(orDefault(cmd.KeepTail, defaultKeepTail), maxKeep),
		MaxLog:   maxLog,
		MaxBytes: c.opts.Budget.Bytes, MaxEntries: c.opts.Budget.Entries, MinFree: c.opts.Budget.MinFree,
	}
	for _, e := range cmd.Env {
		args.Env = append(args.Env, []byte(e))
	}
	if cmd.LogName != "" {
		if !logName.MatchString(cmd.LogName) {
			return core.CommandResult{}, core.Fail(core.Invalid, "path_invalid",
				"A log name has only letters, digits, dots, dashes and underscores.")
		}
		args.LogName = cmd.LogName
	}
	about := cmd.Dir
	if about == "" {
		about = "the command"
	}
	req := request{
		verb: wire.VerbRun, detail: about, program: true,
		within: time.Duration(args.Timeout)*time.Millisecond + c.opts.Answer,
		shape:  shape{bytes: base64.StdEncoding.EncodedLen(args.KeepHead+args.KeepTail) + 4<<10, values: 64},
	}
	began := time.Now()
	res, err := do[wire.RunArgs, wire.RunResult](ctx, c, req, args)
	if err != nil && ctx.Err() == nil {
		return core.CommandResult{}, c.outOfMemory(ctx, err, time.Since(began))
	}
	out, ok := commandResult(args, res)
	if !ok {
		return core.CommandResult{}, c.forged()
	}
	if err == nil && unexplained(out) && c.opts.OutOfMemory != nil {
		out.MemoryLimit = c.opts.OutOfMemory(ctx, time.Since(began))
		out.OOMKilled = out.MemoryLimit > 0
	}
	return out, err
}

// outOfMemory tells a sandbox that a command's hunger has ended from one that was lost otherwise.
func (c *Client) outOfMemory(ctx context.Context, err error, within time.Duration) error {
	if core.CodeOf(err) != codeLost || c.opts.OutOfMemory == nil {
		return err
	}
	limit := c.opts.OutOfMemory(ctx, within)
	if limit <= 0 {
		return err
	}
	return core.Fail(core.Unavailable, codeLost, fmt.Sprintf(
		"A command used all of the sandbox's memory (%d MiB), so that it ended. The workspace is kept; send another message to go on.", limit>>20)).Because(err)
}

// unexplained says that a command, or the last program of its shell, was killed and not by the toolbox.
func unexplained(r core.CommandResult) bool {
	return r.Exit == 137 && !r.OOMKilled && !r.TimedOut && !r.OverQuota && !r.HostFull
}

// commandResult checks what the toolbox said against what was asked.
func commandResult(args wire.RunArgs, r wire.RunResult) (core.CommandResult, bool) {
	kept := int64(len(r.Head) + len(r.Tail))
	if len(r.Head) > args.KeepHead || len(r.Tail) > args.KeepTail || r.Total < kept ||
		r.Lines < 0 || r.Lines > r.Total || r.Exit < 0 || r.Exit > 255 || r.Survivors < 0 ||
		r.Duration < 0 || r.Memory < 0 || r.Memory > 0 && !r.OOMKilled || r.Signal != "" && !signalName.MatchString(r.Signal) {
		return core.CommandResult{}, false
	}
	out := core.CommandResult{
		Exit:      r.Exit,
		Signal:    r.Signal,
		TimedOut:  r.TimedOut,
		OOMKilled: r.OOMKilled,
		OverQuota: r.OverQuota,
		HostFull:  r.HostFull,
		Survivors: r.Survivors,

		MemoryLimit: r.Memory,
		Head:        r.Head,
		Tail:        r.Tail,
		Total:       r.Total,
		Lines:       r.Lines,
		Omitted:     r.Total - kept,
		Duration:    time.Duration(r.Duration) * time.Microsecond,
	}
	if r.Logged && args.LogName != "" {
		out.LogPath = core.OutputDir + "/" + args.LogName
	}
	return out, true
}

func orDefault[T int | time.Duration](v, standard T) T {
	if v <= 0 {
		return standard
	}
	return v
}
