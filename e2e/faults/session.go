package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
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

// pause waits, or returns why ctx has ended.
func pause(ctx context.Context, long time.Duration) error {
	select {
	case <-time.After(long):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
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
