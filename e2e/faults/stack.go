package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"agent-sandboxing/core/github/githubtest"
	"agent-sandboxing/core/github/githubtest/seed"
	"agent-sandboxing/core/seal"
	"agent-sandboxing/core/store"
	"agent-sandboxing/e2e/person"
	"agent-sandboxing/e2e/standin"
	"agent-sandboxing/sandbox/docker/dockertest"
)

// built is what is put to the test.
const built = "bin/agent-sandboxing"

// bench is the product as one web and one worker process between two stand-ins, a database and a
// Docker daemon of its own, which can be taken away.
type bench struct {
	dir    string
	binary string // a copy, so that a new build does not get into a run

	productAddr, githubAddr, modelAddr string

	env      map[string]string
	daemon   *dockertest.Daemon
	docker   *relay
	database *relay
	github   *githubtest.Server
	instance string
	owner    *person.Person
	reader   *person.Person
	running  map[string]*process // by role
	sessions []string            // of the current row
	files    int
	patience time.Duration // for the end of a session's work
	look     time.Duration // between two looks at it

	stop     context.CancelFunc // of the stand-ins
	standins sync.WaitGroup
}

// open starts everything, or ends again what it has started.
func open(ctx context.Context) (*bench, error) {
	dir, err := os.MkdirTemp("/tmp", "faults-")
	if err != nil {
		return nil, err
	}
	b := &bench{
		dir: dir, binary: filepath.Join(dir, "agent-sandboxing"), running: map[string]*process{}, patience: 90 * time.Second, look: 200 * time.Millisecond,
	}
	if err := b.setUp(ctx); err != nil {
		return nil, b.end(ctx, err)
	}
	return b, nil
}

// end closes everything after a run that ended with err. A good one leaves nothing.
func (b *bench) end(ctx context.Context, err error) error {
	if err = errors.Join(err, b.close(context.WithoutCancel(ctx))); err == nil {
		return os.RemoveAll(b.dir)
	}
	return fmt.Errorf("%w; the logs are in %s", err, b.dir)
}

func (b *bench) setUp(ctx context.Context) error {
	if err := os.Chmod(b.dir, 0o755); err != nil { //nolint:gosec // the local Postgres runs as another user and must enter
		return err
	}
	if out, err := exec.CommandContext(ctx, "cp", built, b.binary).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	for _, addr := range []*string{&b.productAddr, &b.githubAddr, &b.modelAddr} {
		var err error
		if *addr, err = free(ctx); err != nil {
			return err
		}
	}
	if err := b.outside(ctx); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "createdb", "-h", os.Getenv("DATABASE_SOCKETS"), "-U", "postgres", filepath.Base(b.dir)).CombinedOutput(); err != nil {
		return fmt.Errorf("createdb: %w: %s", err, out)
	}
	if out, err := b.once(ctx, nil, "migrate"); err != nil {
		return fmt.Errorf("migrate: %w: %s", err, out)
	}
	var err error
	if b.instance, err = instanceOf(ctx, b.env["DATABASE_URL"]); err != nil {
		return err
	}
	if err := errors.Join(b.start("web", nil), b.start("worker", nil)); err != nil {
		return err
	}
	if b.owner, err = person.SignIn(ctx, "http://"+b.productAddr, "http://"+b.githubAddr, seed.Owner); err != nil {
		return err
	}
	b.reader, err = person.SignIn(ctx, "http://"+b.productAddr, "http://"+b.githubAddr, seed.Reader)
	return err
}

