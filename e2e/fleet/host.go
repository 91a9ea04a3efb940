package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/store"
)

// host is the Docker host as the installation's database and labels know it.
type host struct {
	store    *store.Store
	instance string
	id       string // of the daemon
}

func openHost(ctx context.Context) (*host, error) {
	s, err := store.Open(ctx, os.Getenv("DATABASE_URL"), nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	h := &host{store: s}
	if h.instance, err = s.Instance(ctx); err != nil {
		s.Close()
		return nil, err
	}
	out, err := exec.CommandContext(ctx, "docker", "info", "--format", "{{.ID}}").Output()
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("ask Docker who it is: %w", err)
	}
	h.id = strings.TrimSpace(string(out))
	return h, nil
}

// filled waits until the pool is ready.
func (h *host) filled(ctx context.Context) error {
	look := time.NewTicker(200 * time.Millisecond)
	defer look.Stop()
	for {
		members, err := h.store.PoolMembers(ctx, h.id)
		if err != nil {
			return err
		}
		ready := 0
		for _, m := range members {
			if m.State == core.PoolReady {
				ready++
			}
		}
		if ready == warm {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d members of the pool are ready: %w", ready, warm, ctx.Err())
		case <-look.C:
		}
	}
}

// served is how many sessions got a member of the pool.
func (h *host) served(ctx context.Context) (int, error) {
	boxes, err := h.list(ctx, "ps", "-a", "--filter", "label=agent-sandboxing.purpose=pool", "--format", `{{.Label "agent-sandboxing.sandbox"}}`)
	if err != nil {
		return 0, err
	}
	members, err := h.store.PoolMembers(ctx, h.id)
	for _, m := range members {
		boxes = slices.DeleteFunc(boxes, func(id string) bool { return id == string(m.ID) })
	}
	return len(boxes), err
}

// list is what a listing of the docker command has of this installation.
func (h *host) list(ctx context.Context, args ...string) ([]string, error) {
	out, err := exec.CommandContext(ctx, "docker", append(args, "--filter", "label=agent-sandboxing.instance="+h.instance)...).Output()
	if err != nil {
		return nil, fmt.Errorf("docker %s: %w", strings.Join(args, " "), err)
	}
	return strings.Fields(string(out)), nil
}

// clean deletes what workers leave for other workers: sessions' containers and volumes. Of the pool
// they leave nothing.
func (h *host) clean(ctx context.Context) error {
	members, err := h.store.PoolMembers(ctx, h.id)
	if err == nil && len(members) > 0 {
		err = fmt.Errorf("%d members of the pool outlive the workers", len(members))
	}
	failures := []error{err}
	for _, kind := range []struct{ list, remove []string }{
		{[]string{"ps", "-aq"}, []string{"rm", "-f"}},
		{[]string{"volume", "ls", "-q"}, []string{"volume", "rm"}},
	} {
		ids, err := h.list(ctx, kind.list...)
		if err == nil && len(ids) > 0 {
			err = exec.CommandContext(ctx, "docker", append(kind.remove, ids...)...).Run()
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("remove what is left: %w", err))
		}
	}
	return errors.Join(failures...)
}
