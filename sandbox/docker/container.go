package docker

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

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
	labelPurpose    = "agent-sandboxing.purpose"
	labelSpec       = "agent-sandboxing.spec"
)

// session adds what makes a hardened container a session's: the toolbox as PID 1, the workspace as
// the only lasting place, and the labels by which it is found again.
func (r *Runtime) session(config *container.Config, host *container.HostConfig, spec sandbox.Spec, toolboxVolume, volume string) {
	config.Entrypoint, config.Env = []string{toolboxPath}, r.trust.env
	host.Mounts = []mount.Mount{
		{Type: mount.TypeVolume, Source: volume, Target: workspaceDir, VolumeOptions: &mount.VolumeOptions{NoCopy: true}},
		{Type: mount.TypeVolume, Source: toolboxVolume, Target: toolboxDir, ReadOnly: true, VolumeOptions: &mount.VolumeOptions{NoCopy: true}},
	}
	config.Labels = labels(spec, r.config.Instance)
	config.Labels[labelSpec] = fingerprint(config, host)
}

func labels(spec sandbox.Spec, instance string) map[string]string {
	return map[string]string{
		labelProduct:    "true",
		labelInstance:   instance,
		labelPurpose:    string(cmp.Or(spec.Purpose, sandbox.PurposeSession)),
		labelSession:    string(spec.Session),
		labelSandbox:    string(spec.Sandbox),
		labelGeneration: strconv.Itoa(spec.Generation),
	}
}

// helper labels a container that lives for seconds. One that a crash left behind is found by them.
func helper(instance string) map[string]string {
	return map[string]string{labelProduct: "true", labelInstance: instance, labelPurpose: string(sandbox.PurposeHelper)}
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
