package githubtest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// hookTimeout is how long a receiver may take, as GitHub's.
const hookTimeout = 10 * time.Second

// attempt is one try to deliver.
type attempt struct {
	id            int64
	guid          string
	event, action string
	again         bool
	status        int // of the answer, 0 for none
	at            time.Time
	body          []byte
}

// hook is the App's webhook.
type hook struct {
	url, secret string
	attempts    []attempt // newest last
}

// SetWebhook makes the stand-in deliver to an address what Deliver is told; "" ends that.
func (s *Server) SetWebhook(url, secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook.url, s.hook.secret = url, secret
}

// Deliver sends a signed delivery, as GitHub does when something happened, and returns the receiver's
// status: 0 when there was no answer. It is not tried again by itself.
func (s *Server) Deliver(ctx context.Context, event string, payload map[string]any) (int, error) {
	body, err := json.Marshal(payload)
	if err != nil {
		return 0, err
	}
	action, _ := payload["action"].(string)
	guid := fmt.Sprintf("%s-%s", randomText(8), randomText(4))
	return s.attempt(ctx, attempt{guid: guid, event: event, action: action, body: body})
}

func (s *Server) attempt(ctx context.Context, a attempt) (int, error) {
	s.mu.Lock()
	to := s.hook
	a.id, a.at = s.nextID(), s.now()
	s.mu.Unlock()
	if to.url == "" {
		return 0, nil
	}
	mac := hmac.New(sha256.New, []byte(to.secret))
	mac.Write(a.body)
	a.status = send(ctx, to.url, a, "sha256="+hex.EncodeToString(mac.Sum(nil)))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook.attempts = append(s.hook.attempts, a)
	return a.status, s.save()
}

func send(ctx context.Context, url string, a attempt, signature string) int {
	ctx, cancel := context.WithTimeout(ctx, hookTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(a.body))
	if err != nil {
		return 0
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "GitHub-Hookshot/standin", "Accept": "*/*",
		"X-GitHub-Delivery": a.guid, "X-GitHub-Event": a.event, "X-Hub-Signature-256": signature,
	} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close() // nothing of it is read
	return resp.StatusCode
}

// listDeliveries pages by cursor: the id of the first attempt of the next page.
func (s *Server) listDeliveries(w http.ResponseWriter, r *http.Request, _ caller) error {
	s.mu.Lock()
	all := slices.Clone(s.hook.attempts)
	s.mu.Unlock()
	slices.Reverse(all)
	size := boundedInt(r.URL.Query().Get("per_page"), 30, 100)
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		from := slices.IndexFunc(all, func(a attempt) bool { return strconv.FormatInt(a.id, 10) == cursor })
		all = all[max(from, 0):]
	}
	if len(all) > size {
		w.Header().Set("Link", fmt.Sprintf(`<%s%s?per_page=%d&cursor=%d>; rel="next"`, origin(r), r.URL.Path, size, all[size].id))
		all = all[:size]
	}
	list := []object{}
	for _, a := range all {
		status, code := "OK", a.status
		if code < 200 || code > 299 {
			status = "Invalid HTTP Response: " + strconv.Itoa(code)
		}
		list = append(list, object{
			"id": a.id, "guid": a.guid, "delivered_at": a.at.UTC().Format(time.RFC3339), "redelivery": a.again, "duration": 0.1,
			"status": status, "status_code": code, "event": a.event, "action": nullable(a.action), "installation_id": nil, "repository_id": nil,
			"throttled_at": nil,
		})
	}
	return reply(w, http.StatusOK, list)
}

// redeliver sends a delivery once more, with its guid.
func (s *Server) redeliver(w http.ResponseWriter, r *http.Request, _ caller) error {
	s.mu.Lock()
	i := slices.IndexFunc(s.hook.attempts, func(a attempt) bool { return strconv.FormatInt(a.id, 10) == r.PathValue("id") })
	var again attempt
	if i >= 0 {
		again = s.hook.attempts[i]
	}
	s.mu.Unlock()
	if i < 0 {
		return notFound()
	}
	again.again = true
	if _, err := s.attempt(r.Context(), again); err != nil {
		return err
	}
	return reply(w, http.StatusAccepted, object{})
}
