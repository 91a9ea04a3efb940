package github_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github"
	"agent-sandboxing/core/github/githubtest"
)

func TestLists_AreWhatThePersonReaches(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	other := w.addRepository(t, "gadgets", true)
	if err := w.server.SetPermission("octo-org/gadgets", "octo-reader", githubtest.NoPermission); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		login string
		want  map[core.RepositoryID]string
	}{
		{"octo-owner", map[core.RepositoryID]string{w.repo.ID: "pull push", other.ID: "pull push"}},
		{"octo-reader", map[core.RepositoryID]string{w.repo.ID: "pull"}},
	}
	for _, tt := range tests {
		t.Run(tt.login, func(t *testing.T) {
			u, token := w.user(), w.signIn(t, tt.login)
			ins, err := u.Installations(t.Context(), token)
			if err != nil || len(ins.Installations) != 1 || ins.Installations[0].ID != w.repo.InstallationID || ins.Installations[0].Account != "octo-org" || ins.Installations[0].AccountType != "Organization" || !ins.Installations[0].AllRepos {
				t.Fatalf("Installations = %+v, %v", ins, err)
			}
			repos, err := u.Repositories(t.Context(), token, ins.Installations[0].ID)
			if err != nil {
				t.Fatal(err)
			}
			got := map[core.RepositoryID]string{}
			for _, r := range repos {
				if r.InstallationID != w.repo.InstallationID {
					t.Errorf("%s is under installation %d", r.Name, r.InstallationID)
				}
				may := ""
				if r.CanPull {
					may = "pull"
				}
				if r.CanPush {
					may += " push"
				}
				got[r.ID] = may
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("repositories (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("stranger", func(t *testing.T) {
		u, token := w.user(), w.signIn(t, "octo-stranger")
		if ins, err := u.Installations(t.Context(), token); err != nil || len(ins.Installations) != 0 {
			t.Errorf("Installations = %+v, %v", ins, err)
		}
		_, err := u.Repositories(t.Context(), token, w.repo.InstallationID)
		wantCode(t, err, core.NotFound, "not_found")
		_, err = u.Repository(t.Context(), token, w.repo.ID)
		wantCode(t, err, core.NotFound, "not_found")
		_, err = u.Branch(t.Context(), token, w.repo, "main")
		wantCode(t, err, core.NotFound, "not_found")
	})
}

func TestRepositories_ReadsEveryPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	want := map[string]bool{"widgets": true}
	for i := range 130 {
		name := fmt.Sprintf("repo-%03d", i)
		w.addRepository(t, name, i%2 == 0)
		want[name] = true
	}
	repos, err := w.user().Repositories(t.Context(), w.signIn(t, "octo-reader"), w.repo.InstallationID)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, r := range repos {
		if got[r.Name] {
			t.Errorf("%s came twice", r.Name)
		}
		got[r.Name] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestRepositories_NextLinkIsNeverFollowedElsewhere(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header.Get("Authorization") }))
	defer elsewhere.Close()
	w := newWorld(t, githubtest.Options{})
	token := w.signIn(t, "octo-owner")
	w.server.Fail(githubtest.Fault{
		Pattern: "GET /api/v3/user/installations/{id}/repositories", Count: 1,
		Header: http.Header{"Link": {"<" + elsewhere.URL + `/x?page=2>; rel="next"`}},
	})
	w.server.Fail(githubtest.Fault{
		Pattern: "GET /api/v3/user", Status: http.StatusFound, Header: http.Header{"Location": {elsewhere.URL + "/user"}},
	})
	if _, err := w.user().Repositories(t.Context(), token, w.repo.InstallationID); err != nil {
		t.Error(err)
	}
	_, err := w.user().Person(t.Context(), token)
	wantCode(t, err, core.Unavailable, github.CodeUnavailable)
	select {
	case auth := <-asked:
		t.Errorf("another host was asked; a credential went there: %t", auth != "")
	default:
	}
}

func TestRepository_FollowsARenameAndRefusesAnotherID(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	u, token := w.user(), w.signIn(t, "octo-owner")
	if err := w.server.RenameRepository("octo-org/widgets", "gizmos"); err != nil {
		t.Fatal(err)
	}
	got, err := u.Repository(t.Context(), token, w.repo.ID)
	if err != nil || got.Name != "gizmos" || !got.CanPush || !got.Private || got.DefaultBranch != "main" || got.Language != "Go" {
		t.Errorf("Repository = %+v, %v", got, err)
	}
	// The old name still resolves: GitHub redirects to the address by id.
	if b, err := u.Branch(t.Context(), token, w.repo, "main"); err != nil || b.SHA != w.base {
		t.Errorf("Branch by the old name = %+v, %v", b, err)
	}
	w.server.Fail(githubtest.Fault{Pattern: "GET /api/v3/repositories/{id}", Status: 200, Body: `{"id":7,"name":"x","owner":{"login":"y"}}`})
	_, err = u.Repository(t.Context(), token, w.repo.ID)
	wantCode(t, err, core.Unavailable, github.CodeUnavailable)
}
