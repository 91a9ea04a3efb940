package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"agent-sandboxing/core"
	"agent-sandboxing/core/config"
	"agent-sandboxing/core/mirror"
)

// fixtures lists the folders of FIXTURES_DIR as repositories.
type fixtures struct {
	dir    string
	mirror *mirror.Mirror
}

func newFixtures(cfg config.Config, log *slog.Logger) (*fixtures, error) {
	m, err := mirror.New(mirror.Options{Dir: filepath.Join(cfg.DataDir, "mirror"), FixturesDir: cfg.FixturesDir, Log: log})
	if err != nil {
		return nil, err
	}
	return &fixtures{dir: cfg.FixturesDir, mirror: m}, nil
}

// Repositories returns one repository per folder; its id is negative and follows from its name.
func (f *fixtures) Repositories(context.Context) ([]core.Repository, error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil, fmt.Errorf("read FIXTURES_DIR: %w", err)
	}
	var all []core.Repository
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		h := fnv.New32a()
		_, _ = h.Write([]byte(e.Name()))
		all = append(all, core.Repository{
			ID: -1 - core.RepositoryID(h.Sum32()), InstallationID: core.FixtureInstallation, Owner: "fixtures", Name: e.Name(),
			DefaultBranch: mirror.FixtureBranch, CanPull: true, CanPush: true,
		})
	}
	return all, nil
}

// Branch is the one branch of a fixture.
func (f *fixtures) Branch(ctx context.Context, repo core.Repository) (core.Branch, error) {
	return f.mirror.FixtureHead(ctx, repo)
}
