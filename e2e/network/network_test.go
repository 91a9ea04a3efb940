// Package network_test lets a program in a real sandbox out through the real proxy, in a real turn on a
// real database; only the internet is stood in for.
package network_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/live"
	"agent-sandboxing/core/network"
	"agent-sandboxing/core/redact"
	"agent-sandboxing/core/store"
	"agent-sandboxing/core/store/storetest"
	"agent-sandboxing/core/turn"
	"agent-sandboxing/sandbox"
	"agent-sandboxing/sandbox/docker/dockertest"
	"agent-sandboxing/sandbox/egress"
	"agent-sandboxing/sandbox/toolbox"
)

const (
	listed    = "registry.example.com"
	elsewhere = "telemetry.example.com"
)

// fetch prints the status and the body that a program gets, as every language's client would.
const fetch = `python3 -c '
import urllib.request, urllib.error
try:
    with urllib.request.urlopen("http://%s/left-pad", timeout=10) as r: print(r.status, r.read().decode())
except urllib.error.HTTPError as e: print(e.code, e.read().decode())
'`

// resolver knows every name of example.com, at an address that is public.
type resolver struct{}

func (resolver) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if strings.HasSuffix(strings.TrimSuffix(host, "."), ".example.com") {
		return []netip.Addr{netip.MustParseAddr("203.0.113.7")}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// boxes opens one container for each claim, let out through the proxy.
type boxes struct {
	t     *testing.T
	proxy *egress.Proxy
}

func (b boxes) Acquire(ctx context.Context, claim core.Claim) (core.PlatformWorkspace, error) {
	r := dockertest.New(b.t)
	ref, err := r.Create(ctx, sandbox.Spec{
		Session: claim.Session.ID, Sandbox: core.NewID[core.SandboxID](), Generation: 1,
		Limits: sandbox.Limits{MemoryBytes: 1 << 30, CPUs: 2, PIDs: 256},
	})
	if err != nil {
		return nil, err
	}
	client, err := sandbox.Launch(ctx, r, ref, toolbox.Options{})
	if err != nil {
		return nil, err
	}
	return client, client.ServeEgress(ctx, b.proxy.Session(claim.Session.ID))
}

func (boxes) Release(_ context.Context, _ core.Claim, ws core.PlatformWorkspace) {
	_ = ws.(*toolbox.Client).Close()
}

// agent runs what the test says instead of a model.
type agent func(ctx context.Context, req core.TurnRequest, ws core.Workspace, rec core.TurnRecorder) error

func (agent) Model() string { return "test-model" }

func (a agent) Run(ctx context.Context, req core.TurnRequest, ws core.Workspace, _ core.Publisher, rec core.TurnRecorder) (core.TurnResult, error) {
	return core.TurnResult{Answer: "Done."}, a(ctx, req, ws, rec)
}

func (agent) Compact(context.Context, core.CompactionRequest, core.Workspace, core.TurnRecorder) core.Compaction {
	return core.Compaction{}
}

// nothing is the mirror and the publisher of a turn that changes nothing.
type nothing struct{}

func (nothing) Capture(context.Context, core.ChatSession, core.PlatformWorkspace) (core.Diff, error) {
	return core.Diff{}, nil
}

func (nothing) ReadBase(context.Context, core.ChatSession, string, int64) ([]byte, error) {
	return nil, nil
}

func (nothing) Publish(context.Context, core.Claim, core.Publication, core.PlatformWorkspace) (core.PublishResult, error) {
	return core.PublishResult{}, nil
}

func (nothing) Fail(context.Context, core.Claim, core.Publication, error) error { return nil }

// internet is a server that stands for every host.
func internet(t *testing.T) func(context.Context, netip.AddrPort) (net.Conn, error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "left-pad of %s", r.Host)
	}))
	t.Cleanup(server.Close)
	return func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		if to != netip.MustParseAddrPort("203.0.113.7:80") {
			return nil, fmt.Errorf("dialled %s", to)
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
	}
}

