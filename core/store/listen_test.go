package store_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/store"
	"agent-sandboxing/core/store/storetest"
)

// heard collects what a listener was told.
type heard struct {
	sessions chan core.SessionID
	partials chan core.MessageID
	work     chan struct{}
	access   chan core.InstallationID
}

// listen runs a listener of s until the test ends and waits until it hears.
func listen(t *testing.T, s *store.Store) heard {
	t.Helper()
	h := heard{sessions: make(chan core.SessionID, 1000), partials: make(chan core.MessageID, 1000), work: make(chan struct{}, 1000), access: make(chan core.InstallationID, 1000)}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		err := s.Listen(ctx, store.Handler{
			Session: func(id core.SessionID) { h.sessions <- id },
			Partial: func(_ core.SessionID, id core.MessageID) { h.partials <- id },
			Work:    func() { h.work <- struct{}{} },
			Access:  func(id core.InstallationID) { h.access <- id },
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Listen: %v, want its context's end", err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	hear(t, h.work, "the connection", func(struct{}) bool { return true })
	return h
}

// hear waits until what is told is wanted.
func hear[T any](t *testing.T, told <-chan T, what string, wanted func(T) bool) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for {
		select {
		case got := <-told:
			if wanted(got) {
				return
			}
		case <-limit:
			t.Fatalf("nobody told of %s", what)
		}
	}
}

func TestListen_HearsOtherProcesses(t *testing.T) {
	t.Parallel()
	url, keys := storetest.NewURL(t), storetest.Keys(t)
	s, other := storetest.Open(t, url, keys), storetest.Open(t, url, keys)
	h := listen(t, other)
	session := storetest.Session(t, s, storetest.User(t, s).ID)
	hear(t, h.sessions, "the new session", func(id core.SessionID) bool { return id == session.ID })
	hear(t, h.work, "work", func(struct{}) bool { return true })

	claim := storetest.Claim(t, s)
	_, err := s.StartMessage(t.Context(), claim.Lease, claim.Message.ID, "m")
	must(t, err)
	must(t, s.SetPartial(t.Context(), claim.Lease, claim.Message.ID, "growing"))
	hear(t, h.partials, "the growing answer", func(id core.MessageID) bool { return id == claim.Message.ID })

	post(t, s, session, "Next")
	hear(t, h.work, "the queued message", func(struct{}) bool { return true })
	storetest.Finish(t, s, claim, "ok")
	hear(t, h.work, "the released session that has another message", func(struct{}) bool { return true })
}

func TestListen_ConnectsAgain(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	h := listen(t, s)
	if n := count(t, s, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`); n != 1 {
		t.Fatalf("%d listening connections, want one", n)
	}
	hear(t, h.work, "the new connection", func(struct{}) bool { return true })
	must(t, s.Append(t.Context(), claim.Lease, core.ByAgent, "", core.CommandStarted{Name: "x"}))
	hear(t, h.sessions, "an event after the reconnect", func(id core.SessionID) bool { return id == claim.Session.ID })
}

// A burst of commits is told in few notifications, and its end is never forgotten.
func TestNotify_IsBatched(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	h := listen(t, s)
	const burst = 200
	began := time.Now()
	for range burst {
		must(t, s.Append(t.Context(), claim.Lease, core.ByAgent, "", core.CommandStarted{Name: "x"}))
	}
	periods := int(time.Since(began)/(20*time.Millisecond)) + 2
	hear(t, h.sessions, "the burst", func(core.SessionID) bool { return true })
	if told := len(h.sessions) + 1; told > periods+1 { // one may still come
		t.Errorf("%d notifications for %d commits in %d periods of 20 ms", told, burst, periods)
	}
}
