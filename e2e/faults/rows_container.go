package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"agent-sandboxing/agent/modeltest"
	"agent-sandboxing/sandbox/docker/dockertest"
)

// containerRows are faults inside one sandbox, or of its one container: what a command does, and what
// an administrator of the host may do.
func containerRows() []row {
	return []row{
		{"F4: a command takes all memory", misbehaves("x = []\nwhile True: x.append(bytearray(8 << 20))\n", 0, "oom_killed", outOfMemory())},
		{"F4: a command takes all memory in small pieces", memoryInPieces},
		{"F5: a command forks without end", misbehaves("import os\nwhile True:\n  try: os.fork()\n  except OSError: pass\n", 5, "timed_out", "timed out after 5 s")},
		{"F6: a command fills a disk", misbehaves("f = open('/dev/shm/x', 'wb')\nwhile True: f.write(b'x' * 4096)\n", 0, "", "No space left on device")},
		{"F6: a command fills the workspace, by bytes and by files", fullWorkspace},
		{"F7: a command prints 300 MB", outputFlood},
		{"F8: a command ignores SIGTERM in a session of its own", misbehaves(deaf+"time.sleep(1000)\n", 3, "timed_out", "timed out after 3 s")},
		{"F9: a command leaves 1,000 orphans", misbehaves(orphans, 0, "", "all forked")},
		{"F10: a command leaves a child that holds its output", misbehaves("import subprocess\nsubprocess.Popen(['sleep', '1000'])\nprint('done')\n", 0, "", "background process")},
		{"F18: the container is paused between two turns", pausedBetween},
		{"F20: the toolbox is stopped during a command", toolboxStopped},
		{"F29: somebody writes while the work tree is published", writerDuringPublish},
		{"F30: the container is paused and the worker killed", pausedAndKilled},
	}
}

// deaf begins a script whose process and child outlive whatever is only asked to end.
const deaf = `import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0: os.setsid()
`

// orphans begins twice as many processes as there may be at once. Who is left over is reaped by PID 1.
const orphans = `import os
for i in range(1000):
  child = os.fork()
  if child == 0:
    while True:
      try:
        if os.fork() == 0: os._exit(0)
        break
      except OSError: pass
    os._exit(0)
  os.waitpid(child, 0)
print('all forked')
`

// misbehaves is a fault that one Python script makes.
func misbehaves(script string, seconds int, code, told string) func(context.Context, *bench) (string, error) {
	return func(ctx context.Context, b *bench) (string, error) {
		r, err := b.command(ctx, script, seconds, code, told)
		return strings.TrimSpace(r.Code + " " + r.Detail), err
	}
}

// command has the agent run a Python script, with a time limit when seconds is not 0, and demands
// that the turn goes on, that the log and the model are told what happened, and that the next message
// works.
func (b *bench) command(ctx context.Context, script string, seconds int, code, told string) (toolResult, error) {
	name := b.newFile()
	arguments := map[string]any{"command": "python3 script.py"}
	if seconds > 0 {
		arguments["timeout"] = seconds
	}
	id, err := b.perform(ctx, "mdlinks", performance{Answer: "Done.", Calls: []modeltest.Call{
		modeltest.CallJSON("write", map[string]any{"path": "script.py", "content": script}),
		modeltest.CallJSON("bash", arguments),
		modeltest.CallJSON("write", map[string]any{"path": name, "content": "after it\n"}),
	}})
	if err != nil {
		return toolResult{}, err
	}
	result, err := b.result(ctx, id, "bash")
	if err != nil {
		return result, err
	}
	if result.Code != code || !strings.Contains(result.Snippet, told) {
		return result, fmt.Errorf("the command ended with %q and the model was told %q, want %q and %q", result.Code, result.Snippet, code, told)
	}
	return result, b.goesOn(ctx, id, name)
}

func outOfMemory() string { return "ran out of memory; its limit is " + memory() + " MiB" }

// memoryInPieces has the host's kernel choose what to kill: the command, or under gVisor the sandbox's own
// kernel, which ends the turn with the reason.
func memoryInPieces(ctx context.Context, b *bench) (string, error) {
	const script = "x = []\nwhile True: x.append(bytearray(1 << 20))\n"
	if dockertest.Runtime() == "runc" {
		return misbehaves(script, 0, "oom_killed", outOfMemory())(ctx, b)
	}
	name := b.newFile()
	text, err := performance{Answer: "Done.", Calls: []modeltest.Call{
		modeltest.CallJSON("write", map[string]any{"path": name, "content": "before it\n"}),
		modeltest.CallJSON("write", map[string]any{"path": "script.py", "content": script}),
		modeltest.CallJSON("bash", map[string]any{"command": "python3 script.py"}),
	}}.message()
	if err != nil {
		return "", err
	}
	id, err := b.create(ctx, "mdlinks", text)
	if err != nil {
		return "", err
	}
	code, err := b.failed(ctx, id, "sandbox_lost")
	if err != nil {
		return code, err
	}
	s, err := b.read(ctx, id)
	if err != nil {
		return code, err
	}
	if _, why, _ := s.last(); !strings.Contains(why, "memory") {
		return code, fmt.Errorf("the memory is not named: %s", why)
	}
	return code + ", named", b.goesOn(ctx, id, name)
}

