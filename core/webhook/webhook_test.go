package webhook_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"agent-sandboxing/core"
	"agent-sandboxing/core/webhook"
)

const secret = "the secret of the webhook"

// log keeps what was recorded.
type log struct{ got []core.Delivery }

func (l *log) RecordDelivery(_ context.Context, d core.Delivery) (bool, error) {
	for _, have := range l.got {
		if have.GUID == d.GUID {
			return false, nil
		}
	}
	l.got = append(l.got, d)
	return true, nil
}

func sign(body []byte) string { return "sha256=" + hex.EncodeToString(webhook.Sum(secret, body)) }

func TestReceive_RefusesWhatIsNotSigned(t *testing.T) {
	t.Parallel()
	body := []byte(`{"action":"deleted","installation":{"id":7}}`)
	var kept log
	r := webhook.NewReceiver(secret, &kept, slog.New(slog.DiscardHandler))
	for name, signature := range map[string]string{
		"none": "", "of another secret": "sha256=" + hex.EncodeToString(webhook.Sum("other", body)), "of another body": sign([]byte(`{}`)),
		"of the older kind": "sha1=" + hex.EncodeToString(webhook.Sum(secret, body))[:40], "without its kind": hex.EncodeToString(webhook.Sum(secret, body)),
		"cut": sign(body)[:20], "no hex": "sha256=zz", "empty": "sha256=",
	} {
		_, err := r.Receive(t.Context(), webhook.Request{GUID: "1", Event: "installation", Signature: signature, Body: bytes.NewReader(body)})
		if core.CodeOf(err) != "webhook_signature_wrong" || core.KindOf(err) != core.Forbidden {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(kept.got) != 0 {
		t.Errorf("recorded: %+v", kept.got)
	}
	if _, err := webhook.NewReceiver("", &kept, nil).Receive(t.Context(), webhook.Request{Signature: sign(body), Body: bytes.NewReader(body)}); core.KindOf(err) != core.NotFound {
		t.Errorf("without a secret: %v, want that there is nothing", err)
	}
	fresh, err := r.Receive(t.Context(), webhook.Request{GUID: "1", Event: "installation", Signature: sign(body), Body: bytes.NewReader(body)})
	if err != nil || !fresh {
		t.Errorf("signed: fresh %v, %v", fresh, err)
	}
}

func TestReceive_RefusesWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, q := range map[string]struct{ guid, event, body string }{
		"no id": {"", "ping", `{}`}, "no event": {"1", "", `{}`}, "no JSON": {"1", "ping", `payload=%7B%7D`}, "nothing": {"1", "ping", ""},
		"a long id": {strings.Repeat("x", 101), "ping", `{}`}, "a list": {"1", "ping", `[]`},
		"a long action": {"1", "ping", `{"action":"` + strings.Repeat("x", 101) + `"}`}, "a control character": {"1\n2", "ping", `{}`},
	} {
		var kept log
		r := webhook.NewReceiver(secret, &kept, slog.New(slog.DiscardHandler))
		_, err := r.Receive(t.Context(), webhook.Request{GUID: q.guid, Event: q.event, Signature: sign([]byte(q.body)), Body: strings.NewReader(q.body)})
		if core.CodeOf(err) != "webhook_unreadable" || len(kept.got) != 0 {
			t.Errorf("%s: %v, recorded %+v", name, err, kept.got)
		}
	}
}

// Strangers cannot fill the memory: what is not even signed in form is not read, and few bodies are
// read at a time.
func TestReceive_ReadsFewBodiesAtATime(t *testing.T) {
	t.Parallel()
	var kept log
	r := webhook.NewReceiver(secret, &kept, slog.New(slog.DiscardHandler))
	if _, err := r.Receive(t.Context(), webhook.Request{GUID: "1", Event: "ping", Body: iotest.ErrReader(errors.New("it was read"))}); core.CodeOf(err) != "webhook_signature_wrong" {
		t.Errorf("without a signature: %v", err)
	}
	var slow sync.WaitGroup
	var writers []*io.PipeWriter
	for range 4 {
		body, w := io.Pipe()
		writers = append(writers, w)
		slow.Go(func() {
			if _, err := r.Receive(t.Context(), webhook.Request{GUID: "1", Event: "ping", Signature: sign(nil), Body: body}); core.CodeOf(err) != "webhook_signature_wrong" {
				t.Errorf("a slow one: %v", err)
			}
		})
		if _, err := w.Write([]byte("x")); err != nil { // returns when it is being read
			t.Fatal(err)
		}
	}
	ping := []byte(`{}`)
	one := webhook.Request{GUID: "2", Event: "ping", Signature: sign(ping), Body: bytes.NewReader(ping)}
	if _, err := r.Receive(t.Context(), one); core.CodeOf(err) != "webhook_busy" || core.KindOf(err) != core.Unavailable {
		t.Errorf("the fifth: %v", err)
	}
	for _, w := range writers {
		_ = w.Close() // a pipe's writer does not fail
	}
	slow.Wait()
	if fresh, err := r.Receive(t.Context(), one); err != nil || !fresh {
		t.Errorf("after them: %v, %v", fresh, err)
	}
}

const session = core.SessionID("0192f3a1-0000-7000-8000-00000000000a")

// The table of events and what each makes stale.
func TestReceive_KnowsWhatIsStale(t *testing.T) {
	t.Parallel()
	pull := func(action, ref string, head int) string {
		return fmt.Sprintf(`{"action":%q,"installation":{"id":7},"repository":{"id":9},"pull_request":{"head":{"ref":%q,"repo":{"id":%d}}}}`, action, ref, head)
	}
	install := func(action string) string { return fmt.Sprintf(`{"action":%q,"installation":{"id":7}}`, action) }
	repo := func(action string) string {
		return fmt.Sprintf(`{"action":%q,"installation":{"id":7},"repository":{"id":9}}`, action)
	}
	branch := "agent/" + string(session)
	for _, tt := range []struct {
		event, body string
		want        core.Stale
	}{
		{"installation", install("created"), core.StaleInstallation},
		{"installation", install("deleted"), core.StaleInstallation},
		{"installation", install("suspend"), core.StaleInstallation},
		{"installation", install("unsuspend"), core.StaleInstallation},
		{"installation", install("new_permissions_accepted"), core.StaleInstallation},
		{"installation_repositories", install("added"), core.StaleInstallation},
		{"installation_repositories", install("removed"), core.StaleInstallation},
		{"installation_target", install("renamed"), core.StaleAccount},
		{"github_app_authorization", `{"action":"revoked","sender":{"id":5}}`, core.StalePerson},
		{"github_app_authorization", `{"action":"granted","sender":{"id":5}}`, core.StaleNothing},
		{"github_app_authorization", `{"action":"revoked"}`, core.StaleNothing},
		{"repository", repo("renamed"), core.StaleRepository},
		{"repository", repo("transferred"), core.StaleRepository},
		{"repository", repo("archived"), core.StaleRepository},
		{"repository", repo("deleted"), core.StaleRepository},
		{"repository", repo("privatized"), core.StaleRepository},
		{"repository", repo("edited"), core.StaleNothing},
		{"pull_request", pull("closed", branch, 9), core.StalePullRequest},
		{"pull_request", pull("synchronize", branch, 9), core.StalePullRequest},
		{"pull_request", pull("opened", branch, 10), core.StaleNothing},
		{"pull_request", pull("opened", "feature", 9), core.StaleNothing},
		{"pull_request", pull("opened", "agent/other", 9), core.StaleNothing},
		{"pull_request", `{"action":"closed","repository":{"id":9},"pull_request":{"head":{"ref":"` + branch + `","repo":null}}}`, core.StaleNothing},
		{"push", `{"ref":"refs/heads/` + branch + `","deleted":true,"repository":{"id":9}}`, core.StalePullRequest},
		{"push", `{"ref":"refs/heads/main","repository":{"id":9}}`, core.StaleNothing},
		{"push", `{"ref":"refs/tags/` + branch + `","repository":{"id":9}}`, core.StaleNothing},
		{"ping", `{}`, core.StaleNothing},
		{"event_of_the_future", `{"action":"whatever"}`, core.StaleNothing},
	} {
		var kept log
		body := []byte(tt.body)
		_, err := webhook.NewReceiver(secret, &kept, slog.New(slog.DiscardHandler)).Receive(t.Context(), webhook.Request{GUID: "1", Event: tt.event, Signature: sign(body), Body: bytes.NewReader(body)})
		if err != nil || len(kept.got) != 1 {
			t.Errorf("%s %s: %v", tt.event, tt.body, err)
			continue
		}
		got := kept.got[0]
		if got.Stale != tt.want || (got.Session == session) != (tt.want == core.StalePullRequest) || (got.Person == 5) != (tt.want == core.StalePerson) {
			t.Errorf("%s %s: %+v, want %q", tt.event, tt.body, got, tt.want)
		}
	}
}

// What GitHub itself once delivered is read, every kind of it, and those of ours with the right ids.
func TestReceive_ReadsWhatGitHubDelivered(t *testing.T) {
	t.Parallel()
	folder := os.Getenv("TEST_OCTOKIT")
	if folder == "" {
		t.Fatal("set TEST_OCTOKIT to what scripts/npm-folder core/github/testdata/octokit prints")
	}
	text, err := os.ReadFile(filepath.Join(folder, "node_modules/@octokit/webhooks-examples/api.github.com/index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []struct {
		Name     string
		Examples []json.RawMessage
	}
	if err := json.Unmarshal(text, &kinds); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, kind := range kinds {
		for i, body := range kind.Examples {
			var kept log
			r := webhook.NewReceiver(secret, &kept, slog.New(slog.DiscardHandler))
			fresh, err := r.Receive(t.Context(), webhook.Request{GUID: "1", Event: kind.Name, Signature: sign(body), Body: bytes.NewReader(body)})
			if err != nil || !fresh {
				t.Errorf("%s %d: %v", kind.Name, i, err)
				continue
			}
			got := kept.got[0]
			count[string(got.Stale)]++
			switch kind.Name {
			case "installation", "installation_repositories":
				if got.Installation == 0 || got.Stale != core.StaleInstallation {
					t.Errorf("%s.%s: %+v", kind.Name, got.Action, got)
				}
			case "repository":
				if got.Repository == 0 || (got.Stale == core.StaleRepository) != (got.Action != "created" && got.Action != "edited") {
					t.Errorf("%s.%s: %+v", kind.Name, got.Action, got)
				}
			case "github_app_authorization":
				if got.Person == 0 || got.Stale != core.StalePerson {
					t.Errorf("%s.%s: %+v", kind.Name, got.Action, got)
				}
			default:
				if got.Stale != core.StaleNothing {
					t.Errorf("%s.%s makes stale: %+v", kind.Name, got.Action, got)
				}
			}
		}
	}
	for _, want := range []core.Stale{core.StaleInstallation, core.StaleRepository, core.StalePerson, core.StaleNothing} {
		if count[string(want)] == 0 {
			t.Errorf("no recorded delivery makes stale %q: %v", want, count)
		}
	}
}

// FuzzReceive: whatever a signed body holds, the receiver answers and marks only what it names.
func FuzzReceive(f *testing.F) {
	f.Add("installation", []byte(`{"action":"deleted","installation":{"id":7}}`))
	f.Add("push", []byte(`{"ref":"refs/heads/agent/`+string(session)+`","repository":{"id":9}}`))
	f.Add("pull_request", []byte(`{"pull_request":{"head":{"ref":"agent/../x","repo":{"id":0}}}}`))
	f.Add("repository", []byte(`{"action":"renamed","repository":null}`))
	f.Fuzz(func(t *testing.T, event string, body []byte) {
		var kept log
		r := webhook.NewReceiver(secret, &kept, slog.New(slog.DiscardHandler))
		_, err := r.Receive(t.Context(), webhook.Request{GUID: "1", Event: event, Signature: sign(body), Body: bytes.NewReader(body)})
		switch {
		case err != nil && (core.CodeOf(err) != "webhook_unreadable" || len(kept.got) != 0):
			t.Errorf("%v, recorded %+v", err, kept.got)
		case err == nil && len(kept.got) != 1:
			t.Errorf("recorded %+v", kept.got)
		}
		for _, d := range kept.got {
			if id, err := core.ParseID[core.SessionID](string(d.Session)); d.Stale == core.StalePullRequest && (err != nil || id != d.Session) {
				t.Errorf("a session of no id: %+v", d)
			}
		}
	})
}
