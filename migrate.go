package main

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"agent-sandboxing/core/config"
	"agent-sandboxing/core/store"
)

func (migrateCmd) Run(ctx context.Context) error {
	cfg, err := config.Load(config.Migrate)
	if err != nil {
		return err
	}
	if cfg.DatabaseURL.Empty() {
		return errors.New("DATABASE_URL is not set; serve migrates its own database by itself")
	}
	s, err := store.Open(ctx, cfg.DatabaseURL.Reveal(), nil, slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Migrate(ctx)
}
