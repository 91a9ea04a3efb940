package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// At how many moments of turns the worker is killed, in how many sessions at once at most.
const (
	crashPoints   = 50
	crashSessions = 4
)

// pointRows kill the worker wherever its turns are.
func pointRows() []row {
	return []row{{"F3: the worker is killed at 50 moments of turns", crashAtPoints}}
}

// crashAtPoints sends messages in several sessions, kills the worker at a random moment and counts the
// turns that it hit, from their first claim to their last write. Every message ends once, every write
// that was told as done is in its work tree, and rows and containers agree.
func crashAtPoints(ctx context.Context, b *bench) (string, error) {
	var ids []string
	hit, kills := 0, 0
	for hit < crashPoints {
		if kills++; kills > 3*crashPoints { // on a quick machine many come too late
			return "", fmt.Errorf("%d kills hit only %d turns", kills, hit)
		}
		if len(ids) == crashSessions {
			ids = ids[1:] // the next begins with a session that has no sandbox yet
		}
		id, err := b.create(ctx, "mdlinks", "file "+b.newFile())
		if err != nil {
			return "", err
		}
		for _, old := range ids {
			if err := b.post(ctx, old, "file "+b.newFile()); err != nil {
				return "", err
			}
		}
		ids = append(ids, id)
		time.Sleep(time.Duration(rand.IntN(250)) * time.Millisecond) //nolint:forbidigo // the moment is the point
		n, err := b.crashWorker(ctx, nil)
		if err != nil {
			return "", err
		}
		hit += n
		for _, id := range ids {
			if _, err := b.ended(ctx, id); err != nil {
				return "", err
			}
		}
	}
	var failures []error
	for _, id := range b.sessions {
		failures = append(failures, b.intact(ctx, id))
	}
	failures = append(failures, b.newWorker(ctx, nil), b.rowsAgree(ctx)) // a new one compares at once
	return fmt.Sprintf("%d turns, %d kills", hit, kills), errors.Join(failures...)
}

// intact demands of a session that each message ended once, that its next message works, and that all
// files that the agent was told to be written are there.
func (b *bench) intact(ctx context.Context, id string) error {
	if err := b.oneEndEach(ctx, id); err != nil {
		return err
	}
	written, err := b.written(ctx, id)
	if err != nil {
		return err
	}
	return b.goesOn(ctx, id, written...)
}

// rowsAgree demands that in the end every container belongs to a row of its generation, and that no
// row waits for anything.
func (b *bench) rowsAgree(ctx context.Context) error {
	var disagree error
	err := b.eventually(ctx, "rows and containers agreed", func() bool {
		disagree = b.compare(ctx)
		return disagree == nil
	})
	return errors.Join(err, disagree)
}

// compare looks once.
func (b *bench) compare(ctx context.Context) error {
	return errors.Join(b.orphans(ctx), b.stuck(ctx))
}

// orphans demands that a row speaks for every container.
func (b *bench) orphans(ctx context.Context) error {
	containers, err := b.host(ctx, "ps", "-aq", "--no-trunc", "--filter", "label=agent-sandboxing.sandbox")
	if err != nil {
		return err
	}
	known, err := b.query(ctx, "SELECT runtime_ref FROM sandboxes WHERE state IN ('ready', 'stopped') UNION ALL SELECT runtime_ref FROM pool_members")
	if err != nil {
		return err
	}
	for _, ref := range containers {
		if !slices.Contains(strings.Fields(known), ref) {
			return fmt.Errorf("no row speaks for the container %s", ref)
		}
	}
	return nil
}

// stuck demands that no row waits for anything.
func (b *bench) stuck(ctx context.Context) error {
	rows, err := b.query(ctx, "SELECT (SELECT count(*) FROM messages WHERE state IN ('queued', 'working')) + (SELECT count(*) FROM sandboxes WHERE state IN ('creating', 'stopping')) + (SELECT count(*) FROM chat_sessions WHERE lease_owner IS NOT NULL)")
	if err == nil && rows != "0" {
		err = fmt.Errorf("%s rows wait for something", rows)
	}
	return err
}
