package localpg

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agent-sandboxing/core"
)

// lock keeps two of our processes from starting the server at the same moment.
func (f *folder) lock(ctx context.Context) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(f.root, "postgres.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, unusable(f.root, err)
	}
	free := func() (bool, error) {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == syscall.EWOULDBLOCK {
			return false, nil
		}
		return err == nil, err
	}
	done, err := wait(ctx, recoverWait, free)
	if err != nil || !done {
		_ = file.Close() // nothing was written
		if err == nil {
			err = locked("another start of this program")
		}
		return nil, err
	}
	return func() { _ = file.Close() }, nil // closing unlocks
}

// waitFree waits for the folder to have no server. It returns the socket of one that runs and
// answers, to be adopted. Unavailable postgres_locked when one holds the folder and does not answer.
func (f *folder) waitFree(ctx context.Context, most time.Duration) (socket string, err error) {
	var holder int
	done, err := wait(ctx, most, func() (bool, error) {
		var err error
		if holder, err = f.holder(); err != nil {
			return false, unusable(f.root, err)
		}
		if holder == 0 {
			return true, f.removeStaleLock()
		}
		dir, starter := f.recordedSocket()
		// A server whose starter has died is told to stop, though it may still answer.
		if dir != "" && f.parent() == starter && answers(ctx, dir, f.data) {
			socket = dir
			return true, nil
		}
		return false, nil
	})
	if err == nil && !done {
		err = locked(fmt.Sprintf("process %d", holder))
	}
	return socket, err
}

// holder is a Postgres process that works in the folder, 0 when there is none. Children outlive a
// killed server for a moment and hold its memory, so all processes are looked at, not only the one
// of the pid file: its number may belong to anybody by now.
func (f *folder) holder() (int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		comm, err := os.ReadFile(filepath.Join("/proc", e.Name(), "comm"))
		if err != nil || !bytes.HasPrefix(comm, []byte("postgres")) {
			continue // gone, or something else
		}
		if sameFolder(filepath.Join("/proc", e.Name(), "cwd"), f.data) {
			return pid, nil
		}
	}
	return 0, nil
}

// parent is the process that the server of the pid file is a child of, 0 when there is none.
func (f *folder) parent() int {
	text, err := os.ReadFile(filepath.Join(f.data, "postmaster.pid"))
	if err != nil {
		return 0
	}
	pid, _, _ := strings.Cut(string(text), "\n")
	stat, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(pid), "stat"))
	if err != nil {
		return 0
	}
	var state string
	var parent int
	// pid (comm) state ppid …, and the name may hold anything.
	if _, err := fmt.Sscan(string(stat[bytes.LastIndexByte(stat, ')')+1:]), &state, &parent); err != nil {
		return 0
	}
	return parent
}

// removeStaleLock removes a pid file that no server stands behind.
func (f *folder) removeStaleLock() error {
	pidFile := filepath.Join(f.data, "postmaster.pid")
	if there, err := exists(pidFile); err != nil || !there {
		return err
	}
	if err := os.Remove(pidFile); err != nil {
		return unusable(f.root, err)
	}
	return nil
}

// wait asks ready until it says true or fails, for most at the longest; false means that time is up.
func wait(ctx context.Context, most time.Duration, ready func() (bool, error)) (bool, error) {
	deadline := time.NewTimer(most)
	defer deadline.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if done, err := ready(); done || err != nil {
			return done, err
		}
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-deadline.C:
			return false, nil
		case <-tick.C:
		}
	}
}

func locked(by string) *core.Error {
	return core.Fail(core.Unavailable, "postgres_locked", fmt.Sprintf("The local database is held by %s and does not answer. Stop that, or set DATABASE_URL to a database of your own.", by))
}
