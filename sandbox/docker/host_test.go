package docker

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/registry"
	"github.com/docker/docker/api/types/system"
)

func TestExamineHost_KnowsRuncByItsVersion(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"1.1.5":                    "lacks the fix",
		"1.0.0~rc93+ds1-5+deb11u2": "lacks the fix",
		"1.1.5+ds1-1+deb12u1":      "", // its update is in Debian's tracker alone
		"1.1.12":                   "lacks the fixes",
		"1.2.8":                    "",
		"1.3.3":                    "",
		"":                         "does not tell its version",
		"who knows":                "",
	} {
		upstream, _, _ := strings.Cut(version, "-")
		got := examineRunc(types.Version{Components: []types.ComponentVersion{{Name: "runc", Version: upstream, Details: map[string]string{"GitCommit": version}}}})
		if !strings.Contains(got.Detail, want) || (got.Remedy == "") != (want == "") {
			t.Errorf("%q: %+v", version, got)
		}
	}
}

func TestExamineHost_SaysWhoCanCommandTheDaemon(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "docker.sock")
	if err := os.WriteFile(socket, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	look := func(host string, warnings ...string) HostFinding {
		return (&Runtime{config: Config{Host: host}}).examineSocket(system.Info{Warnings: warnings})
	}
	if got := look("unix://" + socket); got.Remedy != "" {
		t.Errorf("0600: %+v", got)
	}
	if err := os.Chmod(socket, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, got := range []HostFinding{
		look("unix://" + socket), look("tcp://10.0.0.1:2375"),
		look("ssh://host", "WARNING: API is accessible on http://0.0.0.0:2375 without encryption."),
	} {
		if got.Remedy == "" {
			t.Errorf("%+v", got)
		}
	}
	if got := look("ssh://host"); got.Remedy != "" {
		t.Errorf("%+v", got)
	}
}

func TestExamineHost_SaysWhatIsWeak(t *testing.T) {
	t.Parallel()
	strong := system.Info{
		SecurityOptions: []string{"name=apparmor", "name=userns"}, MemoryLimit: true, SwapLimit: true, CPUCfsQuota: true, PidsLimit: true, Driver: "overlay2",
		Runtimes: map[string]system.RuntimeWithStatus{gvisor: {Runtime: system.Runtime{Path: "/nonexistent/runsc", Args: []string{"--oci-seccomp"}}}},
	}
	_, block, err := net.ParseCIDR("10.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	weak := system.Info{
		Driver: "vfs", RegistryConfig: &registry.ServiceConfig{InsecureRegistryCIDRs: []*registry.NetIPNet{(*registry.NetIPNet)(block)}},
		Runtimes: map[string]system.RuntimeWithStatus{gvisor: {Runtime: system.Runtime{Path: "/nonexistent/runsc"}}},
	}
	r, native := &Runtime{config: Config{Runtime: gvisor, Host: "unix:///nonexistent"}}, &Runtime{}
	for _, info := range []system.Info{strong, weak} {
		for _, got := range []HostFinding{
			native.examineUserNamespaces(info), native.examineSecurityModule(info), examineLimits(info), examineStorage(info), examineRegistries(info), r.examineGVisor(t.Context(), info),
		} {
			if (got.Remedy != "") != (info.Driver == "vfs") || got.Detail == "" {
				t.Errorf("with %s: %+v", info.Driver, got)
			}
		}
	}
}

// What somebody may choose is no defect: runc without gVisor, and gVisor without what runc needs around it.
func TestExamineHost_AChoiceIsNoDefect(t *testing.T) {
	t.Parallel()
	registered := system.Info{Runtimes: map[string]system.RuntimeWithStatus{gvisor: {}}}
	native, r := &Runtime{config: Config{Runtime: "runc"}}, &Runtime{config: Config{Runtime: gvisor}}
	for _, got := range []HostFinding{
		native.examineGVisor(t.Context(), system.Info{}), native.examineGVisor(t.Context(), registered),
		r.examineUserNamespaces(registered), r.examineSecurityModule(registered),
	} {
		if got.Remedy != "" || got.Detail == "" {
			t.Errorf("%+v", got)
		}
	}
}
