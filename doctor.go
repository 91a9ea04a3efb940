package main

import (
	"context"
	"encoding/json"
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
)

// finding is what doctor says of one dependency or control.
type finding struct {
	name   string
	state  string // fine, degraded or absent
	detail string
	remedy string
}

// MarshalJSON is for --json.
func (f finding) MarshalJSON() ([]byte, error) {
	out := struct {
		Name   string `json:"name"`
		State  string `json:"state"`
		Detail string `json:"detail"`
		Remedy string `json:"remedy,omitempty"`
	}{f.name, f.state, f.detail, ""}
	if f.state != fine {
		out.Remedy = f.remedy
	}
	return json.Marshal(out)
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
	return d.report(os.Stdout, examine(ctx, cfg))
}

// report prints what was found, and fails when something is absent, with strict also when it is degraded.
func (d doctorCmd) report(w io.Writer, all []finding) error {
	if d.JSON {
		if err := json.NewEncoder(w).Encode(all); err != nil {
			return err
		}
	}
	count := map[string]int{}
	for _, f := range all {
		count[f.state]++
		if d.JSON {
			continue
		}
		if err := f.print(w); err != nil {
			return err
		}
	}
	if count[absent] > 0 || count[degraded] > 0 && d.Strict {
		return fmt.Errorf("%d of %d are absent and %d degraded", count[absent], len(all), count[degraded])
	}
	return nil
}

func (f finding) print(w io.Writer) error {
	line := fmt.Sprintf("%-9s %-33s %s\n", f.state, f.name, f.detail)
	if f.remedy != "" && f.state != fine {
		line += "          → " + f.remedy + "\n"
	}
	_, err := io.WriteString(w, line)
	return err
}

// checkWithin bounds each group of questions; those of a live sandbox take longer on a busy host.
const checkWithin = time.Minute

// examine asks every dependency, each bounded in time, one after the other.
func examine(ctx context.Context, cfg config.Config) []finding {
	var all []finding
	for _, check := range []func(context.Context, config.Config) []finding{
		checkConfiguration, checkDatabase, checkGit, checkGitHub, checkModel, checkDisk, checkToolbox, checkNetwork, checkDocker,
	} {
		one, cancel := context.WithTimeout(ctx, checkWithin)
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

// checkNetwork says what sandboxes may reach, so that a mistyped variable shows.
func checkNetwork(_ context.Context, cfg config.Config) []finding {
	detail := map[core.EgressMode]string{
		core.EgressOpen:      "open: sessions may reach any public host",
		core.EgressAllowlist: fmt.Sprintf("allowlist: sessions may reach %d hosts of EGRESS_ALLOW and those of their repository", len(cfg.Egress.EgressAllow)),
		core.EgressNone:      "none: sessions reach nothing",
	}[cfg.Egress.EgressMode]
	if n := len(cfg.Egress.EgressAllowPrivate); n > 0 {
		detail += fmt.Sprintf("; EGRESS_ALLOW_PRIVATE opens %d that are not public", n)
	}
	return []finding{{"network", fine, detail, ""}}
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
	text := strings.TrimSpace(string(out))
	var major, minor int
	if n, _ := fmt.Sscanf(text, "git version %d.%d", &major, &minor); n == 2 && (major < 2 || major == 2 && minor < 34) {
		return []finding{{"git", degraded, text + " is older than 2.34", "Update git: mirrors and publishing are tested with 2.34 and newer."}}
	}
	return []finding{{"git", fine, text, ""}}
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
