// Command fleet runs one web and two worker processes on one database and one Docker, gives them ten
// sessions of three messages, and proves from the sessions' logs that all were completed and that no
// session ever had two working messages.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/sync/errgroup"

	"agent-sandboxing/core/github/githubtest/seed"
	"agent-sandboxing/core/seal"
	"agent-sandboxing/core/store"
	"agent-sandboxing/e2e/standin"
)

const (
	sessions    = 10
	messages    = 3
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
	defer cancel()
	dir, err := os.MkdirTemp("/tmp", "fleet-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	env, err := outside(ctx, dir)
	if err != nil {
		return err
	}
	if err := command(ctx, env, "migrate").Run(); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	defer func() { err = errors.Join(err, removeSandboxes(context.WithoutCancel(ctx))) }()
	for _, role := range []string{"web", "worker", "worker"} {
		cmd := command(ctx, env, role)
		if err := cmd.Start(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()) }()
	}
	began := time.Now()
	var people []person
	for _, login := range []string{seed.Owner, seed.Admin} { // one person may not have this many messages
		p, err := signIn(ctx, login)
		if err != nil {
			return fmt.Errorf("sign in: %w", err)
		}
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
	fmt.Printf("fleet: %d sessions, %d of %d messages completed in %.0f s, %d overlapping turns, turns by worker %v\n",
		sessions, done, sessions*messages, time.Since(began).Seconds(), overlaps, slices.Sorted(maps.Values(workers)))
	if done != sessions*messages || overlaps > 0 {
		return errors.New("not every message was completed alone")
	}
	return nil
}

// outside starts the stand-in GitHub and the scripted model, and returns the environment of every process.
func outside(ctx context.Context, dir string) ([]string, error) {
	github, err := standin.OpenGitHub(ctx, filepath.Join(dir, "github"), githubAddr)
	if err != nil {
		return nil, err
	}
	go func() { _ = github.Serve(ctx) }()
	go func() { _ = standin.ServeModel(ctx, modelAddr, 0) }()
	env := append(os.Environ(),
		"ENCRYPTION_KEYS="+seal.NewKey("k1"), "DATA_DIR="+dir, "LISTEN_ADDR="+productAddr, "PUBLIC_URL=http://"+productAddr,
		"SANDBOX_MAX_RUNNING=4")
	for _, more := range []map[string]string{github.Environment(), standin.ModelEnvironment(modelAddr)} {
		for k, v := range more {
			env = append(env, k+"="+v)
		}
	}
	return env, nil
}

// removeSandboxes deletes what the workers left for other workers: containers and volumes.
func removeSandboxes(ctx context.Context) error {
	s, err := store.Open(ctx, os.Getenv("DATABASE_URL"), nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer s.Close()
	instance, err := s.Instance(ctx)
	if err != nil {
		return err
	}
	for _, kind := range []struct{ list, remove []string }{
		{[]string{"ps", "-aq"}, []string{"rm", "-f"}},
		{[]string{"volume", "ls", "-q"}, []string{"volume", "rm"}},
	} {
		out, err := exec.CommandContext(ctx, "docker", append(kind.list, "--filter", "label=agent-sandboxing.instance="+instance)...).Output()
		if err != nil {
			return fmt.Errorf("list what is left: %w", err)
		}
		if ids := strings.Fields(string(out)); len(ids) > 0 {
			if err := exec.CommandContext(ctx, "docker", append(kind.remove, ids...)...).Run(); err != nil {
				return fmt.Errorf("remove what is left: %w", err)
			}
		}
	}
	return nil
}

func command(ctx context.Context, env []string, role string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "bin/agent-sandboxing", role)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, os.Stderr, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	return cmd
}

// person is a signed-in client of the JSON routes.
type person struct {
	http     *http.Client
	sessions []string
}

func signIn(ctx context.Context, login string) (person, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return person{}, err
	}
	p := person{http: &http.Client{Jar: jar, Timeout: time.Minute}, sessions: make([]string, sessions/2)}
	if err := p.waitReady(ctx); err != nil {
		return person{}, err
	}
	resp, err := p.do(ctx, http.MethodGet, "http://"+productAddr+"/auth/github", nil, "")
	if err != nil {
		return person{}, err
	}
	defer resp.Body.Close()
	page, err := goquery.NewDocumentFromReader(resp.Body)
	if err != nil {
		return person{}, err
	}
	form := url.Values{"login": {login}}
	page.Find("input[type=hidden]").Each(func(_ int, s *goquery.Selection) { form.Set(s.AttrOr("name", ""), s.AttrOr("value", "")) })
	back, err := p.do(ctx, http.MethodPost, "http://"+githubAddr+"/login/oauth/authorize", strings.NewReader(form.Encode()), "application/x-www-form-urlencoded")
	if err != nil {
		return person{}, err
	}
	return p, back.Body.Close()
}

