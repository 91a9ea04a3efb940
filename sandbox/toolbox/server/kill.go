package server

import (
	"errors"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// killPause lets the kernel make progress between two rounds: tight rounds never end against a
	// fork bomb.
	killPause = 2 * time.Millisecond
	// killLimit ends the rounds when a process cannot die (it hangs in the kernel).
	killLimit = time.Second
)

// killer ends every process but this one and says how many there were. reap collects the dead.
type killer interface {
	killAll(reap func()) int
}

// killEverything is for PID 1: the whole sandbox.
type killEverything struct{}

func (killEverything) killAll(reap func()) int {
	reap()
	killed := len(others())
	for end := time.Now().Add(killLimit); time.Now().Before(end); {
		err := unix.Kill(-1, unix.SIGKILL)
		reap()
		if errors.Is(err, unix.ESRCH) {
			break
		}
		<-time.After(killPause)
	}
	return killed
}

// others lists the processes of the sandbox but PID 1, zombies not counted.
func others() []int {
	var pids []int
	for pid, st := range processes() {
		if pid != 1 && st.state != 'Z' {
			pids = append(pids, pid)
		}
	}
	return pids
}

// killDescendants is for a subreaper, whose orphans stay its descendants however they detach.
type killDescendants struct{}

func (killDescendants) killAll(reap func()) int {
	reap()
	seen := map[int]bool{}
	for end := time.Now().Add(killLimit); time.Now().Before(end); {
		pids := descendants(os.Getpid())
		if len(pids) == 0 {
			break
		}
		for _, pid := range pids {
			seen[pid] = true
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		reap()
		<-time.After(killPause)
	}
	return len(seen)
}

// descendants lists the living processes below root.
func descendants(root int) []int {
	all := processes()
	var pids []int
	for pid, st := range all {
		if st.state == 'Z' {
			continue
		}
		// The listing is no snapshot, so a chain may be wrong, even a circle: it has an end here.
		above := st.parent
		for range len(all) {
			if above <= 1 || above == root {
				break
			}
			above = all[above].parent
		}
		if above == root {
			pids = append(pids, pid)
		}
	}
	return pids
}

// procStat is what /proc says of a process.
type procStat struct {
	parent int
	state  byte
}

func processes() map[int]procStat {
	found := map[int]procStat{}
	dir, err := os.Open("/proc")
	if err != nil {
		return found
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what could be read counts
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		text, err := os.ReadFile(path.Join("/proc", name, "stat"))
		if err != nil {
			continue // gone meanwhile
		}
		// pid (name) state parent …; the name may hold anything, ")" too.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(fields) < 2 || fields[0] == "" {
			continue
		}
		parent, _ := strconv.Atoi(fields[1])
		found[pid] = procStat{parent: parent, state: fields[0][0]}
	}
	return found
}
