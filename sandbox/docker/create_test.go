package docker_test

import (
	"context"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox"
	"agent-sandboxing/sandbox/docker"
	"agent-sandboxing/sandbox/docker/dockertest"
)

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if core.CodeOf(err) != code {
		t.Fatalf("error %v, want code %s", err, code)
	}
}

func TestCreate_AgainAdoptsWhatIsThere(t *testing.T) {
	t.Parallel()
	r, s := dockertest.New(t), spec()
	first := start(t, r, s)
	again, err := r.Create(t.Context(), s)
	if err != nil || again != first.ref {
		t.Errorf("made %s, then %s, %v", first.ref, again, err)
	}
	status, err := r.Inspect(t.Context(), again)
	if err != nil {
		t.Fatal(err)
	}
	s.Volume, s.Image = status.Volume, status.ImageID // as the next turn asks
	if again, err = r.Create(t.Context(), s); err != nil || again != first.ref {
		t.Errorf("made %s, then %s, %v", first.ref, again, err)
	}
	s.Limits.PIDs++
	_, err = r.Create(t.Context(), s)
	wantCode(t, err, "spec_changed")
	if exit, _ := first.sh(t, "true"); exit != 0 {
		t.Error("the refused container was touched")
	}
}

func TestCreate_NextGenerationKeepsTheVolume(t *testing.T) {
	t.Parallel()
	r, s := dockertest.New(t), spec()
	first := start(t, r, s)
	first.sh(t, "echo work > new.txt; echo home > ~/file")
	status, err := r.Inspect(t.Context(), first.ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Remove(t.Context(), first.ref, false); err != nil {
		t.Fatal(err)
	}
	s.Generation, s.Volume = 2, status.Volume
	second := start(t, r, s)
	if _, got := second.sh(t, "cat new.txt /workspace/home/file"); got != "work\nhome" {
		t.Errorf("the second generation saw %q", got)
	}
}

func TestCreate_ALostOrForeignVolumeIsNeverReplacedSilently(t *testing.T) {
	t.Parallel()
	r, s := dockertest.New(t), spec()
	s.Volume = "agent-not-here"
	_, err := r.Create(t.Context(), s)
	wantCode(t, err, "volume_lost")

	other := spec()
	ref, err := r.Create(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	status, err := r.Inspect(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	s.Volume = status.Volume // of another session
	_, err = r.Create(t.Context(), s)
	wantCode(t, err, "volume_lost")
}

func TestCreate_ManyAtOnceShareOneToolbox(t *testing.T) {
	t.Parallel()
	r := dockertest.New(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := r.Create(t.Context(), spec()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	list, err := r.List(t.Context())
	if err != nil || len(list) != 4 {
		t.Errorf("%d sandboxes, %v", len(list), err)
	}
}

func TestCreate_RefusesAnImageThatLacksWhatIsNeeded(t *testing.T) {
	t.Parallel()
	for lack, dockerfile := range map[string]string{
		"lacks git":  "FROM " + dockertest.Image(t) + "\nUSER 0\nRUN rm /usr/bin/git",
		"lacks bash": "FROM scratch\nLABEL empty=true",
		// As if bash were another processor's: an ELF head of machine 0xffff.
		"another processor": "FROM " + dockertest.Image(t) + "\nUSER 0\nRUN printf '\\177ELF\\2\\1\\1\\0\\0\\0\\0\\0\\0\\0\\0\\0\\2\\0\\377\\377\\1\\0\\0\\0' > /tmp/b && chmod 755 /tmp/b && mv /tmp/b \"$(command -v bash)\"",
	} {
		t.Run(lack, func(t *testing.T) {
			t.Parallel()
			config := dockertest.Config(t)
			config.Image = "agent-sandboxing-test/" + config.Instance
			build := exec.CommandContext(t.Context(), "docker", "build", "-q", "--network", "none", "-t", config.Image, "-")
			build.Stdin = strings.NewReader(dockerfile)
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("docker build: %v\n%s", err, out)
			}
			t.Cleanup(func() { dockertest.Docker(t, "rmi", "-f", config.Image) })
			_, err := dockertest.Open(t, config).Create(t.Context(), spec())
			wantCode(t, err, "image_unsupported")
			if !strings.Contains(core.MessageOf(err), lack) {
				t.Errorf("message %q does not name %s", core.MessageOf(err), lack)
			}
		})
	}
}

func TestCreate_RefusesWithACodeForEachCause(t *testing.T) {
	t.Parallel()
	for code, change := range map[string]func(*docker.Config){
		"image_missing":       func(c *docker.Config) { c.Image = "agent-sandboxing/sandbox:not-here" },
		"runtime_unavailable": func(c *docker.Config) { c.Runtime = "not-a-runtime" },
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			config := dockertest.Config(t)
			change(&config)
			_, err := dockertest.Open(t, config).Create(t.Context(), spec())
			wantCode(t, err, code)
		})
	}
}

func TestStates_StopStartRemoveAreRepeatable(t *testing.T) {
	t.Parallel()
	r := dockertest.New(t)
	b := start(t, r, spec())
	b.sh(t, "echo work > new.txt")
	for range 2 {
		if err := r.Start(t.Context(), b.ref); err != nil {
			t.Errorf("start a running one: %v", err)
		}
	}
	for range 2 {
		if err := r.Stop(t.Context(), b.ref); err != nil {
			t.Errorf("stop: %v", err)
		}
	}
	status, err := r.Inspect(t.Context(), b.ref)
	if err != nil || status.Running || status.ExitCode != 137 {
		t.Errorf("after stop: %+v, %v", status, err)
	}
	<-b.Done() // the stream has ended with the container
	_, err = b.Stat(t.Context(), ".")
	wantCode(t, err, "sandbox_lost")

	for range 2 {
		if err := r.Remove(t.Context(), b.ref, true); err != nil {
			t.Errorf("remove: %v", err)
		}
	}
	_, err = r.Inspect(t.Context(), b.ref)
	wantCode(t, err, "sandbox_lost")
	wantCode(t, r.Start(t.Context(), b.ref), "sandbox_lost")
	_, err = r.Attach(t.Context(), b.ref)
	wantCode(t, err, "sandbox_lost")
	if left := dockertest.Docker(t, "volume", "ls", "-q", "--filter", "name="+status.Volume); left != "" {
		t.Errorf("the volume is left: %s", left)
	}
}

func TestList_ShowsOnlyThisInstallation(t *testing.T) {
	t.Parallel()
	mine, foreign := dockertest.New(t), dockertest.New(t)
	s := spec()
	b := start(t, mine, s)
	ref, err := foreign.Create(t.Context(), spec())
	if err != nil {
		t.Fatal(err)
	}
	list, err := mine.List(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("list %+v, %v", list, err)
	}
	got := list[0]
	if got.Ref != b.ref || got.Session != s.Session || got.Sandbox != s.Sandbox || got.Generation != 1 || !got.Running || got.Volume == "" {
		t.Errorf("listed %+v", got)
	}
	_, err = mine.Inspect(t.Context(), ref)
	wantCode(t, err, "sandbox_lost")
	if err := mine.Remove(t.Context(), ref, true); err != nil { // not ours, so as good as absent
		t.Error(err)
	}
	if _, err := foreign.Inspect(t.Context(), ref); err != nil {
		t.Errorf("another installation's container is gone: %v", err)
	}
}

func TestAttach_AgainAfterADetachFindsTheSameToolbox(t *testing.T) {
	t.Parallel()
	r := dockertest.New(t)
	b := start(t, r, spec())
	b.sh(t, "echo state > /tmp/state")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	again := attach(t, r, b.ref)
	if _, got := again.sh(t, "cat /tmp/state"); got != "state" {
		t.Errorf("after attaching again: %q", got)
	}
}

// A client that is connected but does not read must not hold up the daemon.
func TestAttach_AnUnreadStreamDoesNotStallTheDaemon(t *testing.T) {
	t.Parallel()
	r := dockertest.New(t)
	b := start(t, r, spec())
	stream, err := r.Attach(t.Context(), b.ref) // reads on its own, though nobody reads from it
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	if _, err := b.Read(t.Context(), "/tmp/none", 0, 0); core.CodeOf(err) != "not_found" {
		t.Fatal(err)
	}
	b.sh(t, "head -c 3000000 /dev/zero > big")
	if _, err := b.Read(t.Context(), "big", 0, 3000000); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10e9)
	defer cancel()
	if err := r.Stop(ctx, b.ref); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func TestCapabilities_SayWhatTheHostOffers(t *testing.T) {
	t.Parallel()
	config := dockertest.Config(t)
	got, err := dockertest.Open(t, config).Capabilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := sandbox.Capabilities{Runtime: dockertest.Runtime(), RuntimeKnown: true, ServerVersion: got.ServerVersion, Seccomp: true, CgroupVersion: got.CgroupVersion, ImageReady: true, ImageRef: config.Image, DiskBudget: got.DiskBudget, MemoryBytes: got.MemoryBytes, Processors: got.Processors}
	if got != want || got.ServerVersion == "" || got.CgroupVersion == "" || got.DiskBudget == "" || got.MemoryBytes == 0 || got.Processors == 0 {
		t.Errorf("capabilities %+v", got)
	}
}