// session makes one of the mode allowlist, whose first message waits.
func session(t *testing.T, s *store.Store) core.ChatSession {
	t.Helper()
	owner := storetest.User(t, s)
	created, err := s.CreateSession(t.Context(), core.NewSession{
		Session: core.ChatSession{
			OwnerID: owner.ID, Repository: storetest.Repository(), BaseBranch: "main", BaseSHA: storetest.BaseSHA,
			Title: "Install", BashPolicy: core.PolicySeed, EgressMode: core.EgressAllowlist,
		},
		Text: "Install left-pad",
	})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func TestEgress_FromARefusedHostToItsPageAndToItsPermission(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	chat := session(t, s)
	owner, err := s.User(t.Context(), chat.OwnerID)
	if err != nil {
		t.Fatal(err)
	}
	reached := network.New(network.Options{Store: s, Ceiling: core.EgressOpen, Log: slog.New(slog.DiscardHandler)})
	proxy, err := egress.New(egress.Options{Policies: reached, Recorder: reached, Resolver: resolver{}, Dial: internet(t)})
	if err != nil {
		t.Fatal(err)
	}
	work := func(ctx context.Context, req core.TurnRequest, ws core.Workspace, rec core.TurnRecorder) error {
		if n := req.Workspace.Network; n.Mode != core.EgressAllowlist || len(n.Hosts) != 0 {
			t.Errorf("the agent is told %+v", n)
		}
		run := func(host string) (string, []core.EgressRefusal) {
			result, err := ws.Run(ctx, core.Command{Shell: fmt.Sprintf(fetch, host), Timeout: time.Minute})
			if err != nil {
				t.Error(err)
			}
			return string(result.Head) + string(result.Tail), result.Refused
		}
		out, refused := run(listed)
		if !strings.HasPrefix(out, "403 ") || !strings.Contains(out, core.EgressNotListed) {
			t.Errorf("a program that is refused sees %q", out)
		}
		if len(refused) != 1 || refused[0] != (core.EgressRefusal{Host: listed, Port: 80, Rule: core.EgressNotListed}) {
			t.Errorf("the command's refusals: %+v", refused)
		}
		if err := rec.ToolResult(ctx, core.AgentToolResult{CallID: "c1", Tool: "bash", Outcome: "ok"}, nil); err != nil {
			return err
		}
		if err := s.AddRepositoryHost(ctx, chat.Repository, listed, owner, chat.ID); err != nil {
			return err
		}
		for out, refused = run(listed); strings.HasPrefix(out, "403 ") && ctx.Err() == nil; out, refused = run(listed) {
		}
		if out != "200 left-pad of "+listed+"\n" || len(refused) != 0 {
			t.Errorf("after the permission: %q, %+v", out, refused)
		}
		if out, _ := run(elsewhere); !strings.HasPrefix(out, "403 ") {
			t.Errorf("another host: %q", out)
		}
		return nil
	}
	serve(t, s, turn.Options{Sandboxes: boxes{t, proxy}, Agent: agent(work), Network: reached})

	events := finished(t, s, chat.ID)
	at := map[core.EventType]int64{}
	refusals := 0
	for _, e := range events {
		if _, seen := at[e.Type]; !seen {
			at[e.Type] = e.Sequence
		}
		if e.Type == "egress_refused" {
			refusals++
		}
	}
	if refusals != 2 || at["egress_refused"] > at["agent_tool_result"] || at["egress_host_allowed"] == 0 || at["message_completed"] == 0 {
		t.Errorf("%d refusals, in the log at %v", refusals, at)
	}
	// What the page shows when the turn has ended is whole.
	tl, err := s.Timeline(t.Context(), chat.ID, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]core.EgressRow{}
	for _, r := range tl.Egress.Rows {
		rows[fmt.Sprint(r.Host, " ", r.Rule)] = r
	}
	allowed := rows[listed+" host_listed"]
	if tl.Egress.Contacted != 1 || tl.Egress.Refused != 2 || !allowed.Allowed || allowed.Connections != 1 || allowed.Received == 0 || allowed.Sent == 0 || allowed.MessageID != tl.Messages[0].ID {
		t.Errorf("recorded: %+v", tl.Egress)
	}
	if rows[listed+" "+core.EgressNotListed].Connections == 0 || rows[elsewhere+" "+core.EgressNotListed].Connections != 1 {
		t.Errorf("the refusals: %+v", rows)
	}
}

// serve runs a worker until the test ends.
func serve(t *testing.T, s *store.Store, o turn.Options) {
	t.Helper()
	worker := storetest.Worker(t, s, "host-1")
	o.Store, o.Mirror, o.Publisher, o.Signals = s, nothing{}, nothing{}, live.NewHub(s)
	o.Redactor, o.Worker, o.Log = redact.New(), func() core.Worker { return worker }, slog.New(slog.DiscardHandler)
	p := turn.NewProcessor(o)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := p.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
}

// finished waits for the turn's end and returns the log.
func finished(t *testing.T, s *store.Store, id core.SessionID) []core.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for {
		events, err := s.EventsSince(ctx, id, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Type == "message_completed" {
				return events
			}
			if e.Type == "message_failed" {
				t.Fatalf("the turn failed: %s", e.Payload)
			}
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the turn did not end: %+v", events)
		case <-poll.C:
		}
	}
}
