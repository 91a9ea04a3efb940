package docker

import (
	"bufio"
	"context"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"agent-sandboxing/sandbox"
)

// Space looks at this machine when the daemon is on it. Else nothing is known: the daemon does not
// tell, and its data folder is another machine's.
func (r *Runtime) Space(ctx context.Context) (sandbox.Space, error) {
	dir, err := r.dataDir(ctx)
	if err != nil || dir == "" {
		return sandbox.Space{}, err
	}
	var disk unix.Statfs_t
	if unix.Statfs(dir, &disk) != nil {
		return sandbox.Space{}, nil // a daemon in a mount namespace of its own
	}
	memory, ok := availableMemory()
	if !ok {
		return sandbox.Space{}, nil
	}
	return sandbox.Space{Known: true, Disk: int64(disk.Bavail) * disk.Bsize, Memory: memory}, nil
}

// dataDir is where the daemon keeps containers and volumes, "" when it is not on this machine: it is
// when it is reached by a socket file and has this machine's name.
func (r *Runtime) dataDir(ctx context.Context) (string, error) {
	if !strings.HasPrefix(r.config.Host, "unix://") {
		return "", nil
	}
	r.mu.Lock()
	known := r.data
	r.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	info, err := r.info(ctx)
	if err != nil {
		return "", err
	}
	dir := info.DockerRootDir
	if name, err := os.Hostname(); err != nil || name != info.Name {
		dir = ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.data = &dir
	return dir, nil
}

func availableMemory() (bytes int64, ok bool) {
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if rest, found := strings.CutPrefix(lines.Text(), "MemAvailable:"); found {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10, err == nil
		}
	}
	return 0, false
}
