package webhook_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/webhook"
)

// hooks is what GitHub says of its attempts.
type hooks struct {
	attempts []core.DeliveryAttempt
	since    time.Time
	asked    []int64
	fail     bool
}

func (h *hooks) HookDeliveries(_ context.Context, since time.Time) ([]core.DeliveryAttempt, error) {
	h.since = since
	return h.attempts, nil
}

func (h *hooks) Redeliver(_ context.Context, id int64) error {
	if h.fail {
		return errors.New("no")
	}
	h.asked = append(h.asked, id)
	return nil
}

// here are the deliveries that came.
type here map[string]bool

func (h here) Due(context.Context, string, time.Duration) (bool, error) { return true, nil }
func (h here) PruneDeliveries(context.Context) (int64, error)           { return 0, nil }
func (h here) Deliveries(context.Context, []string) (map[string]bool, error) {
	return h, nil
}

func TestSweep_AsksOnceForWhatNeverCame(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		attempts []core.DeliveryAttempt // newest first
		here     here
		want     []int64
	}{
		"nothing":             {nil, nil, nil},
		"all came":            {[]core.DeliveryAttempt{{ID: 2, GUID: "b", OK: true}, {ID: 1, GUID: "a", OK: true}}, nil, nil},
		"one is missing":      {[]core.DeliveryAttempt{{ID: 2, GUID: "b"}, {ID: 1, GUID: "a", OK: true}}, nil, []int64{2}},
		"came at the second":  {[]core.DeliveryAttempt{{ID: 2, GUID: "a", OK: true}, {ID: 1, GUID: "a"}}, nil, nil},
		"failed twice":        {[]core.DeliveryAttempt{{ID: 3, GUID: "b"}, {ID: 2, GUID: "b"}, {ID: 1, GUID: "a", OK: true}}, nil, []int64{3}},
		"came, answer lost":   {[]core.DeliveryAttempt{{ID: 2, GUID: "b"}, {ID: 1, GUID: "a", OK: true}}, here{"b": true}, nil},
		"the webhook is dead": {[]core.DeliveryAttempt{{ID: 2, GUID: "b"}, {ID: 1, GUID: "a"}}, nil, nil},
	} {
		h := &hooks{attempts: tt.attempts}
		s := webhook.Sweeper{Hooks: h, Received: tt.here, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)}
		asked, err := s.Sweep(t.Context())
		if err != nil || asked != len(tt.want) || !slices.Equal(h.asked, tt.want) {
			t.Errorf("%s: asked for %v (%d), %v, want %v", name, h.asked, asked, err, tt.want)
		}
		if !h.since.After(now.Add(-72*time.Hour)) || !h.since.Before(now.Add(-70*time.Hour)) {
			t.Errorf("%s: looked back to %v", name, h.since)
		}
	}
	many := &hooks{attempts: []core.DeliveryAttempt{{ID: 1, GUID: "ok", OK: true}}}
	for i := range 500 {
		many.attempts = append(many.attempts, core.DeliveryAttempt{ID: int64(i + 2), GUID: string(rune('A' + i))})
	}
	s := webhook.Sweeper{Hooks: many, Received: here{}, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)}
	if asked, err := s.Sweep(t.Context()); err != nil || asked != 100 {
		t.Errorf("of 500: asked for %d, %v, want 100 at most", asked, err)
	}
	many.fail = true
	if _, err := s.Sweep(t.Context()); err == nil {
		t.Error("a refusal of GitHub's is no error")
	}
}
