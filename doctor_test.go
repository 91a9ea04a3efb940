package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core/config"
	"agent-sandboxing/sandbox"
	"agent-sandboxing/sandbox/docker/dockertest"
)

func doctorConfig(t *testing.T, vars map[string]string) config.Config {
	t.Helper()
	vars["HOME"] = t.TempDir()
	cfg, err := config.Parse(config.Doctor, vars)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestDoctor_FindsEveryControlInForceOnThisHost(t *testing.T) {
	t.Parallel()
	cfg := doctorConfig(t, map[string]string{
		"DOCKER_HOST": os.Getenv("DOCKER_HOST"), "SANDBOX_IMAGE": dockertest.Image(t), "SANDBOX_RUNTIME": dockertest.Runtime(), "SANDBOX_MEMORY": "256",
	})
	controls, host := 0, 0
	for _, f := range checkDocker(t.Context(), cfg) {
		switch {
		case strings.HasPrefix(f.name, "control: "):
			controls++
			if f.state != fine {
				t.Errorf("%s: %s", f.name, f.detail)
			}
		case strings.HasPrefix(f.name, "host: "):
			host++
		}
		if f.state == absent || f.state == degraded && (f.remedy == "" || f.detail == "") {
			t.Errorf("%+v", f)
		}
	}
	if controls < 30 || host < 10 {
		t.Errorf("%d controls and %d looks at the host", controls, host)
	}
}

func TestDoctor_SaysThatADaemonIsBroken(t *testing.T) {
	t.Parallel()
	silent := filepath.Join(t.TempDir(), "docker.sock")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", silent)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, host := range []string{"unix:///nonexistent/docker.sock", "unix://" + silent} {
		got := checkDocker(t.Context(), doctorConfig(t, map[string]string{"DOCKER_HOST": host, "SANDBOX_IMAGE": "some/image:1"}))
		if len(got) != 1 || got[0].name != "docker" || got[0].state != absent || !strings.Contains(got[0].detail, "does not answer") || !strings.Contains(got[0].remedy, "DOCKER_HOST") {
			t.Errorf("%s: %+v", host, got)
		}
	}
}

func TestDoctor_SaysThatARuntimeOrAnImageIsMissing(t *testing.T) {
	t.Parallel()
	for row, vars := range map[string]map[string]string{
		"runtime": {"SANDBOX_RUNTIME": "not-a-runtime", "SANDBOX_IMAGE": dockertest.Image(t)},
		"image":   {"SANDBOX_IMAGE": "agent-sandboxing/sandbox:not-here"},
	} {
		vars["DOCKER_HOST"] = os.Getenv("DOCKER_HOST")
		var lack []string
		for _, f := range checkDocker(t.Context(), doctorConfig(t, vars)) {
			if f.state == absent {
				lack = append(lack, f.name)
			}
			if f.state != fine && f.remedy == "" {
				t.Errorf("%+v", f)
			}
		}
		if diff := cmp.Diff([]string{row, "controls"}, lack); diff != "" {
			t.Errorf("absent -want +got\n%s", diff)
		}
	}
}

func TestDoctor_HoldsTheLimitsAgainstTheHost(t *testing.T) {
	t.Parallel()
	host := sandbox.Capabilities{MemoryBytes: 8 << 30, Processors: 4}
	for _, test := range []struct {
		running int
		memory  int64
		cpus    float64
		state   string
	}{
		{4, 2048, 2, fine},
		{5, 2048, 2, degraded},
		{1, 9000, 2, degraded},
		{1, 1024, 5, degraded},
	} {
		got := checkCapacity(config.Sandbox{MaxRunning: test.running, Memory: test.memory, CPUs: test.cpus}, host)
		if got.state != test.state || got.detail == "" || (got.remedy != "") != (test.state == degraded) {
			t.Errorf("%+v: %+v", test, got)
		}
	}
}

func TestDoctor_TellsAnUnsetImageFromAMissingOne(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		image         string
		ready         bool
		state, detail string
	}{
		{"", false, absent, "SANDBOX_IMAGE is not set"},
		{"some/image:1", false, absent, "some/image:1 is not on the Docker host"},
		{"some/image:1", true, fine, "some/image:1"},
	} {
		if got := checkImage(test.image, test.ready); got.state != test.state || got.detail != test.detail {
			t.Errorf("image %q, ready %t: %+v", test.image, test.ready, got)
		}
	}
}

func TestDoctor_SaysWhatBoundsAWorkspacesDisk(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		mib    int64
		by     sandbox.DiskBudget
		state  string
		detail string
	}{
		{0, sandbox.BudgetQuota, degraded, "SANDBOX_DISK is 0"},
		{512, sandbox.BudgetSampled, degraded, "512 MiB for each workspace, looked at"},
		{512, sandbox.BudgetQuota, fine, "512 MiB for each workspace, by the kernel's quota"},
	} {
		got := checkBudget(config.Sandbox{Disk: test.mib}, test.by)
		if got.state != test.state || !strings.HasPrefix(got.detail, test.detail) || (got.state != fine) != (got.remedy != "") {
			t.Errorf("%+v", got)
		}
	}
}

func TestDoctor_FailsOnWhatIsAbsentAndStrictlyOnWhatIsDegraded(t *testing.T) {
	t.Parallel()
	good, worse, bad := finding{"a", fine, "well", "unused"}, finding{"b", degraded, "weak", "mend it"}, finding{"c", absent, "gone", "get it"}
	for _, test := range []struct {
		all          []finding
		fails, stern bool
	}{
		{[]finding{good}, false, false},
		{[]finding{good, worse}, false, true},
		{[]finding{good, worse, bad}, true, true},
	} {
		var text strings.Builder
		if err := (doctorCmd{}).report(&text, test.all); (err != nil) != test.fails {
			t.Errorf("%+v: %v", test.all, err)
		}
		if err := (doctorCmd{Strict: true}).report(&text, test.all); (err != nil) != test.stern {
			t.Errorf("%+v strictly: %v", test.all, err)
		}
		for _, f := range test.all {
			if f.state != fine && !strings.Contains(text.String(), "→ "+f.remedy) {
				t.Errorf("no remedy of %s in %q", f.name, &text)
			}
		}
		text.Reset()
		_ = (doctorCmd{JSON: true}).report(&text, test.all) // its error is that of above
		var back []map[string]string
		if err := json.Unmarshal([]byte(text.String()), &back); err != nil || len(back) != len(test.all) || back[0]["remedy"] != "" || back[0]["name"] != "a" {
			t.Errorf("%v: %s", err, &text)
		}
	}
}

func TestDoctor_SaysWhatSandboxesReach(t *testing.T) {
	t.Parallel()
	for want, vars := range map[string]map[string]string{
		"open: sessions may reach any public host":                                            {},
		"allowlist: sessions may reach 2 hosts of EGRESS_ALLOW and those of their repository": {"EGRESS_MODE": "allowlist", "EGRESS_ALLOW": "a.example.com,*.b.example.com"},
		"none: sessions reach nothing; EGRESS_ALLOW_PRIVATE opens 1 that are not public":      {"EGRESS_MODE": "none", "EGRESS_ALLOW_PRIVATE": "mirror.example.com:8443"},
	} {
		if got := checkNetwork(t.Context(), doctorConfig(t, vars)); len(got) != 1 || got[0].detail != want {
			t.Errorf("%v: %+v", vars, got)
		}
	}
}
