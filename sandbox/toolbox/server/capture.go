package server

import (
	"bytes"
	"os"
	"path"
	"syscall"

	"agent-sandboxing/sandbox/toolbox/wire"
)

// outputDir is where whole outputs are kept, below the /tmp root.
const outputDir = "agent-out"

// capture keeps the first and the last bytes of an output, counts all of it, and, once that is not
// everything, writes the whole to a log file. It never fails and never makes a command wait for more
// than a file write.
type capture struct {
	keepHead, keepTail int

	head  []byte
	tail  []byte // a ring once it is full
	start int    // of the ring
	total int64
	lines int64

	openLog func() *os.File // nil for no log
	log     *os.File
	room    int64 // bytes that the log may still grow
	logged  bool
}

// newCapture makes a capture whose log, when asked for, goes below /tmp.
func newCapture(files *Files, a wire.RunArgs) *capture {
	c := &capture{keepHead: max(a.KeepHead, 0), keepTail: max(a.KeepTail, 0), room: a.MaxLog}
	if a.LogName != "" {
		c.openLog = func() *os.File { return files.createLog(a.LogName) }
	}
	return c
}

func (c *capture) Write(p []byte) (int, error) {
	n := len(p)
	if c.openLog != nil && c.total+int64(n) > int64(c.keepHead+c.keepTail) {
		// From here on head and tail are not everything.
		if c.log = c.openLog(); c.log != nil {
			c.logged = true
			c.append(c.head)
			c.append(c.lastBytes())
		}
		c.openLog = nil
	}
	c.append(p)
	c.total += int64(n)
	c.lines += int64(bytes.Count(p, []byte{'\n'}))
	take := min(len(p), c.keepHead-len(c.head))
	c.head = append(c.head, p[:take]...)
	c.keepLast(p[take:])
	return n, nil
}

func (c *capture) keepLast(p []byte) {
	if len(p) >= c.keepTail {
		c.tail, c.start = append(c.tail[:0], p[len(p)-c.keepTail:]...), 0
		return
	}
	grow := min(len(p), c.keepTail-len(c.tail))
	c.tail = append(c.tail, p[:grow]...)
	for p = p[grow:]; len(p) > 0; {
		n := copy(c.tail[c.start:], p)
		c.start = (c.start + n) % len(c.tail)
		p = p[n:]
	}
}

// lastBytes is the ring in order.
func (c *capture) lastBytes() []byte {
	return append(bytes.Clone(c.tail[c.start:]), c.tail[:c.start]...)
}

// append adds p to the log, if there is one and while it has room.
func (c *capture) append(p []byte) {
	if c.log == nil {
		return
	}
	p = p[:min(int64(len(p)), c.room)]
	n, err := c.log.Write(p)
	if c.room -= int64(n); err != nil {
		c.room = 0 // a full disk costs the log, not the command
	}
}

// close ends the log.
func (c *capture) close() {
	if c.log != nil {
		_ = c.log.Close()
	}
}

// fill puts what was captured into a result.
func (c *capture) fill(r *wire.RunResult) {
	r.Head, r.Tail = c.head, c.lastBytes()
	r.Total, r.Lines, r.Logged = c.total, c.lines, c.logged
}

// createLog makes a new log file, or returns nil.
func (f *Files) createLog(name string) *os.File {
	if name != path.Base(name) || name == "." || name == ".." {
		return nil
	}
	if f.tmp.MkdirAll(outputDir, 0o755) != nil {
		return nil
	}
	file := path.Join(outputDir, name)
	_ = f.tmp.Remove(file) // whatever it was: nothing is written through it
	log, err := f.tmp.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o644)
	if err != nil {
		return nil
	}
	return log
}
