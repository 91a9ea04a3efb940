package docker_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/sandbox/docker/dockertest"
)

// toolboxVolume is the one that a container has.
func toolboxVolume(t *testing.T, ref string) string {
	t.Helper()
	return inspect(t, ref, `{{range .Mounts}}{{if eq .Destination "/opt/toolbox"}}{{.Name}}{{end}}{{end}}`)
}

func TestCreate_FillsAPrunedToolboxVolumeAgain(t *testing.T) {
	t.Parallel()
	var volume string
	t.Cleanup(func() { dockertest.Docker(t, "volume", "rm", volume) }) // runs last, after the containers
	config := dockertest.Config(t)
	r := dockertest.Open(t, config)
	r.NameToolboxVolumes(config.Instance + "-") // the usual one is every test's
	ref, err := r.Create(t.Context(), spec())
	if err != nil {
		t.Fatal(err)
	}
	volume = toolboxVolume(t, ref)
	if err := r.Remove(t.Context(), ref, true); err != nil {
		t.Fatal(err)
	}
	dockertest.Docker(t, "volume", "rm", volume)
	if exit, _ := start(t, r, spec()).sh(t, "true"); exit != 0 {
		t.Error("the toolbox does not run")
	}
}

// What lies in a volume of the right name is not believed: a worker looks at the program's hash before its first use.
func TestCreate_ReplacesAForgedToolbox(t *testing.T) {
	t.Parallel()
	var volume string
	t.Cleanup(func() { dockertest.Docker(t, "volume", "rm", volume) }) // runs last, after the containers
	config := dockertest.Config(t)
	first := dockertest.Open(t, config)
	first.NameToolboxVolumes(config.Instance + "-")
	ref, err := first.Create(t.Context(), spec())
	if err != nil {
		t.Fatal(err)
	}
	volume = toolboxVolume(t, ref)
	dockertest.Docker(t, "run", "--rm", "--network", "none", "--volume", volume+":/opt/toolbox", "--entrypoint", "bash", config.Image, "-c",
		"chmod +w /opt/toolbox/toolboxd && printf '#!/bin/bash\nexec sleep 60\n' > /opt/toolbox/toolboxd")
	second := dockertest.Open(t, config) // a worker that was started meanwhile
	second.NameToolboxVolumes(config.Instance + "-")
	if exit, _ := start(t, second, spec()).sh(t, "true"); exit != 0 {
		t.Error("the toolbox does not run")
	}
}

// The toolbox volume of another build goes when nothing has it any more. This build's stays, and so does
// what is not ours.
func TestRemove_CollectsTheToolboxesOfOtherBuilds(t *testing.T) {
	t.Parallel()
	var left []string
	t.Cleanup(func() { dockertest.Docker(t, append([]string{"volume", "rm"}, left...)...) }) // runs last, after the containers
	config := dockertest.Config(t)
	prefix := config.Instance + "-"
	r := dockertest.Open(t, config)
	r.NameToolboxVolumes(prefix)
	ref, err := r.Create(t.Context(), spec())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"old", "used"} {
		dockertest.Docker(t, "volume", "create", "--label", "agent-sandboxing=true", prefix+name)
	}
	dockertest.Docker(t, "volume", "create", prefix+"foreign")
	dockertest.Docker(t, "create", "--label", "agent-sandboxing.instance="+config.Instance, "--volume", prefix+"used:/opt/toolbox:ro", config.Image, "true")
	want := []string{toolboxVolume(t, ref), prefix + "foreign", prefix + "used"}
	if err := r.Remove(t.Context(), ref, true); err != nil {
		t.Fatal(err)
	}
	left = strings.Fields(dockertest.Docker(t, "volume", "ls", "-q", "--filter", "name="+prefix))
	slices.Sort(left)
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
