package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/config"
	"agent-sandboxing/core/github"
	"agent-sandboxing/core/store"
	"agent-sandboxing/sandbox/docker"
	"agent-sandboxing/sandbox/toolbox"
)

// finding is what doctor says of one dependency.
type finding struct {
	name   string
	state  string // fine, degraded or absent
	detail string
	remedy string
}

const (
	fine     = "fine"
	degraded = "degraded"
	absent   = "absent"
)

// minFreeMiB is the disk space below which new work is at risk.
const minFreeMiB = 5 << 10

func (d doctorCmd) Run(ctx context.Context) error {
	cfg, err := config.Load(config.Doctor)
	if err != nil {
		return fmt.Errorf("the configuration has problems:\n%w", err)
	}
	worst := fine
	for _, f := range examine(ctx, cfg) {
		if f.state == absent || f.state == degraded && worst == fine {
			worst = f.state
		}
		if err := f.print(os.Stdout); err != nil {
			return err
		}
	}
	if worst == absent || worst == degraded && d.Strict {
		return errors.New("not everything is fine")
	}
	return nil
}

func (f finding) print(w io.Writer) error {
	line := fmt.Sprintf("%-9s %-14s %s\n", f.state, f.name, f.detail)
	if f.remedy != "" && f.state != fine {
		line += "          → " + f.remedy + "\n"
	}
	_, err := io.WriteString(w, line)
	return err
}

// examine asks every dependency, each bounded in time, one after the other.
func examine(ctx context.Context, cfg config.Config) []finding {
	var all []finding
	for _, check := range []func(context.Context, config.Config) []finding{
		checkConfiguration, checkDatabase, checkGit, checkDocker, checkToolbox, checkGitHub, checkModel, checkDisk,
	} {
		one, cancel := context.WithTimeout(ctx, 15*time.Second)
		all = append(all, check(one, cfg)...)
		cancel()
	}
	return all
}

func checkConfiguration(context.Context, config.Config) []finding {
	if _, err := config.Load(config.Serve); err != nil {
		return []finding{{"configuration", absent, strings.ReplaceAll(err.Error(), "\n", "; "), "Set these variables; OPERATIONS.md describes each."}}
	}
	return []finding{{"configuration", fine, "complete for serve", ""}}
}

func checkDatabase(ctx context.Context, cfg config.Config) []finding {
	if cfg.DatabaseURL.Empty() {
		found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
		if err != nil || len(found) == 0 {
			return []finding{{"postgres", absent, "no Postgres is installed and DATABASE_URL is not set", "Run: apt-get install --no-install-recommends postgresql. Or set DATABASE_URL."}}
		}
		return []finding{{"postgres", fine, "serve runs its own from " + found[len(found)-1], ""}}
	}
	s, err := store.Open(ctx, cfg.DatabaseURL.Reveal(), nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return []finding{{"postgres", absent, core.MessageOf(err), "Check DATABASE_URL and that the server runs."}}
	}
	s.Close()
	return []finding{{"postgres", fine, "DATABASE_URL answers", ""}}
}

func checkGit(ctx context.Context, _ config.Config) []finding {
	out, err := exec.CommandContext(ctx, "git", "version").Output()
	if err != nil {
		return []finding{{"git", absent, "git does not run", "Run: apt-get install git."}}
	}
	return []finding{{"git", fine, strings.TrimSpace(string(out)), ""}}
}

func checkDocker(ctx context.Context, cfg config.Config) []finding {
	r, err := docker.New(docker.Config{Host: cfg.DockerHost, Image: cfg.Sandbox.Image, Runtime: cfg.Sandbox.Runtime, Instance: "doctor"})
	if err != nil {
		return []finding{{"docker", absent, core.MessageOf(err), "Check DOCKER_HOST."}}
	}
	defer r.Close()
	c, err := r.Capabilities(ctx)
	if err != nil {
		return []finding{{"docker", absent, core.MessageOf(err), "Start it (scripts/dockerd ensure), or set DOCKER_HOST."}}
	}
	all := []finding{{"docker", fine, c.ServerVersion + ", cgroup " + c.CgroupVersion + ", runtime " + c.Runtime, ""}}
	all = append(all, checkImage(cfg.Sandbox.Image, c.ImageReady))
	if !c.Seccomp {
		all = append(all, finding{"seccomp", degraded, "this daemon cannot filter system calls", "Use a kernel and daemon with seccomp."})
	}
	if c.Runtime == "runc" {
		all = append(all, finding{"isolation", degraded, "containers share the host's kernel", "For hostile tenants install gVisor and set SANDBOX_RUNTIME=runsc."})
	}
	return all
}

