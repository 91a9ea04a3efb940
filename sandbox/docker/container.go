package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/go-units"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox"
)

const (
	user         = "1000:1000"
	workspaceDir = "/workspace"
	toolboxDir   = "/opt/toolbox"
	toolboxPath  = toolboxDir + "/toolboxd"

	labelProduct    = "agent-sandboxing"
	labelInstance   = "agent-sandboxing.instance"
	labelSession    = "agent-sandboxing.session"
	labelSandbox    = "agent-sandboxing.sandbox"
	labelGeneration = "agent-sandboxing.generation"
	labelSpec       = "agent-sandboxing.spec"
)

// hardened is what every container of ours has, whatever runs in it. Each row is asserted by
// TestHardening, from inside and by inspect.
func hardened(image, runtime string, limits sandbox.Limits) (container.Config, container.HostConfig) {
	never := container.HealthConfig{Test: []string{"NONE"}} // an image's health check would be a process of its own
	config := container.Config{
		Image:        image, // an id, so that a moved tag changes nothing
		User:         user,
		Hostname:     "sandbox",
		WorkingDir:   "/",
		OpenStdin:    true, // the toolbox's channel; it stays open between attaches
		AttachStdin:  true,
		AttachStdout: true,
		StopSignal:   "SIGKILL", // the toolbox ignores all that it can
		Healthcheck:  &never,
	}
	pids := limits.PIDs
	ulimits := []*units.Ulimit{
		{Name: "core", Soft: 0, Hard: 0},
		{Name: "nofile", Soft: 4096, Hard: 4096},
	}
	if runtime == "runsc" { // its pids limit ends the whole sandbox, and its nproc is the sandbox's own
		ulimits = append(ulimits, &units.Ulimit{Name: "nproc", Soft: pids, Hard: pids})
		pids = 8 * pids
	}
	host := container.HostConfig{
		Runtime:        runtime,
		NetworkMode:    "none",                                                        // no interface but loopback
		DNS:            []string{"127.0.0.1"},                                         // the toolbox; the host's resolvers are nobody's business
		DNSSearch:      []string{"."},                                                 // nor are its domains
		Sysctls:        map[string]string{"net.ipv4.ip_unprivileged_port_start": "0"}, // the toolbox listens on 53, 80, 443
		IpcMode:        "private",
		ReadonlyRootfs: true,
		CapDrop:        []string{"ALL"},
		SecurityOpt:    []string{"no-new-privileges", "seccomp=" + seccompProfile},
		Tmpfs: map[string]string{ // builds execute what they write to /tmp
			"/tmp": "rw,exec,nosuid,nodev,size=512m,mode=1777",
			"/run": "rw,noexec,nosuid,nodev,size=16m,mode=0755,uid=1000,gid=1000",
		},
		ShmSize:     64 << 20,
		OomScoreAdj: 500, // under memory pressure a sandbox goes before the host's services
		LogConfig:   container.LogConfig{Type: "none"},
		Resources: container.Resources{
			Memory:     limits.MemoryBytes,
			MemorySwap: limits.MemoryBytes, // no swap
			NanoCPUs:   int64(limits.CPUs * 1e9),
			PidsLimit:  &pids,
			Ulimits:    ulimits,
		},
		RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
	}
	return config, host
}

// session adds what makes a hardened container a session's: the toolbox as PID 1, the workspace as
// the only lasting place, and the labels by which it is found again.
func session(config *container.Config, host *container.HostConfig, spec sandbox.Spec, instance, toolboxVolume, volume string) {
	config.Entrypoint = []string{toolboxPath}
	host.Mounts = []mount.Mount{
		{Type: mount.TypeVolume, Source: volume, Target: workspaceDir, VolumeOptions: &mount.VolumeOptions{NoCopy: true}},
		{Type: mount.TypeVolume, Source: toolboxVolume, Target: toolboxDir, ReadOnly: true, VolumeOptions: &mount.VolumeOptions{NoCopy: true}},
	}
	config.Labels = labels(spec, instance)
	config.Labels[labelSpec] = fingerprint(config, host)
}

func labels(spec sandbox.Spec, instance string) map[string]string {
	return map[string]string{
		labelProduct:    "true",
		labelInstance:   instance,
		labelSession:    string(spec.Session),
		labelSandbox:    string(spec.Sandbox),
		labelGeneration: strconv.Itoa(spec.Generation),
	}
}

// fingerprint changes whenever anything of the container would.
func fingerprint(config *container.Config, host *container.HostConfig) string {
	text, err := json.Marshal(struct {
		Config *container.Config
		Host   *container.HostConfig
	}{config, host})
	if err != nil {
		panic(err) // both are plain data
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// name is what container and fresh volume of one generation are called.
func name(id core.SandboxID, generation int) string {
	return "agent-" + string(id) + "-g" + strconv.Itoa(generation)
}
