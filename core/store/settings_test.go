package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
	"agent-sandboxing/core/store/storetest"
)

func TestRepositoryPolicy_IsKeptAndTakenBack(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	admin := storetest.User(t, s)
	repo := storetest.Repository()
	if p, err := s.RepositoryPolicy(t.Context(), repo.ID); p != "" || err != nil {
		t.Errorf("before: %q, %v", p, err)
	}
	if _, err := s.Repository(t.Context(), repo.ID); core.KindOf(err) != core.NotFound {
		t.Errorf("a repository that nothing knows: %v", err)
	}
	for _, want := range []core.BashPolicy{core.PolicyReadonly, core.PolicyBuild, ""} {
		must(t, s.SetRepositoryPolicy(t.Context(), repo, want, admin.ID))
		if p, err := s.RepositoryPolicy(t.Context(), repo.ID); p != want || err != nil {
			t.Errorf("got %q, %v, want %q", p, err, want)
		}
	}
	known, err := s.Repository(t.Context(), repo.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(repo.FullName(), known.FullName()); diff != "" || known.InstallationID != repo.InstallationID {
		t.Errorf("-want +got\n%s", diff)
	}
	if err := s.SetRepositoryPolicy(t.Context(), repo, "yolo", admin.ID); err == nil {
		t.Error("an unknown policy was kept")
	}
	if err := s.SetRepositoryPolicy(t.Context(), repo, core.PolicySeed, core.NewID[core.UserID]()); err == nil {
		t.Error("the choice of nobody was kept")
	}
	if p, err := s.RepositoryPolicy(t.Context(), repo.ID); p != "" || err != nil {
		t.Errorf("after refusals: %q, %v", p, err)
	}
}
