package github_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github/githubtest"
)

func TestInstallations_SayWhatTheAccountHasNotGranted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	id := w.repo.InstallationID
	if err := w.server.SetInstallationPermissions(int64(id), map[string]string{"metadata": "read", "contents": "read"}); err != nil {
		t.Fatal(err)
	}
	want := []string{"contents:write", "pull_requests:write"}
	all, err := w.user().Installations(t.Context(), w.signIn(t, "octo-owner"))
	if err != nil || len(all.Installations) != 1 || !slices.Equal(all.Installations[0].Missing, want) || all.Installations[0].SettingsURL == "" {
		t.Errorf("by the person: %+v, %v", all, err)
	}
	one, err := w.app.Installation(t.Context(), id)
	if err != nil || !slices.Equal(one.Missing, want) || one.Account != "octo-org" || one.Suspended {
		t.Errorf("by the App: %+v, %v", one, err)
	}
	if err := w.server.SetSuspended(int64(id), true); err != nil {
		t.Fatal(err)
	}
	if one, err = w.app.Installation(t.Context(), id); err != nil || !one.Suspended {
		t.Errorf("suspended: %+v, %v", one, err)
	}
	if err := w.server.RemoveInstallation(int64(id)); err != nil {
		t.Fatal(err)
	}
	_, err = w.app.Installation(t.Context(), id)
	wantCode(t, err, core.NotFound, "not_found")
}

func TestInstallations_CountWhatSingleSignOnHides(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	u, token := w.user(), w.signIn(t, "octo-owner")
	for header, want := range map[string]int{
		"partial-results; organizations=21955855,20582480": 2, "partial-results; organizations=1": 1, "partial-results; organizations=": 0,
		"required; url=https://github.com/orgs/x/sso": 0, "": 0, "nonsense": 0,
	} {
		w.server.ClearFaults()
		w.server.Fail(githubtest.Fault{Pattern: "GET /api/v3/user/installations", Header: http.Header{"X-Github-Sso": {header}}})
		got, err := u.Installations(t.Context(), token)
		if err != nil || got.Hidden != want || len(got.Installations) != 1 {
			t.Errorf("%q: %d hidden of %+v, %v, want %d", header, got.Hidden, got, err, want)
		}
	}
}

func TestAppRepository_FollowsARenameAndLeavesNoToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	if err := w.server.RenameRepository("octo-org/widgets", "gears"); err != nil {
		t.Fatal(err)
	}
	got, err := w.app.Repository(t.Context(), w.repo)
	if err != nil || got.Name != "gears" || got.ID != w.repo.ID || got.InstallationID != w.repo.InstallationID || got.CanPull || got.CanPush {
		t.Errorf("Repository = %+v, %v", got, err)
	}
	requests := w.server.Requests()
	if last := requests[len(requests)-1]; last != "DELETE /api/v3/installation/token" {
		t.Errorf("the last request is %s, want the end of the token", last)
	}
}

func TestDisconnect_EndsBothTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	u, token := w.user(), w.signIn(t, "octo-owner")
	other := w.signIn(t, "octo-reader")
	if err := u.Disconnect(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	_, err := u.Person(t.Context(), token)
	wantCode(t, err, core.Unauthenticated, "reauth_required")
	_, err = u.Refresh(t.Context(), token)
	wantCode(t, err, core.Unauthenticated, "reauth_required")
	if _, err := u.Person(t.Context(), other); err != nil {
		t.Errorf("somebody else: %v", err)
	}
	if err := u.Disconnect(t.Context(), token); err != nil {
		t.Errorf("once more: %v", err)
	}
	w.server.Fail(githubtest.Fault{Pattern: "DELETE /api/v3/applications/{client}/grant", Status: http.StatusBadGateway})
	wantCode(t, u.Disconnect(t.Context(), other), core.Unavailable, "github_unavailable")
}

func TestHookDeliveries_AreReadByCursorAndSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	status := http.StatusBadGateway
	var guids []string
	receiver := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		guids = append(guids, r.Header.Get("X-GitHub-Delivery"))
		rw.WriteHeader(status)
	}))
	defer receiver.Close()
	w.server.SetWebhook(receiver.URL, "a secret of the webhook")
	start := w.server.Now()
	const n = 130
	for range n {
		if _, err := w.server.Deliver(t.Context(), "ping", map[string]any{}); err != nil {
			t.Fatal(err)
		}
	}
	app := w.app
	all, err := app.HookDeliveries(t.Context(), start.Add(-time.Minute))
	if err != nil || len(all) != n || all[0].GUID != guids[n-1] || all[n-1].GUID != guids[0] || all[0].OK {
		t.Fatalf("%d attempts, %v", len(all), err)
	}
	status = http.StatusAccepted
	if err := app.Redeliver(t.Context(), all[3].ID); err != nil {
		t.Fatal(err)
	}
	if guids[n] != all[3].GUID {
		t.Errorf("%s was sent again, want %s", guids[n], all[3].GUID)
	}
	if all, err = app.HookDeliveries(t.Context(), start.Add(-time.Minute)); err != nil || len(all) != n+1 || !all[0].OK {
		t.Errorf("after it: %d attempts, %v", len(all), err)
	}
	if all, err = app.HookDeliveries(t.Context(), w.server.Now().Add(time.Hour)); err != nil || len(all) != 0 {
		t.Errorf("none is that new: %d, %v", len(all), err)
	}
	wantCode(t, app.Redeliver(t.Context(), 1), core.NotFound, "not_found")
}
