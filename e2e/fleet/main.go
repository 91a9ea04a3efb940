// Command fleet runs one web and two worker processes on one database and one Docker with a warm pool,
// gives them ten sessions of three messages, and proves from the sessions' logs that all were completed
// and that no session ever had two working messages. The pool serves some of them, and is gone afterwards.
package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"agent-sandboxing/core/github/githubtest/seed"
	"agent-sandboxing/core/seal"
	"agent-sandboxing/e2e/person"
	"agent-sandboxing/e2e/standin"
)

const (
	sessions    = 10
	messages    = 3
	warm        = 2
	productAddr = "127.0.0.1:18180"
	githubAddr  = "127.0.0.1:18181"
	modelAddr   = "127.0.0.1:18182"
	patience    = 10 * time.Minute
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	var standins sync.WaitGroup
	defer func() { cancel(); standins.Wait() }()
	dir, err := os.MkdirTemp("/tmp", "fleet-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	env, err := outside(ctx, &standins, dir)
	if err != nil {
		return err
	}
	if err := command(ctx, env, "migrate").Run(); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	h, err := openHost(ctx)
	if err != nil {
		return err
	}
	defer h.store.Close()
	defer func() { err = errors.Join(err, h.clean(context.WithoutCancel(ctx))) }()
	for _, role := range []string{"web", "worker", "worker"} {
		cmd := command(ctx, env, role)
		if err := cmd.Start(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()) }()
	}
	if err := h.filled(ctx); err != nil {
		return err
	}
	began := time.Now()
	var people []member
	for _, login := range []string{seed.Owner, seed.Admin} { // one person may not have this many messages
		one, err := person.SignIn(ctx, "http://"+productAddr, "http://"+githubAddr, login)
		if err != nil {
			return fmt.Errorf("sign in: %w", err)
		}
		p := member{one, make([]string, sessions/2)}
		if err := p.postAll(ctx); err != nil {
			return err
		}
		people = append(people, p)
	}
	workers, done, overlaps := map[string]int{}, 0, 0
	for _, p := range people {
		for _, id := range p.sessions {
			log, err := p.finished(ctx, id)
			if err != nil {
				return err
			}
			o, c := judge(log, workers)
			overlaps, done = overlaps+o, done+c
		}
	}
	served, err := h.served(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("fleet: %d sessions, %d of them from the pool, %d of %d messages completed in %.0f s, %d overlapping turns, turns by worker %v\n",
		sessions, served, done, sessions*messages, time.Since(began).Seconds(), overlaps, slices.Sorted(maps.Values(workers)))
	if done != sessions*messages || overlaps > 0 || served == 0 {
		return errors.New("not every message was completed alone, or the pool served nobody")
	}
	return nil
}

// outside starts the stand-in GitHub and the scripted model, until ctx ends, and returns the environment
// of every process.
func outside(ctx context.Context, standins *sync.WaitGroup, dir string) ([]string, error) {
	github, err := standin.OpenGitHub(ctx, filepath.Join(dir, "github"), githubAddr)
	if err != nil {
		return nil, err
	}
	standins.Go(func() { _ = github.Serve(ctx) }) // what uses them says when they are not there
	standins.Go(func() { _ = standin.ServeModel(ctx, modelAddr, 0) })
	env := append(os.Environ(),
		"ENCRYPTION_KEYS="+seal.NewKey("k1"), "DATA_DIR="+dir, "LISTEN_ADDR="+productAddr, "PUBLIC_URL=http://"+productAddr,
		"SANDBOX_MAX_RUNNING=4", fmt.Sprintf("SANDBOX_WARM=%d", warm))
	for _, more := range []map[string]string{github.Environment(), standin.ModelEnvironment(modelAddr)} {
		for k, v := range more {
			env = append(env, k+"="+v)
		}
	}
	return env, nil
}

func command(ctx context.Context, env []string, role string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "bin/agent-sandboxing", role)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, os.Stderr, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	return cmd
}

// member is a person with the sessions that are theirs.
type member struct {
	*person.Person
	sessions []string
}

// postAll creates the sessions side by side, each with its messages queued at once.
func (p member) postAll(ctx context.Context) error {
	target, err := p.Target(ctx, "")
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for i := range p.sessions {
		group.Go(func() error {
			in := struct {
				person.Target
				Text string `json:"text"`
			}{target, fmt.Sprintf("Improve the documentation, session %d", i+1)}
			var made struct{ ID string }
			if err := p.Ask(ctx, http.MethodPost, "/chat-sessions", "", in, &made); err != nil {
				return err
			}
			p.sessions[i] = made.ID
			for n := 1; n < messages; n++ {
				var m struct{ ID string }
				if err := p.Ask(ctx, http.MethodPost, "/chat-sessions/"+made.ID+"/messages", "", map[string]any{"text": fmt.Sprintf("Follow-up %d", n)}, &m); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

type event struct {
	Sequence  int64  `json:"sequence"`
	Type      string `json:"type"`
	MessageID string `json:"message_id"`
	Payload   struct {
		Worker string `json:"worker"`
	} `json:"payload"`
}

// finished waits until every message of the session has ended, and returns its log.
func (p member) finished(ctx context.Context, id string) ([]event, error) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		var answer struct{ Events []event }
		if err := p.Ask(ctx, http.MethodGet, "/chat-sessions/"+id+"/events?limit=1000", "", nil, &answer); err != nil {
			return nil, err
		}
		ended := 0
		for _, e := range answer.Events {
			if terminal(e.Type) {
				ended++
			}
		}
		if ended >= messages {
			return answer.Events, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("session %s: %d of %d messages ended: %w", id, ended, messages, ctx.Err())
		case <-tick.C:
		}
	}
}

func terminal(kind string) bool {
	return kind == "message_completed" || kind == "message_failed" || kind == "message_cancelled"
}

// judge counts turns that began while another of the session was working, and completed ones; it
// notes who prepared them.
func judge(log []event, workers map[string]int) (overlaps, completed int) {
	working := ""
	for _, e := range log {
		switch {
		case e.Type == "message_preparing":
			workers[e.Payload.Worker]++
		case e.Type == "message_working":
			if working != "" {
				overlaps++
			}
			working = e.MessageID
		case terminal(e.Type) && e.MessageID == working:
			working = ""
			if e.Type == "message_completed" {
				completed++
			}
		}
	}
	return overlaps, completed
}
