package store

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"agent-sandboxing/core"
)

// Channels of LISTEN and NOTIFY. Payloads hold ids only; readers take the content from the tables.
const (
	channelSession = "session_changed" // session id
	channelPartial = "message_partial" // session id, message id, length of the text in bytes
	channelWork    = "work_available"  // nothing
	channelAccess  = "access_changed"  // installation id
	notifyPeriod   = 20 * time.Millisecond
	notifyTimeout  = 5 * time.Second
)

// notifier sends what changed to every process, outside any transaction: NOTIFY takes a lock of the
// whole cluster at commit, which halves the rate of appends. It sends at once, then at most
// once in a period. A lost notification costs a reader one poll.
type notifier struct {
	pool *pgxpool.Pool
	log  *slog.Logger
	wake chan struct{} // holds one
	quit chan struct{}
	once sync.Once // closes quit
	done chan struct{}

	mu      sync.Mutex
	pending map[notification]string // to the payload, so that a repeat replaces it
}

type notification struct {
	channel string
	key     string
}

func startNotifier(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) *notifier {
	n := &notifier{
		pool: pool, log: log,
		wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
		pending: map[notification]string{},
	}
	go n.run(context.WithoutCancel(ctx)) // it ends by stop, after the last send
	return n
}

func (n *notifier) sessions(ids []core.SessionID) {
	if len(ids) == 0 {
		return
	}
	n.mu.Lock()
	for _, id := range ids {
		n.pending[notification{channelSession, string(id)}] = string(id)
	}
	n.mu.Unlock()
	n.signal()
}

func (n *notifier) partial(session core.SessionID, message core.MessageID, length int) {
	n.mu.Lock()
	n.pending[notification{channelPartial, string(message)}] = string(session) + " " + string(message) + " " + strconv.Itoa(length)
	n.mu.Unlock()
	n.signal()
}

func (n *notifier) work() {
	n.mu.Lock()
	n.pending[notification{channelWork, ""}] = ""
	n.mu.Unlock()
	n.signal()
}

func (n *notifier) access(id core.InstallationID) {
	payload := strconv.FormatInt(int64(id), 10)
	n.mu.Lock()
	n.pending[notification{channelAccess, payload}] = payload
	n.mu.Unlock()
	n.signal()
}

func (n *notifier) signal() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

func (n *notifier) stop() {
	n.once.Do(func() { close(n.quit) })
	<-n.done
}

func (n *notifier) run(ctx context.Context) {
	defer close(n.done)
	pause := time.NewTicker(notifyPeriod)
	defer pause.Stop()
	for {
		select {
		case <-n.quit:
			n.send(ctx)
			return
		case <-n.wake:
		}
		n.send(ctx)
		pause.Reset(notifyPeriod)
		select {
		case <-n.quit:
		case <-pause.C:
		}
	}
}

func (n *notifier) send(ctx context.Context) {
	n.mu.Lock()
	pending := n.pending
	n.pending = map[notification]string{}
	n.mu.Unlock()
	if len(pending) == 0 {
		return
	}
	var channels, payloads []string
	for key, payload := range pending {
		channels = append(channels, key.channel)
		payloads = append(payloads, payload)
	}
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	if _, err := n.pool.Exec(ctx, `SELECT pg_notify(c, p) FROM unnest($1::text[], $2::text[]) AS n (c, p)`, channels, payloads); err != nil {
		n.log.WarnContext(ctx, "notify_failed", slog.Any("error", err), slog.Int("count", len(pending)))
	}
}
