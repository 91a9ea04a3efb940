package server

import (
	"context"
	"errors"
	"os"
	"path"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// How closely a command is watched. A look at the file system costs one call; a walk through the
// workspace costs what it holds, so it is made when the look says that much was written, and seldom else.
const (
	lookEvery   = 250 * time.Millisecond
	walkEvery   = 10 * time.Second
	walkLimit   = 5 * time.Second // a walk that takes longer counts less than there is
	walkShare   = 20              // a walk is followed by at least so many times its own duration of peace
	someBytes   = 64 << 20
	someEntries = 10_000
)

// Why a watch ended a command.
var (
	errOverBudget = errors.New("the workspace holds more than its budget")
	errHostFull   = errors.New("the host's disk is almost full")
)

// fsSpace is what a file system has left.
type fsSpace struct {
	bytes   int64
	entries int64
}

// usage is what a workspace holds.
type usage struct {
	bytes   int64 // allocated
	entries int64
}

// budget watches the workspace while a command runs. The kernel's own quota, where the host has one, is
// met first; this is for all other hosts, and for the number of files.
type budget struct {
	dir     string
	bytes   int64 // 0: any
	entries int64 // 0: any
	minFree int64 // of the file system, bytes

	began, walked fsSpace   // the file system at the beginning and at the last walk
	last          usage     // of the last walk
	known         bool      // there was a walk
	next, latest  time.Time // of the next walk: not before, and not after
}

// watch ends the command by stop when the workspace has grown above its budget, until ctx ends.
func (b *budget) watch(ctx context.Context, stop func(error)) {
	var err error
	if b.began, err = space(b.dir); err != nil {
		return
	}
	b.walked, b.latest = b.began, time.Now().Add(walkEvery)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := b.look(ctx); err != nil {
			stop(err)
			return
		}
	}
}

// look says why the command has to end, nil when it may go on.
func (b *budget) look(ctx context.Context) error {
	now, err := space(b.dir)
	if err != nil {
		return nil
	}
	written := b.began.bytes - now.bytes
	if b.minFree > 0 && now.bytes < b.minFree && written > 0 {
		return errHostFull
	}
	if !b.due(now) {
		return nil
	}
	before, first := b.last, !b.known
	began := time.Now()
	b.last, b.known, b.walked = measure(ctx, b.dir, began.Add(walkLimit)), true, now
	b.next = time.Now().Add(time.Since(began) * walkShare)
	b.latest = b.next.Add(walkEvery)
	over := b.bytes > 0 && b.last.bytes > b.bytes || b.entries > 0 && b.last.entries > b.entries
	grown := b.last.bytes > before.bytes || b.last.entries > before.entries
	if first {
		grown = written > 0 || b.began.entries > now.entries
	}
	if over && grown { // one that only removes things may go on
		return errOverBudget
	}
	return nil
}

// due says whether so much was written since the last walk that another is worth its while.
func (b *budget) due(now fsSpace) bool {
	if b.bytes <= 0 && b.entries <= 0 {
		return false
	}
	bytes, entries := b.walked.bytes-now.bytes, b.walked.entries-now.entries
	if b.known && (b.bytes > 0 && bytes > max(b.bytes-b.last.bytes, someBytes/4) || b.entries > 0 && entries > max(b.entries-b.last.entries, someEntries/4)) {
		return true // it may be over by now
	}
	if time.Now().Before(b.next) {
		return false
	}
	return b.bytes > 0 && bytes >= min(someBytes, b.bytes/4) || b.entries > 0 && entries >= min(someEntries, b.entries/4) || time.Now().After(b.latest)
}

// space asks what the file system of dir has left.
func space(dir string) (fsSpace, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fsSpace{}, err
	}
	return fsSpace{bytes: int64(fs.Bavail) * fs.Bsize, entries: int64(fs.Ffree)}, nil
}

// measure adds up what is below dir, a file with several names once, and the files that have no name
// any more but are still open. A folder that cannot be read counts as itself.
func measure(ctx context.Context, dir string, until time.Time) usage {
	m := meter{until: until, seen: map[uint64]bool{}}
	var top unix.Stat_t
	if unix.Lstat(dir, &top) != nil {
		return usage{}
	}
	m.device = top.Dev
	root, err := os.OpenRoot(dir)
	if err != nil {
		return usage{}
	}
	defer root.Close()
	m.folder(ctx, root, ".")
	m.nameless(ctx)
	return m.usage
}

type meter struct {
	usage
	device uint64
	until  time.Time
	seen   map[uint64]bool // inodes that have several names, or none
}

func (m *meter) over(ctx context.Context) bool { return ctx.Err() != nil || time.Now().After(m.until) }

func (m *meter) folder(ctx context.Context, root *os.Root, rel string) {
	if m.over(ctx) {
		return
	}
	dir, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return
	}
	var below []string
	for !m.over(ctx) {
		names, err := dir.Readdirnames(1024)
		for _, name := range names {
			var st unix.Stat_t
			if unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue // gone meanwhile
			}
			if st.Mode&unix.S_IFMT == unix.S_IFDIR {
				below = append(below, name)
			}
			m.add(&st)
		}
		if err != nil || len(names) == 0 {
			break
		}
	}
	_ = dir.Close()
	for _, name := range below {
		m.folder(ctx, root, path.Join(rel, name))
	}
}

func (m *meter) add(st *unix.Stat_t) {
	if st.Mode&unix.S_IFMT != unix.S_IFDIR && st.Nlink != 1 {
		if m.seen[st.Ino] {
			return
		}
		m.seen[st.Ino] = true
	}
	m.bytes += st.Blocks * 512
	m.entries++
}

// nameless adds the files that our processes hold open after they were removed.
func (m *meter) nameless(ctx context.Context) {
	pids := others()
	if os.Getpid() != 1 {
		pids = descendants(os.Getpid())
	}
	for _, pid := range pids {
		dir, err := os.Open(path.Join("/proc", strconv.Itoa(pid), "fd"))
		if err != nil {
			continue
		}
		for !m.over(ctx) {
			names, err := dir.Readdirnames(256)
			for _, name := range names {
				var st unix.Stat_t
				if unix.Fstatat(int(dir.Fd()), name, &st, 0) == nil && st.Nlink == 0 && st.Dev == m.device && st.Mode&unix.S_IFMT == unix.S_IFREG {
					m.add(&st)
				}
			}
			if err != nil || len(names) == 0 {
				break
			}
		}
		_ = dir.Close()
	}
}
