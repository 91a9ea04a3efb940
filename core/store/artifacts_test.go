package store_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
	"agent-sandboxing/core/store/storetest"
)

func TestSaveArtifact_KeepsBytesAndTells(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	data := bytes.Repeat([]byte{0, 0xff, '\n', 'a'}, 50_000)
	in := core.Artifact{
		ID: core.NewID[core.ArtifactID](), MessageID: claim.Message.ID, Kind: core.ArtifactOutput, Name: "make test",
		MediaType: "text/plain; charset=utf-8", Truncated: true, Redactions: 2, Data: data,
	}
	must(t, s.SaveArtifact(t.Context(), claim.Lease, in, core.AgentToolResult{CallID: "1", ArtifactID: in.ID}))
	got, err := s.Artifact(t.Context(), claim.Session.ID, in.ID)
	must(t, err)
	sum := sha256.Sum256(data)
	in.SessionID, in.Size, in.SHA256, in.CreatedAt = claim.Session.ID, int64(len(data)), hex.EncodeToString(sum[:]), got.CreatedAt
	if diff := cmp.Diff(in, got); diff != "" {
		t.Errorf("artifact (-want +got):\n%s", diff)
	}
	wantTypes(t, s, claim.Session.ID, "artifact_created", "agent_tool_result")
	events, err := s.EventsSince(t.Context(), claim.Session.ID, 4, 0)
	if err != nil || events[0].Producer != core.ByPlatform || events[1].Producer != core.ByAgent || events[1].MessageID != claim.Message.ID {
		t.Errorf("events = %+v, %v", events, err)
	}

	other := storetest.Session(t, s, storetest.User(t, s).ID)
	for _, id := range []core.ArtifactID{in.ID, "", core.NewID[core.ArtifactID]()} {
		if _, err := s.Artifact(t.Context(), other.ID, id); core.KindOf(err) != core.NotFound {
			t.Errorf("Artifact(%q) of another session: %v, want NotFound", id, err)
		}
		if _, err := s.DiffIndex(t.Context(), other.ID, id); core.KindOf(err) != core.NotFound {
			t.Errorf("DiffIndex(%q) of another session: %v, want NotFound", id, err)
		}
	}
	if _, err := s.DiffIndex(t.Context(), claim.Session.ID, in.ID); core.KindOf(err) != core.NotFound {
		t.Errorf("DiffIndex of tool output: %v, want NotFound", err)
	}
}