// outside starts what surrounds the product, and makes the product's environment.
func (b *bench) outside(ctx context.Context) error {
	image := os.Getenv("SANDBOX_IMAGE")
	var err error
	if b.daemon, err = dockertest.OpenDaemon(ctx, dockertest.DaemonOptions{LiveRestore: true, Images: []string{image}}); err != nil {
		return err
	}
	const socket = ".s.PGSQL.5432"
	b.docker = &relay{path: filepath.Join(b.dir, "docker.sock"), server: b.daemon.Socket()}
	b.database = &relay{path: filepath.Join(b.dir, socket), server: filepath.Join(os.Getenv("DATABASE_SOCKETS"), socket)}
	if err := errors.Join(b.docker.up(), b.database.up()); err != nil {
		return err
	}
	github, err := standin.OpenGitHub(ctx, filepath.Join(b.dir, "github"), b.githubAddr)
	if err != nil {
		return err
	}
	b.github = github.Server()
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	b.stop = stop
	b.standins.Go(func() { _ = github.Serve(serving) }) // what uses them says when they are not there
	b.standins.Go(func() { _ = standin.ServeScript(serving, b.modelAddr, script{}, 0) })
	b.env = map[string]string{ // no pool but in the rows about it
		"PATH": os.Getenv("PATH"), "HOME": os.Getenv("HOME"), "SANDBOX_IMAGE": image, "DATABASE_URL": "host=" + b.dir + " user=postgres dbname=" + filepath.Base(b.dir),
		"ENCRYPTION_KEYS": seal.NewKey("k1"), "DATA_DIR": filepath.Join(b.dir, "data"), "DOCKER_HOST": "unix://" + b.docker.path,
		"LISTEN_ADDR": b.productAddr, "PUBLIC_URL": "http://" + b.productAddr, "SANDBOX_MAX_RUNNING": "4", "SANDBOX_WARM": "0", "SANDBOX_MEMORY": memory(),
		"SANDBOX_RUNTIME": dockertest.Runtime(),
	}
	maps.Copy(b.env, github.Environment())
	maps.Copy(b.env, standin.ModelEnvironment(b.modelAddr))
	b.env["OPENROUTER_API_KEY"] = canary
	return nil
}

// memory is what one sandbox may use, in MiB. gVisor's own is in it, 5 MB a process.
func memory() string {
	if dockertest.Runtime() == "runc" {
		return "512"
	}
	return "1536"
}

// free is an address on which nothing listens.
func free(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func instanceOf(ctx context.Context, url string) (string, error) {
	s, err := store.Open(ctx, url, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return "", err
	}
	defer s.Close()
	return s.Instance(ctx)
}

// heal ends every fault outside the product.
func (b *bench) heal(ctx context.Context) {
	b.github.ClearFaults()
	if err := errors.Join(b.daemon.Start(ctx), b.docker.up(), b.database.up()); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
	}
	b.sessions = nil
}

// close ends the product, the stand-ins and the Docker daemon with all that is on it, as far as they
// were started.
func (b *bench) close(ctx context.Context) error {
	var failures []error
	for role := range b.running {
		failures = append(failures, b.signal(ctx, role, syscall.SIGTERM))
	}
	for _, r := range []*relay{b.docker, b.database} {
		if r != nil {
			r.down()
		}
	}
	if b.stop != nil {
		b.stop()
	}
	b.standins.Wait()
	if out, err := exec.CommandContext(ctx, "dropdb", "--if-exists", "-h", os.Getenv("DATABASE_SOCKETS"), "-U", "postgres", filepath.Base(b.dir)).CombinedOutput(); err != nil {
		failures = append(failures, fmt.Errorf("dropdb: %w: %s", err, out))
	}
	if b.daemon != nil {
		failures = append(failures, b.daemon.Close(ctx))
	}
	return errors.Join(failures...)
}

func (b *bench) removeAll(ctx context.Context, instance string) error {
	for _, kind := range []struct{ list, remove []string }{
		{[]string{"ps", "-aq"}, []string{"rm", "-f"}},
		{[]string{"volume", "ls", "-q"}, []string{"volume", "rm"}},
	} {
		ids, err := b.host(ctx, append(kind.list, "--filter", "label=agent-sandboxing.instance="+instance)...)
		if err != nil {
			return err
		}
		if len(ids) > 0 {
			if _, err := b.host(ctx, append(kind.remove, ids...)...); err != nil {
				return err
			}
		}
	}
	return nil
}

// host runs a docker command on the sandbox host itself and returns the words of its answer.
func (b *bench) host(ctx context.Context, args ...string) ([]string, error) {
	out, err := b.daemon.Run(ctx, args...)
	return strings.Fields(out), err
}
