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

// New makes the tools of one invocation. They share which files the model has seen.
func New(env agent.Env) []agent.Tool {
	seen := &seenFiles{hashes: map[string]string{}}
	list := []agent.Tool{
		&readTool{ws: env.Workspace, seen: seen},
		&writeTool{ws: env.Workspace, seen: seen},
		&editTool{ws: env.Workspace, seen: seen},
		&grepTool{ws: env.Workspace},
		&findTool{ws: env.Workspace},
		&lsTool{ws: env.Workspace},
	}
	for i, tool := range list {
		list[i] = limited{Tool: tool, timeout: fileTimeout}
	}
	return append(list,
		&bashTool{ws: env.Workspace, policy: env.Policy, message: env.MessageID},
		&publishTool{publisher: env.Publisher},
		&subagentTool{investigate: env.Investigate})
}

// fileTimeout bounds one call of a tool that looks at files or changes one.
const fileTimeout = 30 * time.Second

// limited ends a call that takes too long with an answer for the model.
type limited struct {
	agent.Tool
	timeout time.Duration
}

func (l limited) Run(ctx context.Context, args json.RawMessage) (agent.Result, error) {
	within, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	r, err := l.Tool.Run(within, args)
	if errors.Is(err, context.DeadlineExceeded) && within.Err() != nil && ctx.Err() == nil {
		return agent.Failed("timed_out", "%s was stopped after %s. Ask for less: a narrower path, pattern or glob.", l.Spec().Name, l.timeout), nil
	}
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
