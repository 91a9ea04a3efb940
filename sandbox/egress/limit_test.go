package egress_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"agent-sandboxing/sandbox/egress"
)

// A worker that carries all that it can has better things to do than to read policies.
func TestConnect_AFullWorkerAsksNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.SetMaxOpen(0)
	_, done := w.connect(t, site, 443)
	<-done
	if r := w.record(t); r.Allowed || r.Rule != string(egress.TooManyConnections) || w.reads != 0 {
		t.Errorf("%+v, the policy was read %d times", r, w.reads)
	}
}

// What a session may move counts everything that is on record and everything since, and ends what is
// under way; afterwards nothing is let out, and programs are told why.
func TestConnect_EndsAtTheBudget(t *testing.T) {
	t.Parallel()
	const most = 1 << 20
	w := newWorldOf(t, egress.Options{MaxBytes: most})
	w.policy.Moved = most / 2
	w.serve(t, publicAddr+":80", func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(make([]byte, 2*most)) })
	client := w.client(t, nil)
	answer, err := client.Get("http://" + site + "/")
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	if err == nil || got < most/4 || got > most/2+2*64<<10 {
		t.Errorf("%d bytes came, %v", got, err)
	}
	w.policy.Moved += got // as the record says meanwhile: not to be counted twice
	answer, err = client.Get("http://" + site + "/")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || answer.StatusCode != http.StatusForbidden || !bytes.Contains(body, []byte(egress.TrafficSpent)) {
		t.Errorf("%s: %s, %v", answer.Status, body, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.records {
		if r.Allowed || r.Rule != string(egress.TrafficSpent) {
			t.Errorf("%+v", r)
		}
	}
	if first := w.records[0]; len(w.records) < 2 || first.Received < most/4 {
		t.Errorf("recorded %+v", w.records)
	}
}

func TestConnect_BelowTheBudgetNothingIsCut(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, egress.Options{MaxBytes: 1 << 20})
	w.serve(t, publicAddr+":80", func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(make([]byte, 100_000)) })
	client := w.client(t, nil)
	for i := range 8 {
		w.mu.Lock()
		w.policy.Moved = int64(i) * 100_000 // what is counted already comes on record
		w.mu.Unlock()
		answer, err := client.Get("http://" + site + "/")
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		if got != 100_000 || err != nil {
			t.Errorf("request %d: %d bytes, %v", i, got, err)
		}
	}
}
