package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agent-sandboxing/core/github/githubtest"
	"agent-sandboxing/core/localpg"
)

// The start of serve (not its first, which makes the database) beside Postgres alone on the same
// folder; its memory beside a bare HTTP server's.
const (
	rounds      = 5
	productAddr = "127.0.0.1:19080"
	bareAddr    = "127.0.0.1:19081"
	settle      = 10 * time.Second // until start-up work is over and idle begins
)

// serve times the start of the built binary and weighs it when it is idle.
func serve(ctx context.Context, r *report) error {
	dir, err := os.MkdirTemp("/tmp", "bench-serve-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	env, err := environment(dir)
	if err != nil {
		return err
	}
	if _, err := timeServe(ctx, env, nil); err != nil { // makes the database
		return err
	}
	var starts, postgres []time.Duration
	var idle int64
	for i := range rounds {
		p, err := timePostgres(ctx, dir)
		if err != nil {
			return err
		}
		var weigh func(pid int) error
		if i == rounds-1 {
			weigh = func(pid int) (err error) { time.Sleep(settle); idle, err = resident(pid); return err } //nolint:forbidigo // idleness is time
		}
		s, err := timeServe(ctx, env, weigh)
		if err != nil {
			return err
		}
		postgres, starts = append(postgres, p), append(starts, s)
	}
	bare, err := weighBare(ctx)
	if err != nil {
		return err
	}
	s, p := percentile(starts, 50), percentile(postgres, 50)
	r.judge(s <= time.Second, "serve start to listening %.0f ms, postgres alone %.0f ms, ratio %s (budget 1000 ms)", ms(s), ms(p), ratio(s, p))
	r.judge(idle <= 80e6, "serve idle memory %.1f MB, bare HTTP server %.1f MB, ratio %.2f (budget 80 MB)", mb(idle), mb(bare), float64(idle)/float64(bare))
	return nil
}

// environment is the smallest that serve starts with; the GitHub in it is never reached.
func environment(dir string) ([]string, error) {
	standIn, err := githubtest.New(githubtest.Options{Dir: filepath.Join(dir, "github")})
	if err != nil {
		return nil, err
	}
	c := standIn.Config()
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "DATA_DIR=" + dir, "LISTEN_ADDR=" + productAddr,
		"GITHUB_BASE_URL=http://127.0.0.1:9", "GITHUB_CLIENT_ID=" + c.ClientID, "GITHUB_CLIENT_SECRET=" + c.ClientSecret,
		"GITHUB_APP_ID=" + strconv.FormatInt(c.AppID, 10), "GITHUB_APP_PRIVATE_KEY_FILE=" + filepath.Join(dir, "github", "app.pem"),
		"ALLOWED_LOGINS=octo-dev", "OPENROUTER_API_KEY=unused", "MODEL_BASE_URL=http://127.0.0.1:9/v1", "DOCKER_HOST=" + os.Getenv("DOCKER_HOST"), "SANDBOX_IMAGE=" + os.Getenv("SANDBOX_IMAGE"),
	}, nil
}

// timeServe starts serve, waits for its first answer, lets weigh look at it, and stops it.
func timeServe(ctx context.Context, env []string, weigh func(pid int) error) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, "bin/agent-sandboxing", "serve")
	var log bytes.Buffer
	cmd.Env, cmd.Stderr, cmd.SysProcAttr = env, &log, &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	err := answers(ctx, "http://"+productAddr+"/healthz")
	took := time.Since(began)
	if err == nil && weigh != nil {
		err = weigh(cmd.Process.Pid)
	}
	if err := errors.Join(err, cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err != nil {
		return took, fmt.Errorf("serve: %w\n%s", err, log.Bytes())
	}
	return took, nil
}

func timePostgres(ctx context.Context, dir string) (time.Duration, error) {
	began := time.Now()
	server, err := localpg.Start(ctx, dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return 0, err
	}
	return time.Since(began), server.Stop(ctx)
}

func weighBare(ctx context.Context) (int64, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, self, "bare")
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if err := dial(ctx, bareAddr); err != nil {
		return 0, err
	}
	return resident(cmd.Process.Pid)
}

func answers(ctx context.Context, url string) error {
	for began := time.Now(); time.Since(began) < time.Minute; {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			return resp.Body.Close()
		}
		time.Sleep(2 * time.Millisecond) //nolint:forbidigo // the resolution of the measurement
	}
	return fmt.Errorf("%s never answered", url)
}

func dial(ctx context.Context, addr string) error {
	var d net.Dialer
	for began := time.Now(); time.Since(began) < time.Minute; {
		if c, err := d.DialContext(ctx, "tcp", addr); err == nil {
			return c.Close()
		}
		time.Sleep(2 * time.Millisecond) //nolint:forbidigo // the resolution of the measurement
	}
	return fmt.Errorf("%s never answered", addr)
}

// resident is a process's memory in bytes.
func resident(pid int) (int64, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if kb, ok := strings.CutPrefix(lines.Text(), "VmRSS:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(kb, "kB")), 10, 64)
			return n << 10, err
		}
	}
	return 0, errors.New("the process does not say how much memory it has")
}

func mb(n int64) float64 { return float64(n) / 1e6 }
