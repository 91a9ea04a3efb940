package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// startRows are faults that are there when a process starts.
func startRows() []row {
	return []row{
		{"start: Docker is not running, as doctor says", func(ctx context.Context, b *bench) (string, error) {
			return b.doctor(ctx, map[string]string{"DOCKER_HOST": "unix:///nonexistent/docker.sock"}, "docker")
		}},
		{"start: the image is missing, as doctor says", func(ctx context.Context, b *bench) (string, error) {
			return b.doctor(ctx, map[string]string{"SANDBOX_IMAGE": "agent-sandboxing/none:1"}, "image")
		}},
		{"start: the model does not answer, as doctor says", func(ctx context.Context, b *bench) (string, error) {
			return b.doctor(ctx, map[string]string{"MODEL_BASE_URL": "http://127.0.0.1:1/v1"}, "model")
		}},
		{"start: the database does not answer, as doctor says", func(ctx context.Context, b *bench) (string, error) {
			return b.doctor(ctx, map[string]string{"DATABASE_URL": "host=/nonexistent user=nobody"}, "postgres")
		}},
		{"start: Postgres is not installed, as doctor says", func(ctx context.Context, b *bench) (string, error) {
			return doctorSays(b.withoutPostgres(ctx, "doctor"))("postgres")
		}},
		{"start: Postgres is not installed", func(ctx context.Context, b *bench) (string, error) {
			return ends(b.withoutPostgres(ctx, "serve"))("postgres_missing")
		}},
		{"start: the port is taken", startPortTaken},
		{"start: the database does not answer", func(ctx context.Context, b *bench) (string, error) {
			return ends(b.once(ctx, map[string]string{"DATABASE_URL": "host=/nonexistent user=nobody", "LISTEN_ADDR": "127.0.0.1:0"}, "web"))("database_unavailable")
		}},
		{"start: nothing is configured", startUnconfigured},
		{"start: the App's key is no key", startNoKey},
		{"start: the App's key is another App's", startOtherKey},
	}
}

// doctor demands that it fails and names a part absent, with what to do.
func (b *bench) doctor(ctx context.Context, change map[string]string, part string) (string, error) {
	return doctorSays(b.once(ctx, change, "doctor"))(part)
}

func doctorSays(out string, err error) func(part string) (string, error) {
	return func(part string) (string, error) {
		_, found, ok := strings.Cut(out, "absent    "+part)
		if err == nil || !ok {
			return "", fmt.Errorf("doctor did not fail with %s (%w):\n%s", part, err, out)
		}
		_, remedy, ok := strings.Cut(found, "→ ")
		if !ok {
			return "", fmt.Errorf("doctor names no remedy for %s:\n%s", part, out)
		}
		remedy, _, _ = strings.Cut(remedy, "\n")
		return "doctor: " + part, sentence(remedy)
	}
}

// ends demands that a process failed, and said a code and a sentence in one line.
func ends(out string, err error) func(code string) (string, error) {
	return func(code string) (string, error) {
		if err == nil {
			return "", errors.New("it ended well")
		}
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "agent-sandboxing: ") && strings.Contains(line, code) {
				return code, nil
			}
		}
		return "", fmt.Errorf("want %s, but it said:\n%s", code, out)
	}
}

// withoutPostgres runs a command where no Postgres can be seen.
func (b *bench) withoutPostgres(ctx context.Context, command string) (string, error) {
	const hide = `for d in /usr/lib/postgresql /usr/pgsql-*; do [ ! -d "$d" ] || mount -t tmpfs none "$d"; done; exec "$0" "$1"`
	return b.program(ctx, map[string]string{"DATABASE_URL": "", "DATA_DIR": filepath.Join(b.dir, "no-postgres"), "LISTEN_ADDR": "127.0.0.1:0", "PUBLIC_URL": "http://127.0.0.1:1"},
		"unshare", "--map-root-user", "--mount", "sh", "-c", hide, b.binary, command)
}

func startPortTaken(ctx context.Context, b *bench) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return ends(b.once(ctx, map[string]string{"LISTEN_ADDR": l.Addr().String(), "PUBLIC_URL": "http://" + l.Addr().String()}, "web"))("address_in_use")
}

// startUnconfigured demands every problem at once.
func startUnconfigured(ctx context.Context, b *bench) (string, error) {
	empty := map[string]string{}
	for k := range b.env {
		if k != "PATH" && k != "HOME" {
			empty[k] = ""
		}
	}
	out, err := b.once(ctx, empty, "worker")
	if err == nil {
		return "", errors.New("it ended well")
	}
	for _, name := range []string{"DATABASE_URL", "ENCRYPTION_KEYS", "GITHUB_CLIENT_ID", "GITHUB_CLIENT_SECRET", "GITHUB_APP_ID", "GITHUB_APP_PRIVATE_KEY_FILE", "OPENROUTER_API_KEY"} {
		if !strings.Contains(out, name) {
			return "", fmt.Errorf("%s is not named:\n%s", name, out)
		}
	}
	return "all variables named", nil
}

func startNoKey(ctx context.Context, b *bench) (string, error) {
	path := filepath.Join(b.dir, "no-key.pem")
	if err := os.WriteFile(path, []byte("canary-of-a-file-that-is-no-key\n"), 0o600); err != nil {
		return "", err
	}
	out, err := b.once(ctx, map[string]string{"GITHUB_APP_PRIVATE_KEY_FILE": path}, "worker")
	if err == nil || !strings.Contains(out, "GITHUB_APP_PRIVATE_KEY_FILE") || strings.Contains(out, "canary") {
		return "", fmt.Errorf("the variable is not named, or its file is shown (%w):\n%s", err, out)
	}
	return "GITHUB_APP_PRIVATE_KEY_FILE", nil
}

// startOtherKey runs a worker with a good key that GitHub does not know.
func startOtherKey(ctx context.Context, b *bench) (string, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return "", err
	}
	path := filepath.Join(b.dir, "other.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return "", err
	}
	if err := b.newWorker(ctx, map[string]string{"GITHUB_APP_PRIVATE_KEY_FILE": path}); err != nil {
		return "", err
	}
	id, err := b.create(ctx, "mdlinks", "file "+b.newFile())
	if err != nil {
		return "", err
	}
	code, err := b.failed(ctx, id, "github_app_unauthorized")
	if err := errors.Join(err, b.newWorker(ctx, nil)); err != nil {
		return code, err
	}
	return code, b.goesOn(ctx, id)
}
