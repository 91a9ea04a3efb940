package server

import (
	"os"
	"strconv"
	"strings"
)

// oomCounter is the file in which the kernel counts the sandbox's processes that it killed for want
// of memory; "" when there is none to read.
type oomCounter string

// findOOMCounter looks where cgroup v2 and v1 have it.
func findOOMCounter() oomCounter {
	for _, file := range []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"} {
		if _, err := os.Stat(file); err == nil {
			return oomCounter(file)
		}
	}
	return ""
}

func (c oomCounter) read() int64 {
	if c == "" {
		return 0
	}
	text, err := os.ReadFile(string(c))
	if err != nil {
		return 0
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(count), 10, 64)
			return n
		}
	}
	return 0
}
