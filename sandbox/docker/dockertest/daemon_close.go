package dockertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Close ends the daemon with every container of it and removes all that it wrote, also when ctx has
// ended already.
func (d *Daemon) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Minute) // whatever became of the suite
	defer cancel()
	err := errors.Join(d.Kill(ctx), erase(ctx, d.dir))
	if err != nil {
		return fmt.Errorf("close the private Docker daemon: %w", err)
	}
	return nil
}

// sweep removes what suites left that were killed themselves.
func sweep(ctx context.Context) error {
	left, err := filepath.Glob(filepath.Join(daemonFolder, daemonPrefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range left {
		owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), daemonPrefix), "-")
		if pid, err := strconv.Atoi(owner); err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			if err := erase(ctx, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// slay ends every process of a daemon's folder, the containers' first. One that is being born
// meanwhile is met in the next round.
func slay(ctx context.Context, dir string) error {
	for {
		pids := append(inside(filepath.Base(dir)), naming(dir)...)
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			_ = root(ctx, "kill", "-KILL", strconv.Itoa(pid)) // it may be gone already
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("processes %v do not end: %w", pids, err)
		}
	}
}

// erase ends every process of a daemon's folder, and removes its mounts, cgroups and files.
func erase(ctx context.Context, dir string) error {
	if err := slay(ctx, dir); err != nil {
		return err
	}
	for _, point := range mounts(dir) {
		if err := root(ctx, "umount", "-l", point); err != nil {
			return err
		}
	}
	for _, group := range groups(filepath.Base(dir)) {
		if err := root(ctx, "find", group, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";"); err != nil {
			return err
		}
	}
	return root(ctx, "rm", "-rf", dir)
}

// owns says whether a process is one of this daemon's programs.
func (d *Daemon) owns(pid int) bool { return names(pid, d.dir) }

func names(pid int, dir string) bool {
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	return err == nil && bytes.Contains(line, []byte(dir))
}

// naming are the processes that have a folder in their arguments: dockerd, containerd and the shims.
func naming(dir string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid != os.Getpid() && names(pid, dir) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// groups are the cgroups of a daemon's containers, one for each hierarchy.
func groups(name string) []string {
	var found []string
	for _, pattern := range []string{"/sys/fs/cgroup/" + name, "/sys/fs/cgroup/*/" + name} {
		if paths, err := filepath.Glob(pattern); err == nil {
			found = append(found, paths...)
		}
	}
	return found
}

// inside are the processes of a daemon's containers.
func inside(name string) []int {
	var pids []int
	for _, group := range groups(name) {
		_ = filepath.WalkDir(group, func(path string, e fs.DirEntry, err error) error { // a group may go while we look
			if err == nil && e.Name() == "cgroup.procs" {
				text, _ := os.ReadFile(path)
				for word := range strings.FieldsSeq(string(text)) {
					if pid, err := strconv.Atoi(word); err == nil && pid > 1 {
						pids = append(pids, pid)
					}
				}
			}
			return nil
		})
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// mounts are the mount points below a folder, the innermost first.
func mounts(dir string) []string {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	var points []string
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], dir+"/") {
			points = append(points, fields[4])
		}
	}
	slices.Reverse(points)
	return points
}

func pidOf(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// asRoot is a command line that runs as root.
func asRoot(args ...string) []string {
	if os.Getuid() == 0 {
		return args
	}
	return append([]string{"sudo", "-n"}, args...)
}

func root(ctx context.Context, args ...string) error {
	args = asRoot(args...)
	if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}
