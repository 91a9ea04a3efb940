package docker_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"

	"agent-sandboxing/sandbox/docker/dockertest"
)

// benchCheck is one check of section 5 (container runtime) of the CIS Docker benchmark, as
// docker-bench-security numbers them.
type benchCheck struct {
	id, title string
	pass      func(c container.InspectResponse) bool
	// notHere says why the check does not apply; "" when it does.
	notHere string
}

func benchChecks(b box, t *testing.T) []benchCheck {
	processes := func() string {
		_, out := b.sh(t, "cat /proc/[0-9]*/comm")
		return out
	}
	return []benchCheck{
		{id: "5.1", title: "swarm mode is not enabled without need", pass: func(container.InspectResponse) bool {
			return dockertest.Docker(t, "info", "--format", "{{.Swarm.LocalNodeState}}") == "inactive"
		}},
		{id: "5.2", title: "an AppArmor profile is enabled", notHere: without(t, "apparmor"), pass: func(c container.InspectResponse) bool {
			return c.AppArmorProfile != "" && c.AppArmorProfile != "unconfined"
		}},
		{id: "5.3", title: "SELinux options are set", notHere: without(t, "selinux"), pass: func(c container.InspectResponse) bool {
			return !slices.Contains(c.HostConfig.SecurityOpt, "label=disable")
		}},
		{id: "5.4", title: "kernel capabilities are restricted", pass: func(c container.InspectResponse) bool {
			return len(c.HostConfig.CapAdd) == 0 && slices.Equal(c.HostConfig.CapDrop, []string{"ALL"})
		}},
		{id: "5.5", title: "not privileged", pass: func(c container.InspectResponse) bool { return !c.HostConfig.Privileged }},
		{id: "5.6", title: "no sensitive folder of the host is mounted", pass: func(c container.InspectResponse) bool {
			return !slices.ContainsFunc(c.Mounts, func(m container.MountPoint) bool { return m.Type != "volume" })
		}},
		{id: "5.7", title: "no sshd", pass: func(container.InspectResponse) bool { return !strings.Contains(processes(), "sshd") }},
		{id: "5.8", title: "no privileged port is mapped", pass: noPorts},
		{id: "5.9", title: "only needed ports are open", pass: noPorts},
		{id: "5.10", title: "the host's network is not shared", pass: func(c container.InspectResponse) bool { return c.HostConfig.NetworkMode == "none" }},
		{id: "5.11", title: "memory is limited", pass: func(c container.InspectResponse) bool { return c.HostConfig.Memory > 0 }},
		{id: "5.12", title: "processor priority is set", pass: func(c container.InspectResponse) bool { return c.HostConfig.CPUShares > 0 && c.HostConfig.NanoCPUs > 0 }},
		{id: "5.13", title: "the root file system is read-only", pass: func(c container.InspectResponse) bool { return c.HostConfig.ReadonlyRootfs }},
		{id: "5.14", title: "incoming traffic is bound to one interface of the host", pass: noPorts},
		{id: "5.15", title: "restart policy is on-failure with at most 5, or none", pass: func(c container.InspectResponse) bool {
			return c.HostConfig.RestartPolicy.Name == "no" && c.RestartCount == 0
		}},
		{id: "5.16", title: "the host's processes are not shared", pass: func(c container.InspectResponse) bool { return c.HostConfig.PidMode == "" }},
		{id: "5.17", title: "the host's IPC is not shared", pass: func(c container.InspectResponse) bool { return c.HostConfig.IpcMode == "private" }},
		{id: "5.18", title: "no device of the host is exposed", pass: func(c container.InspectResponse) bool { return len(c.HostConfig.Devices) == 0 }},
		{id: "5.19", title: "ulimits are set at run time", pass: func(c container.InspectResponse) bool { return len(c.HostConfig.Ulimits) > 0 }},
		{id: "5.20", title: "no mount propagates to the host", pass: func(c container.InspectResponse) bool {
			return !slices.ContainsFunc(c.Mounts, func(m container.MountPoint) bool { return strings.Contains(string(m.Propagation), "shared") })
		}},
		{id: "5.21", title: "the host's UTS namespace is not shared", pass: func(c container.InspectResponse) bool { return c.HostConfig.UTSMode == "" }},
		{id: "5.22", title: "seccomp is not disabled", pass: func(c container.InspectResponse) bool {
			_, mode := b.sh(t, "awk '/^Seccomp:/ {print $2}' /proc/self/status")
			return mode == "2" && !slices.Contains(c.HostConfig.SecurityOpt, "seccomp=unconfined")
		}},
		{id: "5.23", title: "docker exec is not used with --privileged", pass: noExec},
		{id: "5.24", title: "docker exec is not used with --user root", pass: noExec},
		{id: "5.25", title: "the cgroup is the daemon's own", pass: func(c container.InspectResponse) bool { return c.HostConfig.CgroupParent == "" }},
		{id: "5.26", title: "no new privileges", pass: func(c container.InspectResponse) bool {
			return slices.Contains(c.HostConfig.SecurityOpt, "no-new-privileges")
		}},
		{id: "5.27", title: "health is checked at run time", notHere: "the worker pings PID 1 over its own stream; a check of Docker's would be another process inside, by docker exec"},
		{id: "5.28", title: "the image is the one that was looked at", pass: func(c container.InspectResponse) bool {
			return strings.HasPrefix(c.Config.Image, "sha256:") && c.Image == c.Config.Image
		}},
		{id: "5.29", title: "processes are limited", pass: func(c container.InspectResponse) bool {
			return c.HostConfig.PidsLimit != nil && *c.HostConfig.PidsLimit > 0
		}},
		{id: "5.30", title: "the default bridge is not used", pass: func(c container.InspectResponse) bool {
			_, bridged := c.NetworkSettings.Networks["bridge"]
			return !bridged
		}},
		{id: "5.31", title: "the host's user namespace is not forced", pass: func(c container.InspectResponse) bool { return c.HostConfig.UsernsMode == "" }},
		{id: "5.32", title: "no Docker socket is mounted", pass: func(c container.InspectResponse) bool {
			return !slices.ContainsFunc(c.Mounts, func(m container.MountPoint) bool { return strings.Contains(m.Source, "docker.sock") })
		}},
	}
}

