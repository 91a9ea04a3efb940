package store_test

import (
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/store"
	"agent-sandboxing/core/store/storetest"
)

// filled puts a ready member into the pool.
func filled(t *testing.T, s *store.Store, host, spec string) core.PoolMember {
	t.Helper()
	m := core.PoolMember{ID: core.NewID[core.SandboxID](), Host: host, Spec: spec}
	begun, err := s.BeginFill(t.Context(), m, 1000, time.Minute)
	if err != nil || !begun {
		t.Fatalf("BeginFill = %v, %v", begun, err)
	}
	m.RuntimeRef, m.Volume, m.Image = "ref-"+string(m.ID), "vol-"+string(m.ID), "sha256:1"
	if ready, err := s.EndFill(t.Context(), m); err != nil || !ready {
		t.Fatalf("EndFill = %v, %v", ready, err)
	}
	m.State = core.PoolReady
	return m
}

// claimMember claims for the lease's session as a worker on host-1 with spec v1 would.
func claimMember(t *testing.T, s *store.Store, lease core.Lease) (*core.Sandbox, error) {
	return s.ClaimMember(t.Context(), lease, "v1", core.Sandbox{
		SessionID: lease.SessionID, State: core.SandboxCreating, Host: "host-1", Generation: 1,
	}, func(box core.Sandbox) []core.Payload {
		return []core.Payload{core.SandboxChanged{State: box.State, SandboxID: box.ID}}
	})
}

// Of 50 sessions that race over two processes for 8 members, 8 get one each; of 8, none goes without.
func TestClaimMember_EachIsClaimedOnce(t *testing.T) {
	t.Parallel()
	for _, racers := range []int{50, 8} {
		t.Run(strconv.Itoa(racers), func(t *testing.T) {
			t.Parallel()
			raceForMembers(t, 8, racers)
		})
	}
}

func raceForMembers(t *testing.T, members, racers int) {
	url := storetest.NewURL(t)
	processes := []*store.Store{storetest.Open(t, url, storetest.Keys(t)), storetest.Open(t, url, storetest.Keys(t))}
	s := processes[0]
	for range members {
		filled(t, s, "host-1", "v1")
	}
	owner := storetest.User(t, s).ID
	claims := make([]core.Claim, racers)
	for i := range claims {
		storetest.Session(t, s, owner)
		claims[i] = storetest.Claim(t, s)
	}
	var mu sync.Mutex
	owners := map[core.SandboxID]core.SessionID{}
	var all sync.WaitGroup
	start := make(chan struct{})
	for i, claim := range claims {
		all.Go(func() {
			<-start
			box, err := claimMember(t, processes[i%2], claim.Lease)
			if err != nil {
				t.Error(err)
			}
			if box == nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if other, taken := owners[box.ID]; taken {
				t.Errorf("%s was given to %s and to %s", box.ID, other, claim.Session.ID)
			}
			owners[box.ID] = claim.Session.ID
			if row, err := s.LiveSandbox(t.Context(), claim.Session.ID); err != nil || row == nil || row.ID != box.ID || row.RuntimeRef != "ref-"+string(box.ID) || row.Volume == "" {
				t.Errorf("the session's row is %+v, %v", row, err)
			}
		})
	}
	close(start)
	all.Wait()
	if len(owners) != members {
		t.Errorf("%d of %d members were claimed", len(owners), members)
	}
	if left, err := s.PoolMembers(t.Context(), "host-1"); err != nil || len(left) != 0 {
		t.Errorf("left in the pool: %+v, %v", left, err)
	}
}

func TestClaimMember_OnlyWhatFits(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	filled(t, s, "host-2", "v1")
	filled(t, s, "host-1", "v2")
	gone := filled(t, s, "host-1", "v1")
	if mine, err := s.DiscardMember(t.Context(), gone.ID); !mine || err != nil {
		t.Fatalf("DiscardMember = %v, %v", mine, err)
	}
	half := core.PoolMember{ID: core.NewID[core.SandboxID](), Host: "host-1", Spec: "v1"}
	if begun, err := s.BeginFill(t.Context(), half, 10, time.Minute); !begun || err != nil {
		t.Fatalf("BeginFill = %v, %v", begun, err)
	}
	if box, err := claimMember(t, s, claim.Lease); box != nil || err != nil {
		t.Errorf("claimed %+v, %v", box, err)
	}
	want := filled(t, s, "host-1", "v1")
	foreign := claim.Lease
	foreign.Owner = "somebody else"
	if box, err := claimMember(t, s, foreign); box != nil || !errors.Is(err, core.ErrLeaseLost) {
		t.Errorf("without the lease: %+v, %v", box, err)
	}
	if box, err := claimMember(t, s, claim.Lease); err != nil || box == nil || box.ID != want.ID {
		t.Errorf("claimed %+v, %v, want %s", box, err, want.ID)
	}
	wantTypes(t, s, claim.Session.ID, "sandbox_creating")
	if mine, err := s.DiscardMember(t.Context(), want.ID); mine || err != nil {
		t.Errorf("a claimed member could be discarded: %v, %v", mine, err)
	}
}

func TestBeginFill_KeepsTheSizeAndDiscardedOnesDoNotComeBack(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if _, err := s.BeginFill(t.Context(), core.PoolMember{ID: core.NewID[core.SandboxID](), Host: "host-1", Spec: "v1"}, 3, -time.Second); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	members, err := s.PoolMembers(t.Context(), "host-1")
	if err != nil || len(members) != 3 || !members[0].Overdue {
		t.Fatalf("%+v, %v, want three that are overdue", members, err)
	}
	m := members[0]
	if mine, err := s.DiscardMember(t.Context(), m.ID); !mine || err != nil {
		t.Fatalf("DiscardMember = %v, %v", mine, err)
	}
	m.RuntimeRef, m.Volume = "ref", "vol"
	if ready, err := s.EndFill(t.Context(), m); ready || err != nil {
		t.Errorf("a discarded member became ready: %v, %v", ready, err)
	}
	must(t, s.ForgetMember(t.Context(), members[1].ID)) // not discarded: stays
	must(t, s.ForgetMember(t.Context(), m.ID))
	if is, err := s.IsPoolMember(t.Context(), m.ID); is || err != nil {
		t.Errorf("IsPoolMember of a forgotten one = %v, %v", is, err)
	}
	if is, err := s.IsPoolMember(t.Context(), members[1].ID); !is || err != nil {
		t.Errorf("IsPoolMember of another = %v, %v", is, err)
	}
}