// fullWorkspace uses up a small budget twice. What the platform itself does with the workspace then, it
// still can.
func fullWorkspace(ctx context.Context, b *bench) (string, error) {
	if err := b.newWorker(ctx, map[string]string{"SANDBOX_DISK": "64", "SANDBOX_INODES": "1000"}); err != nil {
		return "", err
	}
	const fill = "import itertools, os\nos.makedirs(os.path.expanduser('~/fill'))\nfor i in itertools.count(): open(os.path.expanduser(f'~/fill/{i}'), 'wb').write(b'x' * %d)\n"
	var failures []error
	for _, size := range []int{1 << 20, 0} {
		_, err := b.command(ctx, fmt.Sprintf(fill, size), 0, "workspace_quota_exceeded", "disk budget is used up")
		failures = append(failures, err)
	}
	return "workspace_quota_exceeded", errors.Join(append(failures, b.newWorker(ctx, nil))...)
}

// outputFlood demands that the worker's memory does not grow with what a command prints.
func outputFlood(ctx context.Context, b *bench) (string, error) {
	before, err := b.memory("worker")
	if err != nil {
		return "", err
	}
	result, err := b.command(ctx, "import sys\nfor i in range(300): sys.stdout.write(('x' * 99 + '\\n') * 10000)\n", 0, "", "xxx")
	if err == nil && !result.Truncated {
		err = errors.New("the log does not say that the output was cut")
	}
	if err != nil {
		return "", err
	}
	after, err := b.memory("worker")
	if err == nil && after-before > 48<<10 { // it keeps 50 KiB of the output; the rest is the collector's slack
		err = fmt.Errorf("the worker grew from %d to %d KiB", before, after)
	}
	return fmt.Sprintf("%+d KiB", after-before), err
}

// memory is the largest resident size that a process ever had. KiB.
func (b *bench) memory(role string) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.running[role].cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	return strconv.Atoi(strings.Fields(rest)[0])
}

func pausedBetween(ctx context.Context, b *bench) (string, error) {
	id, name, err := b.begun(ctx, "mdlinks")
	if err != nil {
		return "", err
	}
	ref, err := b.container(ctx, id)
	if err != nil {
		return "", err
	}
	if _, err := b.host(ctx, "pause", ref); err != nil {
		return "", err
	}
	return "rebuilt", b.goesOn(ctx, id, name)
}

// toolboxStopped stops PID 1 of a sandbox: it is there, and never answers again. Under gVisor it has to be
// stopped from inside: what the host sees is gVisor's kernel.
func toolboxStopped(ctx context.Context, b *bench) (string, error) {
	return b.duringTurn(ctx, func(id string) error {
		ref, err := b.container(ctx, id)
		if err != nil {
			return err
		}
		if dockertest.Runtime() != "runc" {
			_, err := b.host(ctx, "exec", "--user", "1000", ref, "bash", "-c", "kill -STOP 1")
			return err
		}
		pid, err := b.host(ctx, "inspect", "--format", "{{.State.Pid}}", ref)
		if err != nil {
			return err
		}
		return b.daemon.Signal(ctx, "STOP", pid[0])
	}, nil, "sandbox_lost")
}

// pausedAndKilled leaves a container paused in the middle of a turn, with nobody who knows why.
func pausedAndKilled(ctx context.Context, b *bench) (string, error) {
	return b.duringTurn(ctx, func(id string) error {
		ref, err := b.container(ctx, id)
		if err != nil {
			return err
		}
		if _, err := b.host(ctx, "pause", ref); err != nil {
			return err
		}
		_, err = b.crashWorker(ctx, nil)
		return err
	}, nil, "worker_lost")
}

// writerDuringPublish publishes while a process that the platform did not start keeps changing a file.
// What was recorded is what was pushed.
func writerDuringPublish(ctx context.Context, b *bench) (string, error) {
	id, name, err := b.begun(ctx, "shelf-label")
	if err != nil {
		return "", err
	}
	ref, err := b.container(ctx, id)
	if err != nil {
		return "", err
	}
	const writer = `cd /workspace/repo; i=0; while :; do i=$((i+1)); echo "$i" >race.txt; mkdir -p d$((i%7)); echo "$i" >d$((i%7))/f$((i%5)).txt; done`
	if _, err := b.host(ctx, "exec", "-d", ref, "bash", "-c", writer); err != nil {
		return "", err
	}
	if code, err := b.publish(ctx, id, []string{""}); err != nil {
		return code, err
	}
	recorded, err := b.query(ctx, "SELECT tree_sha, commit_sha FROM publications WHERE session_id = '"+id+"' ORDER BY created_at DESC LIMIT 1")
	if err != nil {
		return "", err
	}
	pushed, err := b.pushed(ctx, id)
	if err != nil {
		return "", err
	}
	if recorded != pushed {
		return "", fmt.Errorf("recorded tree|commit %s, pushed %s", recorded, pushed)
	}
	return "tree recorded = pushed", b.goesOn(ctx, id, name)
}

// query asks the database one thing.
func (b *bench) query(ctx context.Context, sql string) (string, error) {
	out, err := exec.CommandContext(ctx, "psql", "--dbname="+b.env["DATABASE_URL"], "-AtXc", sql).Output()
	return strings.TrimSpace(string(out)), err
}

// pushed is tree and commit of the session's branch on the stand-in, as query prints them.
func (b *bench) pushed(ctx context.Context, id string) (string, error) {
	all, err := filepath.Glob(filepath.Join(b.dir, "github", "*", "*.git"))
	if err != nil {
		return "", err
	}
	for _, dir := range all {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		out, err := exec.CommandContext(ctx, "git", "--git-dir="+dir, "log", "-1", "--format=%T|%H", "agent/"+id).Output()
		cancel()
		if err == nil {
			return strings.TrimSpace(string(out)), nil
		}
	}
	return "", errors.New("the session's branch is nowhere")
}
