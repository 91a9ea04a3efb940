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

// state is what the product says of a session.
type state struct {
	ID       string
	State    string
	BaseSHA  string `json:"base_sha"`
	Messages []struct {
		ID, Role, Text, State string
		Failure               *failure
	}
	Sandbox     *struct{ State, Code string }
	Diff        *struct{ ID string }
	Publication *struct {
		ID, Step, Outcome string
		Number            int
		Failure           *failure
	}
}

type failure struct{ Code, Message string }

// unfinished says that something of the session is still to end.
func (s state) unfinished() bool {
	for _, m := range s.Messages {
		if m.State == "queued" || m.State == "working" {
			return true
		}
	}
	return s.Publication != nil && slices.Contains([]string{"requested", "committed", "pushed"}, s.Publication.Step)
}

// last is the person's last message.
func (s state) last() (code, text, state string) {
	for _, m := range slices.Backward(s.Messages) {
		if m.Role == "user" {
			if m.Failure != nil {
				return m.Failure.Code, m.Failure.Message, m.State
			}
			return "", "", m.State
		}
	}
	return "", "", ""
}

// newFile is a file name that no other message of this run has.
func (b *bench) newFile() string {
	b.files++
	return fmt.Sprintf("f%03d.txt", b.files)
}

type newSession struct {
	person.Target
	Text string `json:"text"`
}

// create starts a session on a repository of the seed with the first message.
func (b *bench) create(ctx context.Context, repository, text string) (string, error) {
	target, err := b.owner.Target(ctx, repository)
	if err != nil {
		return "", err
	}
	return b.createAt(ctx, target, text)
}

func (b *bench) createAt(ctx context.Context, target person.Target, text string) (string, error) {
	var made state
	if err := b.owner.Ask(ctx, http.MethodPost, "/chat-sessions", "", newSession{target, text}, &made); err != nil {
		return "", err
	}
	b.sessions = append(b.sessions, made.ID)
	return made.ID, nil
}

// begun is a new session whose first message has completed, and the file that it wrote.
func (b *bench) begun(ctx context.Context, repository string) (id, name string, err error) {
	name = b.newFile()
	if id, err = b.create(ctx, repository, "file "+name); err == nil {
		err = b.completed(ctx, id)
	}
	return id, name, err
}

// working is a new session whose turn has written a file and now runs its long command.
func (b *bench) working(ctx context.Context) (id, name string, err error) {
	name = b.newFile()
	if id, err = b.create(ctx, "mdlinks", "file "+name+" then wait"); err == nil {
		err = b.waiting(ctx, id)
	}
	return id, name, err
}

func (b *bench) post(ctx context.Context, id, text string) error {
	var m struct{ ID string }
	return b.owner.Ask(ctx, http.MethodPost, "/chat-sessions/"+id+"/messages", "", map[string]string{"text": text}, &m)
}

func (b *bench) cancel(ctx context.Context, id string) error {
	var m struct{ ID string }
	return b.owner.Ask(ctx, http.MethodPost, "/chat-sessions/"+id+"/cancel", "", nil, &m)
}

// read is the session's state.
func (b *bench) read(ctx context.Context, id string) (state, error) {
	var s state
	err := b.owner.Ask(ctx, http.MethodGet, "/chat-sessions/"+id, "", nil, &s)
	return s, err
}

// until waits for what so says of the session.
func (b *bench) until(ctx context.Context, id, what string, so func(state) bool) (state, error) {
	ctx, cancel := context.WithTimeout(ctx, b.patience)
	defer cancel()
	tick := time.NewTicker(b.look)
	defer tick.Stop()
	for {
		s, err := b.read(ctx, id)
		if err != nil {
			return s, err
		}
		if so(s) {
			return s, nil
		}
		select {
		case <-ctx.Done():
			return s, fmt.Errorf("session %s never: %s; it is %s", id, what, s.State)
		case <-tick.C:
		}
	}
}

func (b *bench) ended(ctx context.Context, id string) (state, error) {
	return b.until(ctx, id, "had everything ended", func(s state) bool { return !s.unfinished() })
}

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

// eventually waits for something outside the product's answers.
func (b *bench) eventually(ctx context.Context, what string, so func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, min(2*b.patience, 4*time.Minute))
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("never: %s", what)
		case <-tick.C:
		}
	}
	return nil
}

// events are the types of the session's log.
func (b *bench) events(ctx context.Context, id string) ([]string, error) {
	var log struct {
		Events []struct {
			Sequence int64
			Type     string
			Payload  struct{ Tool, Outcome string }
		}
	}
	if err := b.owner.Ask(ctx, http.MethodGet, "/chat-sessions/"+id+"/events?limit=1000", "", nil, &log); err != nil {
		return nil, err
	}
	var types []string
	for i, e := range log.Events {
		if e.Sequence != int64(i+1) {
			return nil, fmt.Errorf("event %d of session %s has sequence %d", i+1, id, e.Sequence)
		}
		types = append(types, strings.TrimSpace(e.Type+" "+e.Payload.Tool))
	}
	return types, nil
}

// waiting waits until the turn runs its long command.
func (b *bench) waiting(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		types, err := b.events(ctx, id)
		if err != nil {
			return err
		}
		if len(types) > 0 && types[len(types)-1] == "agent_tool_call bash" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("session %s never ran its command; its log is %v", id, types)
		case <-tick.C:
		}
	}
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
