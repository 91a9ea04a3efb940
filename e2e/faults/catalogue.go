package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// fault is one of the thirty ways in which a sandbox's world goes wrong. What shows its right
// behaviour are rows of this program whose names begin with its id, and tests of packages.
type fault struct {
	id, what string
	tests    map[string][]string // names by package
}

// catalogue is the list that sandbox-faults goes through.
func catalogue() []fault {
	const (
		store, turns, mirror, live = "./core/store", "./core/turn", "./core/mirror", "./core/live"
		sandboxes, docker, toolbox = "./sandbox", "./sandbox/docker", "./sandbox/toolbox"
	)
	return []fault{
		{"F1", "dockerd dies during a command", map[string][]string{
			sandboxes: {"TestInvariant6_NothingThatIsKilledTakesTheWork"}, docker: {"TestReattach_AfterTheDaemonWasKilled"},
		}},
		{"F2", "dockerd is down or hangs", map[string][]string{
			docker: {"TestUnavailable_WithinFiveSecondsWhenTheDaemonNeverAnswers", "TestUnavailable_AtOnceWhenThereIsNoDaemon"},
			turns:  {"TestTurn_WaitsWhileNoSandboxCanRun"},
		}},
		{"F3", "the control plane is killed", map[string][]string{
			sandboxes: {"TestReconcile_RowsAndContainersBothWays", "TestPool_AKillWhileItIsFilledLeavesNothing", "TestPool_AKillWhileItIsClaimedLeavesTheSessionUsable"},
			store:     {"TestReap_FailsTheWorkingMessageAndKeepsItsWords", "TestReap_ThirdLostPreparationFailsTheMessage", "TestReap_EndsTheCallThatNobodyAnswered"},
		}},
		{"F4", "memory runs out", nil},
		{"F5", "a fork bomb", nil},
		{"F6", "a disk or its inodes run out", map[string][]string{
			toolbox: {"TestBudget_EndsACommandThatFillsTheWorkspace", "TestBudget_CountsFilesAsWellAsBytes", "TestBudget_EndsACommandThatTakesTheHostsLastSpace"},
			docker:  {"TestDiskFull_TheWorkIsStillRecorded", "TestFullDisk_LeavesTheOldFile"},
		}},
		{"F7", "a flood of output", nil},
		{"F8", "a command ignores TERM, or leaves its session", map[string][]string{sandboxes: {"TestInvariant7_NoProcessOfTheTurnOutlivesItsCancel"}}},
		{"F9", "orphans and zombies", nil},
		{"F10", "a child holds the output", nil},
		{"F11", "a cancel races the end", map[string][]string{turns: {"TestInvariant7_ACancelAtAnyMomentGivesOneEnd", "TestTurn_ACancelInTheMomentOfTheStartEndsIt"}}},
		{"F12", "orphaned containers, and foreign ones", map[string][]string{
			sandboxes: {"TestReconcile_RowsAndContainersBothWays", "TestPool_FindsWhatNoRowNames"}, docker: {"TestList_ShowsOnlyThisInstallation"},
		}},
		{"F13", "the name is taken", map[string][]string{
			docker: {"TestCreate_AgainAdoptsWhatIsThere"}, sandboxes: {"TestAcquire_PassesOverANameThatSomethingElseHas"},
		}},
		{"F14", "the image is missing or changed", map[string][]string{
			docker:    {"TestCreate_RefusesWithACodeForEachCause", "TestCreate_NextGenerationKeepsTheVolume"},
			sandboxes: {"TestAcquire_OtherSettingsAreANewContainerOnTheSameWorkspace", "TestAcquire_AnotherImageTakesEffectAtTheNextTurnOnTheSameVolume"},
		}},
		{"F15", "a clone hangs, is slow, huge, refused or moved", map[string][]string{
			mirror: {"TestFetch_EndsWhateverTheServerDoes", "TestFetch_SaysWhatFailed", "TestCheckout_RefusesABranchThatMoved"},
		}},
		{"F16", "clocks differ", nil},
		{"F17", "stop, create, cancel and removal race", map[string][]string{sandboxes: {"TestStates_StayConsistentUnderRaces", "TestAcquire_CancelLeavesAConsistentRow"}}},
		{"F18", "the container ends, is paused or removed", nil},
		{"F19", "what the daemon tells is missed", map[string][]string{sandboxes: {"TestRun_ReconcilesAtOnceAndEndsWithItsContext"}}},
		{"F20", "the toolbox hangs or lies", map[string][]string{
			toolbox:   {"TestClient_HungToolboxIsFound", "TestClient_ForgedFramesEndTheConnection", "TestClient_ForgedAnswersEndTheConnection", "TestClient_HostileToolboxCostsAFixedAmount"},
			sandboxes: {"TestAttack_EndingPID1LosesNoWork"},
		}},
		{"F21", "readers of a stream stop reading", map[string][]string{live: {"TestFollow_ASlowReaderHoldsNobodyUp"}}},
		{"F22", "the database is away", map[string][]string{turns: {"TestTurn_ItsEndOutlivesARestartOfTheDatabase"}}},
		{"F23", "a member of the pool is dead or stale", map[string][]string{
			sandboxes: {"TestPool_AMemberOfNoUseIsReplacedByANewContainer", "TestPool_OtherLimitsAreAnotherSpec", "TestPool_RacingSessionsGetOneEachAndNoneComesBack", "TestPool_AnImageThatWasReplacedAMomentAgoIsNotServed"},
		}},
		{"F24", "two control planes", map[string][]string{
			store: {"TestInvariant5_OneWorkingMessageUnder50Workers"}, sandboxes: {"TestAcquire_WorkerLostFencesTheOldContainer"},
		}},
		{"F25", "the host is full", map[string][]string{
			sandboxes: {"TestAcquire_MakesRoomByStoppingTheLongestUnused", "TestAcquire_WaitsForRoomUntilATurnEnds", "TestAcquire_KeepsTheHostsReserveOfDisk", "TestAcquire_WaitsForMemoryAndMakesSomeFree"},
		}},
		{"F26", "the host restarts", nil},
		{"F27", "volumes or networks leak", map[string][]string{
			docker: {"TestCycles_LeaveNothing"}, sandboxes: {"TestSoak_EverythingComesBackToWhereItWas", "TestReconcile_RemovesWhatBelongsToNobodyOnceThatLasts"},
		}},
		{"F28", "a stop hangs", map[string][]string{sandboxes: {"TestSweep_AStopThatFailsHoldsUpNobody"}}},
		{"F29", "the work tree changes while it is published", nil},
		{"F30", "a container stays paused", map[string][]string{sandboxes: {"TestPaused_ASandboxBetweenTwoTurnsIsStoppedAndStartsAgain"}}},
	}
}

