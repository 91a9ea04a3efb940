package network

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"agent-sandboxing/core"
)

const (
	// writeEvery is how often what was seen is written without anybody asking.
	writeEvery = 500 * time.Millisecond
	// writeWithin bounds one write, so that a database that hangs holds up a turn's end for no longer.
	writeWithin = 5 * time.Second
	// maxWatched bounds the refusals that one watch collects.
	maxWatched = 20
)

// rowKey names one row of a session's egress_log and the turn that it was seen in.
type rowKey struct {
	message core.MessageID
	host    string
	port    int
	allowed bool
	rule    string
}

// pending is what was seen and is not written yet.
type pending struct {
	mu      sync.Mutex
	rows    map[core.SessionID]map[rowKey]core.EgressRow
	watches map[*watch]struct{}
	turns   map[core.SessionID]core.MessageID // at work
}

// watch collects the refusals of one session for as long as a command runs.
type watch struct {
	session  core.SessionID
	refusals []core.EgressRefusal
}

func newPending() pending {
	return pending{
		rows: make(map[core.SessionID]map[rowKey]core.EgressRow), watches: make(map[*watch]struct{}), turns: make(map[core.SessionID]core.MessageID),
	}
}

// Begin says that what a session's sandbox reaches belongs to a turn, until end is called.
func (s *Service) Begin(session core.SessionID, message core.MessageID) (end func()) {
	s.pending.mu.Lock()
	defer s.pending.mu.Unlock()
	s.pending.turns[session] = message
	return func() {
		s.pending.mu.Lock()
		defer s.pending.mu.Unlock()
		if s.pending.turns[session] == message {
			delete(s.pending.turns, session)
		}
	}
}

// RecordEgress takes one decision about a connection of the session's turn, if there is one. It never waits
// for the database: where a session has more rows to be written than are kept of it, further hosts are
// summed without their names, so that no session takes room from another.
func (s *Service) RecordEgress(r core.EgressRecord) {
	s.pending.mu.Lock()
	defer s.pending.mu.Unlock()
	r.MessageID = s.pending.turns[r.SessionID]
	s.pending.add(r.SessionID, rowKey{r.MessageID, r.Host, r.Port, r.Allowed, r.Rule}, core.EgressRow{
		MessageID: r.MessageID, Host: r.Host, Port: r.Port, Allowed: r.Allowed, Rule: r.Rule,
		Connections: 1, Sent: r.Sent, Received: r.Received, StartedAt: r.StartedAt, EndedAt: r.EndedAt,
	})
	if r.Allowed {
		return
	}
	for w := range s.pending.watches {
		if w.session == r.SessionID {
			w.add(core.EgressRefusal{Host: r.Host, Port: r.Port, Rule: r.Rule})
		}
	}
}

// add sums a row with what waits under the same key. Above core.MaxEgressRows a new key has no host.
func (p *pending) add(session core.SessionID, k rowKey, r core.EgressRow) {
	rows := p.rows[session]
	if rows == nil {
		rows = make(map[rowKey]core.EgressRow)
		p.rows[session] = rows
	}
	sum, ok := rows[k]
	if !ok && len(rows) >= core.MaxEgressRows {
		k.host, k.port, r.Host, r.Port = "", 0, "", 0
		sum, ok = rows[k]
	}
	if !ok {
		rows[k] = r
		return
	}
	if r.EndedAt.After(sum.EndedAt) {
		sum.EndedAt = r.EndedAt
	}
	if r.StartedAt.Before(sum.StartedAt) {
		sum.StartedAt = r.StartedAt
	}
	sum.Connections += r.Connections
	sum.Sent += r.Sent
	sum.Received += r.Received
	rows[k] = sum
}

func (w *watch) add(r core.EgressRefusal) {
	if len(w.refusals) >= maxWatched {
		return
	}
	if !slices.Contains(w.refusals, r) {
		w.refusals = append(w.refusals, r)
	}
}

// Watch collects what a session's sandbox is refused from now on, each host, port and rule once, until
// stop is called, which must be and returns it.
func (s *Service) Watch(session core.SessionID) (stop func() []core.EgressRefusal) {
	w := &watch{session: session}
	s.pending.mu.Lock()
	defer s.pending.mu.Unlock()
	s.pending.watches[w] = struct{}{}
	return func() []core.EgressRefusal {
		s.pending.mu.Lock()
		defer s.pending.mu.Unlock()
		delete(s.pending.watches, w)
		return w.refusals
	}
}

// Flush writes what was seen of a session. A failure is logged and what could not be written waits.
func (s *Service) Flush(ctx context.Context, session core.SessionID) {
	s.write(ctx, func(id core.SessionID) bool { return id == session })
}

// Run writes at intervals until ctx ends. Who stops it calls FlushAll when nothing records any more.
func (s *Service) Run(ctx context.Context) {
	tick := time.NewTicker(writeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.FlushAll(ctx)
	}
}

// FlushAll writes what was seen of every session.
func (s *Service) FlushAll(ctx context.Context) {
	s.write(ctx, func(core.SessionID) bool { return true })
}

// write takes the rows of the sessions that match and gives them to the store, a session at a time. One
// write runs at a time: whoever flushes also waits for what another write has taken already.
func (s *Service) write(ctx context.Context, match func(core.SessionID) bool) {
	end, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	select {
	case s.writing <- struct{}{}:
	case <-end.Done():
		return
	}
	defer func() { <-s.writing }()
	for session, rows := range s.pending.take(match) {
		err := s.store.RecordEgress(end, session, list(rows))
		if err == nil {
			continue
		}
		if core.KindOf(err) != core.NotFound { // a session that is gone has no record to keep
			s.pending.giveBack(session, rows)
		}
		if ctx.Err() == nil {
			s.log.WarnContext(ctx, "record egress", "session_id", session, "code", core.CodeOf(err), "error", err)
		}
	}
}

// list is the rows as they began: events about them come in this order.
func list(rows map[rowKey]core.EgressRow) []core.EgressRow {
	return slices.SortedFunc(maps.Values(rows), func(a, b core.EgressRow) int { return a.StartedAt.Compare(b.StartedAt) })
}

// take removes and returns the rows of the sessions that match.
func (p *pending) take(match func(core.SessionID) bool) map[core.SessionID]map[rowKey]core.EgressRow {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := make(map[core.SessionID]map[rowKey]core.EgressRow)
	maps.DeleteFunc(p.rows, func(session core.SessionID, rows map[rowKey]core.EgressRow) bool {
		if !match(session) {
			return false
		}
		taken[session] = rows
		return true
	})
	return taken
}

// giveBack puts rows that were taken before what came meanwhile: they have their names.
func (p *pending) giveBack(session core.SessionID, rows map[rowKey]core.EgressRow) {
	p.mu.Lock()
	defer p.mu.Unlock()
	newer := p.rows[session]
	p.rows[session] = rows
	for k, r := range newer {
		p.add(session, k, r)
	}
}