func TestSaveDiff_TheNewestIsTheSessions(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	id := claim.Session.ID
	if latest, err := s.LatestDiffID(t.Context(), id); latest != "" || err != nil {
		t.Errorf("LatestDiffID before any = %q, %v", latest, err)
	}
	if files, err := s.LatestDiff(t.Context(), id); files != nil || err != nil {
		t.Errorf("LatestDiff before any = %v, %v, want nil", files, err)
	}
	files := []core.ChangedFile{
		{Path: "new.go", OldPath: "old.go", Status: "renamed", OldMode: "100644", NewMode: "100755", Additions: 3, Deletions: 1},
		{Path: "logo \x00.png", Status: "added", Binary: true},
	}
	first := core.Artifact{ID: core.NewID[core.ArtifactID](), MessageID: claim.Message.ID, Name: "changes.patch", Data: []byte("diff")}
	must(t, s.SaveDiff(t.Context(), claim.Lease, first, files))
	wantTypes(t, s, id, "artifact_created", "diff_updated")
	files[1].Path = "logo \uFFFD.png"
	for name, read := range map[string]func() ([]core.ChangedFile, error){
		"DiffIndex":  func() ([]core.ChangedFile, error) { return s.DiffIndex(t.Context(), id, first.ID) },
		"LatestDiff": func() ([]core.ChangedFile, error) { return s.LatestDiff(t.Context(), id) },
	} {
		got, err := read()
		if diff := cmp.Diff(files, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	empty := core.Artifact{ID: core.NewID[core.ArtifactID]()}
	must(t, s.SaveDiff(t.Context(), claim.Lease, empty, nil))
	if latest, err := s.LatestDiffID(t.Context(), id); latest != empty.ID || err != nil {
		t.Errorf("LatestDiffID = %q, %v, want the newest", latest, err)
	}
	if got, err := s.LatestDiff(t.Context(), id); got == nil || len(got) != 0 || err != nil {
		t.Errorf("LatestDiff of an empty diff = %v, %v, want an empty index", got, err)
	}
	if got, err := s.Artifact(t.Context(), id, empty.ID); err != nil || got.Data == nil || got.Kind != core.ArtifactDiff {
		t.Errorf("empty diff = %+v, %v, want bytes that are there", got, err)
	}
}

func TestSaveCheckpoint_KeepsTheTwentyNewest(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	other := storetest.Working(t, s)
	if c, err := s.Checkpoint(t.Context(), claim.Session.ID, 0); c != nil || err != nil {
		t.Fatalf("Checkpoint before any = %+v, %v", c, err)
	}
	checkpoint := func(lease core.Lease, n int) core.Checkpoint {
		c := core.Checkpoint{
			ID: core.NewID[core.CheckpointID](), SessionID: lease.SessionID, Archive: fmt.Appendf(nil, "archive %d", n),
			Info: core.CheckpointInfo{BaseSHA: storetest.BaseSHA, Deleted: []string{"a", "b c"}, Files: n, Bytes: 9, Missing: []string{"big.bin"}},
		}
		must(t, s.SaveCheckpoint(t.Context(), lease, c))
		return c
	}
	checkpoint(other.Lease, 1)
	var last core.Checkpoint
	for n := range 23 {
		last = checkpoint(claim.Lease, n)
	}
	got, err := s.Checkpoint(t.Context(), claim.Session.ID, 0)
	must(t, err)
	last.CreatedAt = got.CreatedAt
	if diff := cmp.Diff(&last, got); diff != "" {
		t.Errorf("latest (-want +got):\n%s", diff)
	}
	wantTypes(t, s, claim.Session.ID, "checkpoint_saved")
	for back, want := range map[int]int{1: 21, 19: 3} {
		if c, err := s.Checkpoint(t.Context(), claim.Session.ID, back); err != nil || c == nil || c.Info.Files != want {
			t.Errorf("Checkpoint %d back = %+v, %v, want number %d", back, c, err, want)
		}
	}
	if c, err := s.Checkpoint(t.Context(), claim.Session.ID, 20); c != nil || err != nil {
		t.Errorf("Checkpoint before the oldest = %+v, %v", c, err)
	}
	if n := count(t, s, `SELECT count(*) FROM checkpoints WHERE session_id = $1 AND files >= 3`, claim.Session.ID); n != 20 {
		t.Errorf("%d of the newest checkpoints are kept, want 20", n)
	}
	if n := count(t, s, `SELECT count(*) FROM checkpoints`); n != 21 {
		t.Errorf("%d checkpoints in all, want 20 and the other session's", n)
	}
}

// The sandbox says what its base is. A checkpoint of another one could never be restored.
func TestSaveCheckpoint_RefusesAnotherBase(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	claim := storetest.Working(t, s)
	err := s.SaveCheckpoint(t.Context(), claim.Lease, core.Checkpoint{
		ID: core.NewID[core.CheckpointID](), Info: core.CheckpointInfo{BaseSHA: strings.Repeat("b", 40)},
	})
	if core.CodeOf(err) != "checkpoint_failed" {
		t.Errorf("SaveCheckpoint of another base = %v, want checkpoint_failed", err)
	}
	if c, err := s.Checkpoint(t.Context(), claim.Session.ID, 0); c != nil || err != nil {
		t.Errorf("it was kept: %+v, %v", c, err)
	}
}
