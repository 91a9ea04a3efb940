package server

import (
	"os"
	"strconv"
	"strings"
)

// memoryGroup is where the kernel tells of the sandbox's memory; the zero value tells nothing.
type memoryGroup struct {
	events string // a file that counts the processes that were killed for want of it
	max    string // a file with the limit
}

// findMemoryGroup looks where cgroup v2 and v1 have it.
func findMemoryGroup() memoryGroup {
	for _, g := range []memoryGroup{
		{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory.max"},
		{"/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory/memory.limit_in_bytes"},
	} {
		if _, err := os.Stat(g.events); err == nil {
			return g
		}
	}
	return memoryGroup{}
}

// kills is how often a process was killed for want of memory so far.
func (g memoryGroup) kills() int64 {
	for line := range strings.SplitSeq(readSmall(g.events), "\n") {
		if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
			return number(count)
		}
	}
	return 0
}

// limit is in bytes, 0 when there is none or it is not known.
func (g memoryGroup) limit() int64 { return number(readSmall(g.max)) }

func readSmall(file string) string {
	if file == "" {
		return ""
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return string(text)
}

func number(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0 // "max" too
	}
	return max(n, 0)
}
