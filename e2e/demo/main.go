// Command demo runs the built product beside a stand-in GitHub and a scripted model, each replaced
// by the real thing when GITHUB_CLIENT_ID or OPENROUTER_API_KEY is set. Ctrl-C ends all of it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"agent-sandboxing/e2e/standin"
)

// Where the parts listen unless the environment says otherwise.
const (
	productAddr = "127.0.0.1:8080"
	githubAddr  = "127.0.0.1:8081"
	modelAddr   = "127.0.0.1:8082"
	// typing is the pause between two pieces of an answer, so that one sees it grow.
	typing = 20 * time.Millisecond
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	d, err := newDemo()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if d.env["GITHUB_CLIENT_ID"] == "" {
		if err := d.standInGitHub(ctx, group); err != nil {
			return err
		}
	}
	if d.env["OPENROUTER_API_KEY"] == "" {
		if err := d.scriptedModel(ctx, group); err != nil {
			return err
		}
	}
	group.Go(func() error { return d.serve(ctx) })
	return group.Wait()
}

// demo is the environment that the product is started with.
type demo struct {
	env     map[string]string
	dataDir string
	people  []string // the stand-in's, with what each may do
}

func newDemo() (*demo, error) {
	d := &demo{env: map[string]string{}}
	for _, pair := range os.Environ() {
		k, v, _ := strings.Cut(pair, "=")
		d.env[k] = v
	}
	d.orElse("LISTEN_ADDR", productAddr)
	d.orElse("PUBLIC_URL", "http://"+d.env["LISTEN_ADDR"])
	d.orElse("DATA_DIR", defaultDataDir())
	d.dataDir = d.env["DATA_DIR"]
	// The database runs as another user when we are root, and must be able to enter.
	if err := os.MkdirAll(d.dataDir, 0o755); err != nil {
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	return d, nil
}

func defaultDataDir() string {
	if os.Getuid() == 0 {
		return "/var/lib/agent-sandboxing/demo"
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = os.TempDir()
	}
	return filepath.Join(home, ".local", "share", "agent-sandboxing", "demo")
}

func (d *demo) orElse(name, value string) {
	if d.env[name] == "" {
		d.env[name] = value
	}
}

// standInGitHub serves a seeded GitHub of our own and points the product at it.
func (d *demo) standInGitHub(ctx context.Context, group *errgroup.Group) error {
	addr := valueOr(d.env["DEMO_GITHUB_ADDR"], githubAddr)
	if err := free(ctx, addr, "DEMO_GITHUB_ADDR"); err != nil {
		return err
	}
	github, err := standin.OpenGitHub(ctx, filepath.Join(d.dataDir, "stand-in-github"), addr)
	if err != nil {
		return err
	}
	maps.Copy(d.env, github.Environment())
	d.people = github.People()
	github.LeadTo(d.env["PUBLIC_URL"])
	group.Go(func() error { return github.Serve(ctx) })
	return nil
}

// scriptedModel serves an OpenAI-compatible endpoint whose answers are a script.
func (d *demo) scriptedModel(ctx context.Context, group *errgroup.Group) error {
	addr := valueOr(d.env["DEMO_MODEL_ADDR"], modelAddr)
	if err := free(ctx, addr, "DEMO_MODEL_ADDR"); err != nil {
		return err
	}
	maps.Copy(d.env, standin.ModelEnvironment(addr))
	group.Go(func() error { return standin.ServeModel(ctx, addr, typing) })
	return nil
}

// serve runs the product until ctx ends, and then until it has stopped in order.
func (d *demo) serve(ctx context.Context) error {
	if err := free(ctx, d.env["LISTEN_ADDR"], "LISTEN_ADDR"); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(filepath.Dir(self), "agent-sandboxing"), "serve") //nolint:noctx // it is ended by hand, in order
	for k, v := range d.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	if err := d.keepEnvironment(); err != nil {
		return err
	}
	logFile, err := openLog(filepath.Join(d.dataDir, "serve.log"))
	if err != nil {
		return err
	}
	defer logFile.Close()
	cmd.Stdout, cmd.Stderr = logFile, logFile
	// A group of its own: Ctrl-C reaches it through us only. It does not outlive us.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the product: %w", err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()

	ready := make(chan error, 1)
	waiting, stopWaiting := context.WithCancel(ctx)
	defer stopWaiting()
	go func() { ready <- d.waitReady(waiting) }()
	for {
		select {
		case err := <-ready:
			if err == nil {
				d.announce()
			}
		case err := <-exited:
			return fmt.Errorf("the product ended by itself (%w); its log is %s:\n%s", errors.Join(err, errors.New("exit")), logFile.Name(), tail(logFile.Name()))
		case <-ctx.Done():
			fmt.Println("\nStopping …")
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				return err
			}
			select {
			case err := <-exited:
				return err
			case <-time.After(2 * time.Minute):
				return errors.Join(errors.New("the product did not stop in time"), cmd.Process.Kill())
			}
		}
	}
}

// keepEnvironment writes what the demo itself has set, for a shell to read: with it, doctor and the other
// commands see what the demo runs with. Secrets that the caller has set are not in it.
func (d *demo) keepEnvironment() error {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(d.env)) {
		value := d.env[name]
		harmless := strings.HasPrefix(name, "SANDBOX_") || slices.Contains([]string{"DOCKER_HOST", "DATA_DIR", "LISTEN_ADDR"}, name)
		if given, ok := os.LookupEnv(name); ok && given == value && !harmless {
			continue
		}
		fmt.Fprintf(&text, "export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
	}
	return os.WriteFile(filepath.Join(d.dataDir, "environment"), []byte(text.String()), 0o600)
}

// openLog begins a new log and keeps the one before it, with .old behind its name: what went wrong
// is often looked for after the next start.
func openLog(path string) (*os.File, error) {
	if err := os.Rename(path, path+".old"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
}

func (d *demo) waitReady(ctx context.Context) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.env["LISTEN_ADDR"]+"/readyz", nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
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

func (d *demo) announce() {
	fmt.Printf("\n  Open %s\n\n", d.env["PUBLIC_URL"])
	if len(d.people) > 0 {
		fmt.Println("  Sign in with the stand-in GitHub as one of:")
		for _, p := range d.people {
			fmt.Println("    " + p)
		}
	}
	if label := d.env["MODEL_LABEL"]; label != "" {
		fmt.Println("\n  " + label + ". Set OPENROUTER_API_KEY for a real one.")
	}
	fmt.Printf("\n  Data and logs: %s\n  Ctrl-C ends everything; sessions and their volumes are kept.\n", d.dataDir)
}

// free says in time which port is taken, and how to choose another.
func free(ctx context.Context, addr, variable string) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("%s cannot be used (%w); is another demo running? Set %s to another address", addr, err, variable)
	}
	return l.Close()
}

func tail(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(b[max(0, len(b)-2000):])
}

func valueOr(v, fallback string) string {
	if v == "" {
		return fallback
	}
	return v
}
