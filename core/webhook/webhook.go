// Package webhook takes what GitHub delivers and brings our records up to date with it. A delivery is
// only a hint, may come late, twice, out of order or not at all: Receiver marks what it is about as
// stale, and Reader, in a worker, asks GitHub how things are now. Sweeper asks for what got lost.
package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"agent-sandboxing/core"
)

// MaxBody bounds a delivery, in bytes: GitHub sends none that is larger.
const MaxBody = 25 << 20

// Log is where deliveries are recorded.
type Log interface {
	// RecordDelivery notes a delivery and what it makes stale; false says that it was here before.
	RecordDelivery(ctx context.Context, d core.Delivery) (fresh bool, err error)
}

// Receiver takes deliveries.
type Receiver struct {
	secret string
	log    Log
	logger *slog.Logger
	bodies chan struct{} // holds one for each body in memory
}

// maxBodies bounds how much memory strangers can make us use: a body is read before its signature is known.
const maxBodies = 4

// NewReceiver returns nil, which takes nothing, without a secret.
func NewReceiver(secret string, log Log, logger *slog.Logger) *Receiver {
	if secret == "" {
		return nil
	}
	return &Receiver{secret: secret, log: log, logger: logger, bodies: make(chan struct{}, maxBodies)}
}

// Request is one call of the webhook's address.
type Request struct {
	GUID      string // X-GitHub-Delivery
	Event     string // X-GitHub-Event
	Signature string // X-Hub-Signature-256
	Body      io.Reader
}

// Receive checks a delivery, records it and marks what it is about; false says that it was here before.
// NotFound when webhooks are off, Forbidden webhook_signature_wrong, BadRequest webhook_unreadable,
// Unavailable webhook_busy: GitHub is asked for those that were turned away later.
func (r *Receiver) Receive(ctx context.Context, q Request) (fresh bool, err error) {
	if r == nil {
		return false, core.NotFoundError()
	}
	sum, ok := signature(q.Signature)
	if !ok {
		return false, wrongSignature()
	}
	select {
	case r.bodies <- struct{}{}:
		defer func() { <-r.bodies }()
	default:
		return false, core.Fail(core.Unavailable, "webhook_busy", "Other deliveries are being read. This one is asked for again.")
	}
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return false, fmt.Errorf("read a delivery: %w", err)
	}
	if !hmac.Equal(sum, Sum(r.secret, body)) {
		return false, wrongSignature()
	}
	delivery, err := read(q, body)
	if err != nil {
		return false, core.Fail(core.BadRequest, "webhook_unreadable", "The delivery could not be read.").Because(err)
	}
	fresh, err = r.log.RecordDelivery(ctx, delivery)
	if err != nil {
		return false, err
	}
	r.logger.LogAttrs(ctx, slog.LevelInfo, "webhook_delivery", slog.String("guid", delivery.GUID), slog.String("event", delivery.Event),
		slog.String("action", delivery.Action), slog.Bool("fresh", fresh), slog.String("stale", string(delivery.Stale)))
	return fresh, nil
}

// signature reads the header. The older one of SHA-1 is not looked at.
func signature(header string) (sum []byte, ok bool) {
	given, ok := strings.CutPrefix(header, "sha256=")
	sum, err := hex.DecodeString(given)
	return sum, ok && err == nil && len(sum) == sha256.Size
}

func wrongSignature() error {
	return core.Fail(core.Forbidden, "webhook_signature_wrong", "The delivery is not signed with this server's webhook secret.")
}

// Sum is the HMAC that a delivery with this body is signed with.
func Sum(secret string, body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return mac.Sum(nil)
}
