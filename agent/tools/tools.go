// Package tools holds what the agent may do: one tool a file, all of them on a core.Workspace.
//
// A tool's answer is one plain text for the model. What the model got wrong, a path outside, text
// that is not unique, a refused command, is such an answer too and says what to do next; only a
// cancelled turn or a lost sandbox is a Go error.
package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"agent-sandboxing/agent"
	"agent-sandboxing/core"
	"agent-sandboxing/prompts"
)

// Options are the choices that models differ in. They hold for every invocation.
type Options struct {
	NumberLines bool // read begins each line with its number
	ExactEdits  bool // edit takes no text that only differs in spaces, typography or indentation
}

// New makes the tools of one invocation. They share which files the model has seen.
func (o Options) New(env agent.Env) []agent.Tool {
	seen := &seenFiles{hashes: map[string]string{}}
	return []agent.Tool{
		called{&readTool{ws: env.Workspace, seen: seen, numbered: o.NumberLines}, fileTimeout},
		called{&writeTool{ws: env.Workspace, seen: seen}, fileTimeout},
		called{&editTool{ws: env.Workspace, seen: seen, exact: o.ExactEdits}, fileTimeout},
		called{&grepTool{ws: env.Workspace}, fileTimeout},
		called{&findTool{ws: env.Workspace}, fileTimeout},
		called{&lsTool{ws: env.Workspace}, fileTimeout},
		called{&bashTool{ws: env.Workspace, policy: env.Policy, message: env.MessageID}, 0},
		called{&publishTool{publisher: env.Publisher}, 0},
		called{&subagentTool{investigate: env.Investigate}, 0},
	}
}

// fileTimeout bounds one call of a tool that looks at files or changes one.
const fileTimeout = 30 * time.Second

// tool is one tool of this package. It gets its arguments parsed, and they know what it asked them for.
type tool interface {
	Spec() agent.ToolSpec
	object(a *arguments) string
	run(ctx context.Context, a *arguments) (agent.Result, error)
}

// called is a tool as the agent calls it. After timeout, when there is one, the answer says so.
type called struct {
	tool
	timeout time.Duration
}

func (c called) Object(args json.RawMessage) string { return c.object(parse(args)) }

func (c called) Run(ctx context.Context, args json.RawMessage) (agent.Result, error) {
	within := ctx
	if c.timeout > 0 {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	a := parse(args)
	r, err := c.run(within, a)
	if errors.Is(err, context.DeadlineExceeded) && within.Err() != nil && ctx.Err() == nil {
		r, err = agent.Failed("timed_out", "%s was stopped after %s. Ask for less: a narrower path, pattern or glob.", c.Spec().Name, c.timeout), nil
	}
	r.Ignored = a.ignored()
	return r, err
}

// maxText bounds what one call of a file tool returns, in bytes.
const maxText = 50 << 10

// spec joins a schema with the description of the same name.
func spec(name, schema string) agent.ToolSpec {
	return agent.ToolSpec{Name: name, Description: prompts.Tool(name), Parameters: json.RawMessage(schema)}
}

// seenFiles remembers the content, by hash, that the model last saw of each file in this
// invocation. Calls are serialized, so it needs no lock.
type seenFiles struct {
	hashes map[string]string
}

func (s *seenFiles) note(path string, data []byte) { s.hashes[path] = hash(data) }

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// readWhole reads a file of at most core.MaxRead bytes. A larger one is file_too_large.
func readWhole(ctx context.Context, ws core.Workspace, path string) (core.FileData, error) {
	data, err := ws.Read(ctx, path, 0, core.MaxRead)
	if err == nil && !data.EOF {
		return data, core.Fail(core.TooLarge, "file_too_large",
			path+" is larger than 10 MiB. Look at parts of it with grep, or with bash: sed -n '1,200p' FILE.")
	}
	return data, err
}