func noPorts(c container.InspectResponse) bool {
	return len(c.HostConfig.PortBindings) == 0 && len(c.NetworkSettings.Ports) == 0 && !c.HostConfig.PublishAllPorts
}

// noExec: the product never uses docker exec, and nothing else has in this container.
func noExec(c container.InspectResponse) bool {
	source, err := os.ReadDir(".")
	for _, f := range source {
		text, readErr := os.ReadFile(f.Name())
		if strings.HasSuffix(f.Name(), ".go") && !strings.HasSuffix(f.Name(), "_test.go") && (readErr != nil || strings.Contains(string(text), "ContainerExec")) {
			return false
		}
	}
	return err == nil && len(c.ExecIDs) == 0
}

// without says that this host's daemon does not use AppArmor or SELinux.
func without(t *testing.T, module string) string {
	if strings.Contains(dockertest.Docker(t, "info", "--format", "{{.SecurityOptions}}"), "name="+module) {
		return ""
	}
	return "this host has no " + module
}

func TestDockerBench_EveryApplicableCheckPasses(t *testing.T) {
	t.Parallel()
	b := start(t, dockertest.New(t), spec())
	var there []container.InspectResponse
	if err := json.Unmarshal([]byte(dockertest.Docker(t, "inspect", b.ref)), &there); err != nil || len(there) != 1 {
		t.Fatalf("%d containers, %v", len(there), err)
	}
	checks := benchChecks(b, t)
	passed, notHere := 0, 0
	for _, c := range checks {
		switch {
		case c.notHere != "":
			notHere++
			t.Logf("docker-bench: %s %s: not applicable, because %s", c.id, c.title, c.notHere)
		case !c.pass(there[0]):
			t.Errorf("%s %s", c.id, c.title)
		default:
			passed++
		}
	}
	t.Logf("docker-bench: %d of %d checks pass, %d not applicable", passed, len(checks), notHere)
}

// The same checks on a container of somebody careless: those that it can break, it breaks.
func TestDockerBench_FindsWhatIsMissing(t *testing.T) {
	t.Parallel()
	ref := weak(t)
	var there []container.InspectResponse
	if err := json.Unmarshal([]byte(dockertest.Docker(t, "inspect", ref)), &there); err != nil {
		t.Fatal(err)
	}
	var passed []string
	for _, c := range benchChecks(start(t, dockertest.New(t), spec()), t) { // what is asked from inside is asked a good one
		if strings.HasPrefix(c.notHere, "this host") { // it passes or not by the host
			continue
		}
		if c.notHere == "" && c.pass(there[0]) {
			passed = append(passed, c.id)
		}
	}
	want := "5.1 5.5 5.7 5.8 5.9 5.10 5.14 5.15 5.16 5.17 5.19 5.20 5.21 5.23 5.24 5.25 5.30 5.31 5.32"
	if got := strings.Join(passed, " "); got != want {
		t.Errorf("passed by a weak container: %s", got)
	}
}