func checkImage(image string, ready bool) finding {
	const remedy = "Run scripts/build-image on the Docker host, then set SANDBOX_IMAGE to the last line that it prints."
	switch {
	case image == "":
		return finding{"image", absent, "SANDBOX_IMAGE is not set", remedy}
	case !ready:
		return finding{"image", absent, image + " is not on the Docker host", remedy}
	}
	return finding{"image", fine, image, ""}
}

func checkToolbox(context.Context, config.Config) []finding {
	if _, _, err := toolbox.Binary("amd64"); err != nil {
		return []finding{{"toolbox", absent, core.MessageOf(err), "Build with make build."}}
	}
	return []finding{{"toolbox", fine, "embedded", ""}}
}

func checkGitHub(ctx context.Context, cfg config.Config) []finding {
	bases, err := github.NewBases(cfg.GitHub.BaseURL)
	if err != nil {
		return []finding{{"github", absent, err.Error(), "Correct GITHUB_BASE_URL."}}
	}
	if cfg.GitHub.AppPrivateKeyFile == "" {
		return []finding{{"github", absent, "GITHUB_APP_PRIVATE_KEY_FILE is not set", "Generate a private key on the GitHub App's page and set its path."}}
	}
	key, err := os.ReadFile(cfg.GitHub.AppPrivateKeyFile)
	if err != nil {
		return []finding{{"github", absent, "the App's private key cannot be read", "Correct GITHUB_APP_PRIVATE_KEY_FILE."}}
	}
	app, err := github.NewApp(github.AppConfig{Bases: bases, AppID: cfg.GitHub.AppID, PrivateKey: key})
	if err != nil {
		return []finding{{"github", absent, err.Error(), "Check GITHUB_APP_ID and the key."}}
	}
	info, err := app.Probe(ctx)
	if err != nil {
		return []finding{{"github", absent, core.MessageOf(err), "Check GITHUB_APP_ID, the key and the network."}}
	}
	if len(info.Missing) > 0 {
		return []finding{{"github", degraded, "App " + info.Slug + " lacks " + strings.Join(info.Missing, ", "), "Grant these on the App's page and let each installation accept them."}}
	}
	return []finding{{"github", fine, "App " + info.Slug, ""}}
}

func checkModel(ctx context.Context, cfg config.Config) []finding {
	bad := func(detail string) []finding {
		return []finding{{"model", absent, detail, "Check MODEL_BASE_URL and OPENROUTER_API_KEY."}}
	}
	if cfg.Model.OpenRouterAPIKey.Empty() {
		return bad("OPENROUTER_API_KEY is not set")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(cfg.Model.ModelBaseURL, "/")+"/models", nil)
	if err != nil {
		return bad("MODEL_BASE_URL is not an address")
	}
	req.Header.Set("Authorization", "Bearer "+cfg.Model.OpenRouterAPIKey.Reveal())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return bad("the endpoint does not answer")
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return bad(fmt.Sprintf("the endpoint answers %d", resp.StatusCode))
	}
	return []finding{{"model", fine, cfg.Model.AgentModel + " at " + req.URL.Host, ""}}
}

func checkDisk(_ context.Context, cfg config.Config) []finding {
	dir := cfg.DataDir
	for {
		if _, err := os.Stat(dir); err == nil || dir == "/" {
			break
		}
		dir = filepath.Dir(dir)
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return []finding{{"disk", absent, "DATA_DIR cannot be looked at", "Check DATA_DIR."}}
	}
	free := int64(disk.Bavail) * disk.Bsize >> 20
	if free < minFreeMiB {
		return []finding{{"disk", degraded, fmt.Sprintf("%d MiB free", free), "Free space on the disk of DATA_DIR."}}
	}
	return []finding{{"disk", fine, fmt.Sprintf("%d MiB free", free), ""}}
}