func (p person) waitReady(ctx context.Context) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if resp, err := p.do(ctx, http.MethodGet, "http://"+productAddr+"/readyz", nil, ""); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func (p person) do(ctx context.Context, method, address string, body io.Reader, kind string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, err
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	if strings.Contains(address, "/chat-sessions") {
		req.Header.Set("Accept", "application/json")
	}
	return p.http.Do(req)
}

// ask exchanges JSON with the product.
func (p person) ask(ctx context.Context, method, path string, in, out any) error {
	b, err := json.Marshal(in)
	if err != nil {
		return err
	}
	resp, err := p.do(ctx, method, "http://"+productAddr+path, strings.NewReader(string(b)), "application/json")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %d %s", method, path, resp.StatusCode, answer)
	}
	return json.Unmarshal(answer, out)
}

// postAll creates the sessions side by side, each with its messages queued at once.
func (p person) postAll(ctx context.Context) error {
	target, err := p.target(ctx)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for i := range p.sessions {
		group.Go(func() error {
			in := maps.Clone(target)
			in["text"] = fmt.Sprintf("Improve the documentation, session %d", i+1)
			var made struct{ ID string }
			if err := p.ask(ctx, http.MethodPost, "/chat-sessions", in, &made); err != nil {
				return err
			}
			p.sessions[i] = made.ID
			for n := 1; n < messages; n++ {
				var m struct{ ID string }
				if err := p.ask(ctx, http.MethodPost, "/chat-sessions/"+made.ID+"/messages", map[string]any{"text": fmt.Sprintf("Follow-up %d", n)}, &m); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// target reads the page of a new session for a repository that may be pushed to.
func (p person) target(ctx context.Context) (map[string]any, error) {
	page := func(path string) (*goquery.Document, error) {
		resp, err := p.do(ctx, http.MethodGet, "http://"+productAddr+path, nil, "")
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		return goquery.NewDocumentFromReader(resp.Body)
	}
	list, err := page("/installations")
	if err != nil {
		return nil, err
	}
	if link, ok := list.Find("[data-testid=installations] a").First().Attr("href"); ok {
		if list, err = page(link); err != nil {
			return nil, err
		}
	}
	link := ""
	list.Find("[data-testid=repositories] li").EachWithBreak(func(_ int, s *goquery.Selection) bool {
		if strings.Contains(s.Text(), "archived") || strings.Contains(s.Text(), "read only") {
			return true
		}
		link = s.Find("a").AttrOr("href", "")
		return false
	})
	form, err := page(link)
	if err != nil {
		return nil, err
	}
	value := func(name string) string {
		return form.Find("form[method=post] input[name="+name+"]").AttrOr("value", "")
	}
	installation, err := strconv.ParseInt(value("installation"), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("the page of a new session has no form: %w", err)
	}
	repository, err := strconv.ParseInt(value("repository"), 10, 64)
	if err != nil {
		return nil, err
	}
	return map[string]any{"installation": installation, "repository": repository, "branch": value("branch"), "sha": value("sha")}, nil
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
func (p person) finished(ctx context.Context, id string) ([]event, error) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		var answer struct{ Events []event }
		if err := p.ask(ctx, http.MethodGet, "/chat-sessions/"+id+"/events?limit=1000", nil, &answer); err != nil {
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
