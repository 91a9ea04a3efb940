package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// stack is a running demo.
type stack struct {
	url    string
	cmd    *exec.Cmd
	exited chan error
}

// env is the demo's own folder and ports, so that a demo that is open already is left alone.
func env(dir string) []string {
	return append(os.Environ(),
		"DATA_DIR="+dir, "LISTEN_ADDR=127.0.0.1:18080", "PUBLIC_URL=http://127.0.0.1:18080",
		"DEMO_GITHUB_ADDR=127.0.0.1:18081", "DEMO_MODEL_ADDR=127.0.0.1:18082",
		"OPENROUTER_API_KEY=", "GITHUB_CLIENT_ID=")
}

// start runs the demo and waits until the product is ready.
func start(ctx context.Context, dir string) (*stack, error) {
	s := &stack{url: "http://127.0.0.1:18080", exited: make(chan error, 1)}
	s.cmd = exec.Command("bin/demo") //nolint:noctx // stop ends it in order
	s.cmd.Env = env(dir)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the demo: %w", err)
	}
	announced := make(chan struct{})
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if strings.Contains(lines.Text(), "Open "+s.url) {
				close(announced)
				break
			}
		}
		_, _ = io.Copy(io.Discard, out)
		s.exited <- s.cmd.Wait()
	}()
	select {
	case <-announced:
		return s, nil
	case err := <-s.exited:
		return nil, fmt.Errorf("the demo ended before it was ready: %w", err)
	case <-time.After(2 * time.Minute):
		return nil, fmt.Errorf("the demo was not ready after two minutes (%w)", s.stop())
	case <-ctx.Done():
		return nil, fmt.Errorf("%w (%w)", ctx.Err(), s.stop())
	}
}

// stop ends the demo as Ctrl-C does.
func (s *stack) stop() error {
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	select {
	case err := <-s.exited:
		return err
	case <-time.After(3 * time.Minute):
		return fmt.Errorf("the demo did not stop (%w)", s.cmd.Process.Kill())
	}
}

// answers says whether anything listens at the product's address.
func (s *stack) answers(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/healthz", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil
}
