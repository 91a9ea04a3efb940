package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agent-sandboxing/e2e/person"
)

// completed waits for the end of the session's last message and demands that it is a good one.
func (b *bench) completed(ctx context.Context, id string) error {
	s, err := b.ended(ctx, id)
	if err != nil {
		return err
	}
	if code, text, state := s.last(); state != "completed" {
		return fmt.Errorf("the message of session %s is %s with %s: %s", id, state, code, text)
	}
	return nil
}

// cancelWithin is what the cancel of a turn may take on a busy machine, from the request to its page.
const cancelWithin = 5 * time.Second

// cancelled cancels a session's turn, demands that it ends so, and says after how long.
func (b *bench) cancelled(ctx context.Context, id string) (string, error) {
	asked := time.Now()
	if err := b.cancel(ctx, id); err != nil {
		return "", err
	}
	s, err := b.ended(ctx, id)
	if err != nil {
		return "", err
	}
	took := time.Since(asked)
	if code, text, state := s.last(); state != "cancelled" || took > cancelWithin {
		return code, fmt.Errorf("%s after the cancel the message is %s: %s", took, state, text)
	}
	return fmt.Sprintf("cancelled in %d ms", took.Milliseconds()), nil
}

// failed waits for the end of the session's last message and demands that it failed with one of codes
// and a sentence.
func (b *bench) failed(ctx context.Context, id string, codes ...string) (string, error) {
	s, err := b.ended(ctx, id)
	if err != nil {
		return "", err
	}
	code, text, state := s.last()
	if state != "failed" || !slices.Contains(codes, code) {
		return code, fmt.Errorf("the message is %s with code %q (%s), want failed with %v", state, code, text, codes)
	}
	return code, sentence(text)
}

// sentence demands something that a person can read: a beginning, an end, and no word of a machine.
func sentence(text string) error {
	for _, word := range []string{"canary", "goroutine", "dial ", "EOF", "SQLSTATE", "context ", "exit status", "fatal:"} {
		if strings.Contains(text, word) {
			return fmt.Errorf("the sentence shows %q: %s", word, text)
		}
	}
	if len(text) < 20 || !strings.HasSuffix(text, ".") || strings.ToUpper(text[:1]) != text[:1] {
		return fmt.Errorf("no sentence: %q", text)
	}
	return nil
}

// goesOn sends the next message, which must complete, and demands kept files in the diff after it, and
// one end of every message and call in the log.
func (b *bench) goesOn(ctx context.Context, id string, kept ...string) error {
	name := b.newFile()
	if err := b.post(ctx, id, "file "+name); err != nil {
		return fmt.Errorf("the next message was not taken: %w", err)
	}
	if err := b.completed(ctx, id); err != nil {
		return fmt.Errorf("after it: %w", err)
	}
	var diff struct {
		Files []struct{ Path string } `json:"changed_files"`
	}
	if err := b.owner.Ask(ctx, http.MethodGet, "/chat-sessions/"+id+"/diffs/latest", "", nil, &diff); err != nil {
		return fmt.Errorf("read the diff: %w", err)
	}
	var paths []string
	for _, f := range diff.Files {
		paths = append(paths, f.Path)
	}
	for _, want := range append(kept, name) {
		if !slices.Contains(paths, want) {
			return fmt.Errorf("the work tree lost %s; it holds %v", want, paths)
		}
	}
	return b.oneEndEach(ctx, id)
}

// refused demands a refusal by its status and code.
func refused(err error, status int, code string) (string, error) {
	r, ok := errors.AsType[*person.Refusal](err)
	if !ok {
		return "", fmt.Errorf("not refused: %w", err)
	}
	if r.Status != status || r.Code != code {
		return r.Code, fmt.Errorf("refused with %d %s, want %d %s", r.Status, r.Code, status, code)
	}
	return r.Code, sentence(r.Message)
}

// tidy demands that the row's sessions left one container each at most, in which nothing but the
// toolbox runs, and that no git of the worker goes on.
func (b *bench) tidy(ctx context.Context) error {
	for _, id := range b.sessions {
		all, err := b.containers(ctx, id, "-a")
		if err != nil {
			return err
		}
		if len(all) > 1 {
			return fmt.Errorf("session %s has %d containers", id, len(all))
		}
		running, err := b.containers(ctx, id)
		if err != nil {
			return err
		}
		for _, ref := range running {
			// docker top shows the host's processes of the same numbers under gVisor.
			names, err := b.host(ctx, "exec", ref, "bash", "-c", "exec cat /proc/[0-9]*/comm")
			if err == nil && len(names) > 2 { // PID 1 and what looks
				return fmt.Errorf("in the container of session %s run %q", id, names)
			}
		}
	}
	return b.noChildren()
}

// noChildren demands that the worker has no child process left.
func (b *bench) noChildren() error {
	p := b.running["worker"]
	if p == nil {
		return nil
	}
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.cmd.Process.Pid))
	if err != nil {
		return err
	}
	for _, t := range tasks {
		children, err := os.ReadFile(t)
		if err == nil && len(strings.TrimSpace(string(children))) > 0 {
			return fmt.Errorf("the worker still has children: %s", children)
		}
	}
	return nil
}
