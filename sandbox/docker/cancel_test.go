package docker_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"path/filepath"
	"strings"
	"testing"

	"agent-sandboxing/sandbox"
	"agent-sandboxing/sandbox/docker/dockertest"
)

// A worker that is told to stop while it fills the toolbox volume leaves no container that others would
// have to wait for: the daemon finishes what it was asked for, whoever has gone away.
func TestCreate_ACancelLeavesNobodysContainer(t *testing.T) {
	t.Parallel()
	config := dockertest.Config(t)
	t.Cleanup(func() {
		dockertest.Docker(t, "volume", "rm", dockertest.Docker(t, "volume", "ls", "-q", "--filter", "name="+config.Instance+"-"))
	})
	ctx, cancel := context.WithCancel(t.Context())
	config.Host = before(t, config.Host, func(answered *http.Request) {
		if strings.Contains(answered.URL.RawQuery, "name=fill-") {
			cancel()
		}
	})
	r := dockertest.Open(t, config)
	r.NameToolboxVolumes(config.Instance + "-") // the usual one is filled already
	if _, err := r.Create(ctx, spec()); !errors.Is(err, context.Canceled) {
		t.Fatalf("Create: %v, want the cancel", err)
	}
	if left := dockertest.Docker(t, "ps", "-aq", "--filter", "name=fill-"+config.Instance); left != "" {
		t.Errorf("after the cancel this is left: %s", left)
	}
}

// before is a daemon's address at which each answer waits until look has seen its request.
func before(t *testing.T, host string, look func(answered *http.Request)) string {
	t.Helper()
	proxy := toDaemon(host)
	proxy.ModifyResponse = func(answer *http.Response) error {
		look(answer.Request)
		return nil
	}
	return onSocket(t, proxy)
}

// toDaemon passes everything on to a daemon.
func toDaemon(host string) *httputil.ReverseProxy {
	daemon := strings.TrimPrefix(cmp.Or(host, "unix:///var/run/docker.sock"), "unix://")
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "docker" },
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", daemon)
		}},
	}
}

// onSocket is the address of a daemon that is played by handler.
func onSocket(t *testing.T, handler http.Handler) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "docker.sock")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l) // until it is closed
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	return "unix://" + socket
}

// Two workers that begin at once on a host with quotas try the same volume. The other one has removed it
// here, before this one could.
func TestCapabilities_AreFoundWhileAnotherWorkerLooksForThem(t *testing.T) {
	t.Parallel()
	config := dockertest.Config(t)
	daemon := toDaemon(config.Host)
	config.Host = onSocket(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/volumes/create") {
			daemon.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "{}") // whose reader may be gone
	}))
	offers, err := dockertest.Open(t, config).Capabilities(t.Context())
	if err != nil || offers.DiskBudget != sandbox.BudgetQuota {
		t.Errorf("Capabilities = %+v, %v, want a quota", offers, err)
	}
}
