package docker

import (
	"os"
	"strconv"

	"github.com/docker/docker/api/types/container"

	"agent-sandboxing/sandbox"
)

// control is one rule of every container of ours. The table of them (controls.go) makes each container,
// and is held against a live one by doctor and by the tests: as the daemon has it, and as it shows from
// inside, because neither alone is proof.
type control struct {
	name string
	why  string
	// set makes it so; nil when it follows from what others set.
	set func(*made)
	// daemon is what its inspection must give, printed as %v, and want what that has to be.
	daemon func(container.InspectResponse) any
	want   string
	// inside is a shell text, and prints what it must print as the sandbox's user. It may do no harm on a
	// host where the control does not hold.
	inside, prints string
	// gvisor is printed instead under runsc, where it shows otherwise; "" is the same.
	gvisor string
	// remedy is what to do on a host where it does not hold; "" when that is a defect of ours or Docker's.
	remedy string
}

// made is a container in the making.
type made struct {
	config  *container.Config
	host    *container.HostConfig
	limits  sandbox.Limits
	runtime string
}

// hardened is what every container of ours has, whatever runs in it.
func hardened(image, runtime string, limits sandbox.Limits) (container.Config, container.HostConfig) {
	config := container.Config{
		Image:        image, // an id, so that a moved tag changes nothing
		WorkingDir:   "/",
		OpenStdin:    true, // the toolbox's channel; it stays open between attaches
		AttachStdin:  true,
		AttachStdout: true,
		AttachStderr: true, // says why a start failed
	}
	var host container.HostConfig
	for _, c := range controls() {
		if c.set != nil {
			c.set(&made{config: &config, host: &host, limits: limits, runtime: runtime})
		}
	}
	return config, host
}

// filled replaces $memory, $cpus and the like by the limits of a container.
func filled(text, runtime string, limits sandbox.Limits) string {
	return os.Expand(text, func(name string) string {
		switch name {
		case "runtime":
			return runtime
		case "memory":
			return strconv.FormatInt(limits.MemoryBytes, 10)
		case "cpus":
			return strconv.FormatInt(nanoCPUs(limits), 10)
		case "quota": // of 100 ms
			return strconv.FormatInt(nanoCPUs(limits)/1e4, 10)
		case "pids":
			return strconv.FormatInt(pidsLimit(runtime, limits), 10)
		case "processes":
			return strconv.FormatInt(processes(limits), 10)
		case "filesize":
			if limits.DiskBytes == 0 {
				return "none"
			}
			return strconv.FormatInt(limits.DiskBytes, 10)
		case "fileblocks": // as the shell counts
			if limits.DiskBytes == 0 {
				return "unlimited"
			}
			return strconv.FormatInt(limits.DiskBytes>>10, 10)
		default:
			return "$" + name
		}
	})
}

func nanoCPUs(limits sandbox.Limits) int64 { return int64(limits.CPUs * 1e9) }

// pidsLimit is the cgroup's. Under gVisor it counts the sentry's threads and ends the whole sandbox, so
// that it is only a backstop there; what bounds processes is nproc, which is the sandbox's own.
func pidsLimit(runtime string, limits sandbox.Limits) int64 {
	if runtime == gvisor {
		return 8 * limits.PIDs
	}
	return limits.PIDs
}

// processMemory is what gVisor's kernel may need for one more process, which counts as the sandbox's own. Bytes.
const processMemory = 6 << 20

// processes is nproc under gVisor: so many that a fork bomb does not end the sandbox for want of memory.
func processes(limits sandbox.Limits) int64 {
	return min(limits.PIDs, limits.MemoryBytes/processMemory)
}

// gvisor is the name under which gVisor's runtime is registered with the daemon.
const gvisor = "runsc"
