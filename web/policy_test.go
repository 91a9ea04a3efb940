package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
)

// policy is the answer about one repository.
type policy struct{ Ceiling, Chosen, Effective string }

func (a answer) policy() policy {
	a.t.Helper()
	var p policy
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		a.t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	return p
}

func (r *rig) policyPath() string {
	return fmt.Sprintf("/admin/installations/%d/repositories/%d/policy", r.installation, r.repository)
}

func TestRepositoryPolicy_IsStricterAndFrozenOnTheSession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b, a := r.signedIn(t, owner), r.signedIn(t, admin)
	before := b.create("Under the operator's policy")

	set := func(p string) answer {
		return a.json(http.MethodPost, r.policyPath(), map[string]string{"bash_policy": p})
	}
	if diff := cmp.Diff(policy{Ceiling: "seed", Effective: "seed"}, a.json(http.MethodGet, r.policyPath(), nil).policy()); diff != "" {
		t.Errorf("at first, -want +got\n%s", diff)
	}
	strict := policy{Ceiling: "seed", Chosen: "readonly", Effective: "readonly"}
	if diff := cmp.Diff(strict, set("readonly").policy()); diff != "" {
		t.Errorf("set, -want +got\n%s", diff)
	}
	if form := b.get(r.chosenPath()); !strings.Contains(form.html().Text(), "shell policy readonly") && !strings.Contains(form.html().Text(), "Shell policy readonly") {
		t.Error("the form does not say under which policy the session will be")
	}
	after := b.create("Under the stricter policy")
	for code, p := range map[string]string{"policy_above_ceiling": "build", "policy_unknown": "yolo"} {
		if got := set(p); got.status != http.StatusUnprocessableEntity || got.code() != code {
			t.Errorf("%s: %d %s, want %s", p, got.status, got.body, code)
		}
	}
	if diff := cmp.Diff(strict, a.json(http.MethodGet, r.policyPath(), nil).policy()); diff != "" {
		t.Errorf("after refusals, -want +got\n%s", diff)
	}
	if diff := cmp.Diff(policy{Ceiling: "seed", Effective: "seed"}, set("").policy()); diff != "" {
		t.Errorf("taken back, -want +got\n%s", diff)
	}
	for id, want := range map[core.SessionID]core.BashPolicy{before: core.PolicySeed, after: core.PolicyReadonly} {
		session, err := r.store.Session(t.Context(), id)
		if err != nil || session.BashPolicy != want {
			t.Errorf("%s has %q, %v, want %q", session.Title, session.BashPolicy, err, want)
		}
	}
}

func TestRepositoryPolicy_IsForAdministrators(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.signedIn(t, admin)
	if got := a.json(http.MethodPost, r.policyPath(), map[string]string{"bash_policy": "readonly"}); got.status != http.StatusNotFound {
		t.Errorf("a repository that the administrator does not see and nobody has used: %d, want 404", got.status)
	}
	r.signedIn(t, owner).create("Now it is known")
	for _, login := range []string{owner, colleague, outsider} {
		b := r.signedIn(t, login)
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if got := b.json(method, r.policyPath(), map[string]string{"bash_policy": "readonly"}); got.status != http.StatusNotFound {
				t.Errorf("%s %s: %d, want 404", login, method, got.status)
			}
		}
	}
	if got := a.json(http.MethodGet, fmt.Sprintf("/admin/installations/%d/repositories/%d/policy", r.installation+1, r.repository), nil); got.status != http.StatusNotFound {
		t.Errorf("under another installation: %d, want 404", got.status)
	}
	if p := a.json(http.MethodGet, r.policyPath(), nil).policy(); p.Chosen != "" {
		t.Errorf("somebody else's choice was kept: %+v", p)
	}
}