// has says whether a row shows the fault.
func (f fault) has(r row) bool { return strings.HasPrefix(r.name, f.id+":") }

// sandboxRows are the rows of the catalogue.
func sandboxRows() []row {
	var chosen []row
	for _, r := range rows() {
		if slices.ContainsFunc(catalogue(), func(f fault) bool { return f.has(r) }) {
			chosen = append(chosen, r)
		}
	}
	return chosen
}

// tell prints each fault with what failed of it. good are the rows and tests that passed.
func tell(good map[string]bool) error {
	whole := 0
	for _, f := range catalogue() {
		var bad []string
		shown := 0
		for _, r := range sandboxRows() {
			if !f.has(r) {
				continue
			}
			shown++
			if !good[r.name] {
				bad = append(bad, r.name)
			}
		}
		for pkg, names := range f.tests {
			for _, name := range names {
				shown++
				if !good[pkg+" "+name] {
					bad = append(bad, pkg+" "+name)
				}
			}
		}
		if shown == 0 {
			bad = append(bad, "nothing shows it")
		}
		if len(bad) == 0 {
			whole++
			fmt.Printf("ok    %-4s %-48s %d checks\n", f.id, f.what, shown)
			continue
		}
		fmt.Printf("FAIL  %-4s %-48s %s\n", f.id, f.what, strings.Join(bad, "; "))
	}
	fmt.Printf("faults: %d of %d\n", whole, len(catalogue()))
	if whole != len(catalogue()) {
		return errors.New("not every fault ended well")
	}
	return nil
}

// test runs the catalogue's tests of packages on this bench's daemon and adds those that passed to good.
func (b *bench) test(ctx context.Context, good map[string]bool) error {
	names := map[string][]string{}
	for _, f := range catalogue() {
		for pkg, of := range f.tests {
			names[pkg] = append(names[pkg], of...)
		}
	}
	for pkg, of := range names {
		cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-json", "-run", "^("+strings.Join(of, "|")+")$", pkg)
		cmd.Env = append(os.Environ(), "TEST_SANDBOX_IMAGE="+b.env["SANDBOX_IMAGE"], "DOCKER_HOST="+b.daemon.Host())
		out, err := cmd.Output()
		passed := 0
		said := map[string]string{} // by test
		for line := range strings.Lines(string(out)) {
			var e struct{ Action, Test, Output string }
			if json.Unmarshal([]byte(line), &e) != nil {
				continue
			}
			said[e.Test] += e.Output
			if e.Action == "pass" && e.Test != "" && !strings.Contains(e.Test, "/") {
				good[pkg+" "+e.Test] = true
				passed++
			}
			if e.Action == "fail" && e.Test != "" {
				fmt.Println("      " + strings.ReplaceAll(strings.TrimSpace(said[e.Test]), "\n", "\n      "))
			}
		}
		fmt.Printf("      %-58s %d tests\n", pkg, passed)
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}
