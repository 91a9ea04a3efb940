package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"agent-sandboxing/e2e/person"
)

// raceRows do two things at the same moment.
func raceRows() []row {
	return []row{
		{"race: a cancel against the end of a turn, 40 times", raceCancel},
		{"race: six tabs post, cancel and publish", raceTabs},
	}
}

// raceCancel sends each cancel at another moment of a short turn. Whatever wins, the message has
// one end, and its turn leaves a session that goes on.
func raceCancel(ctx context.Context, b *bench) (string, error) {
	first := b.newFile()
	id, err := b.create(ctx, "mdlinks", "file "+first)
	if err != nil {
		return "", err
	}
	if _, err := b.ended(ctx, id); err != nil {
		return "", err
	}
	ends := map[string]int{}
	for range 40 {
		if err := b.post(ctx, id, "file "+b.newFile()); err != nil {
			return "", err
		}
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond) //nolint:forbidigo // the moment is the point
		if err := b.cancel(ctx, id); err != nil {
			if code, err := refused(err, http.StatusConflict, "nothing_to_cancel"); err != nil {
				return code, err
			}
		}
		s, err := b.ended(ctx, id)
		if err != nil {
			return "", err
		}
		code, _, state := s.last()
		if state == "failed" {
			return code, errors.New("a cancel made a turn fail")
		}
		ends[state]++
	}
	if err := b.oneEndEach(ctx, id); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d cancelled", ends["cancelled"]), b.goesOn(ctx, id, first)
}

// raceTabs has six tabs press everything at once. Only refusals with a code are fine.
func raceTabs(ctx context.Context, b *bench) (string, error) {
	first := b.newFile()
	id, err := b.create(ctx, "shelf-label", "file "+first)
	if err != nil {
		return "", err
	}
	var mu sync.Mutex
	var failures []error
	codes := map[string]int{}
	press := func(path string, in any) {
		var out any
		err := b.owner.Ask(ctx, http.MethodPost, "/chat-sessions/"+id+path, "", in, &out)
		mu.Lock()
		defer mu.Unlock()
		r, ok := errors.AsType[*person.Refusal](err)
		switch {
		case err == nil:
		case ok && r.Status == http.StatusConflict:
			codes[r.Code]++
		default:
			failures = append(failures, fmt.Errorf("POST %s: %w", path, err))
		}
	}
	names := make([]string, 6)
	for i := range names {
		names[i] = b.newFile()
	}
	var tabs sync.WaitGroup
	for _, name := range names {
		tabs.Go(func() {
			for range 4 {
				press("/publish", map[string]string{"title": "Add files", "body": name})
				press("/messages", map[string]string{"text": "file " + name})
				press("/cancel", nil)
				press("/stop", nil)
			}
		})
	}
	tabs.Wait()
	if err := errors.Join(failures...); err != nil {
		return "", err
	}
	if _, err := b.ended(ctx, id); err != nil {
		return "", err
	}
	if err := b.oneEndEach(ctx, id); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d kinds of refusal", len(codes)), b.goesOn(ctx, id)
}
