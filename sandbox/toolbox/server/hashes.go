package server

import (
	"encoding/hex"
	"io/fs"
	"syscall"
	"time"
)

const (
	// maxHashes bounds the files whose hashes are kept, about 150 bytes each.
	maxHashes = 100_000
	// settled is how long a file must not have changed before it was read: a change within one tick of
	// the file system's clock could leave no other time behind.
	settled = time.Second
)

// hashes remembers the blobs of files between two scans of the work tree, so that only what has changed
// is read again. A file counts as unchanged when the kernel says so: its inode, size and the time of its
// last change, which no command can set. Scans never run beside commands or each other.
type hashes struct {
	last map[string]hashed // of the scan before
	next map[string]hashed // of the one that runs
}

// hashed is a file as it was when its blob was computed.
type hashed struct {
	dev, ino       uint64
	size           int64
	changed, wrote syscall.Timespec
	blob           [20]byte
}

// begin starts a scan; only what is met in it is remembered.
func (h *hashes) begin() { h.next = make(map[string]hashed, len(h.last)) }

// end makes what the scan has met what the next one may rely on.
func (h *hashes) end() { h.last, h.next = h.next, nil }

// find returns the blob of a file that has not changed since it was hashed.
func (h *hashes) find(rel string, info fs.FileInfo) (blob string, ok bool) {
	was, ok := h.last[rel]
	now, known := stamp(info)
	now.blob = was.blob
	if !ok || !known || was != now {
		return "", false
	}
	h.keep(rel, was)
	return hex.EncodeToString(was.blob[:]), true
}

// add remembers the blob of a file that was read from its begin at a time, when info was taken.
func (h *hashes) add(rel string, info fs.FileInfo, read time.Time, blob []byte) {
	file, known := stamp(info)
	if !known || read.Sub(time.Unix(file.changed.Unix())) < settled {
		return
	}
	copy(file.blob[:], blob)
	h.keep(rel, file)
}

func (h *hashes) keep(rel string, file hashed) {
	if h.next != nil && len(h.next) < maxHashes {
		h.next[rel] = file
	}
}

func stamp(info fs.FileInfo) (hashed, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return hashed{}, false
	}
	return hashed{dev: uint64(st.Dev), ino: st.Ino, size: st.Size, changed: st.Ctim, wrote: st.Mtim}, true //nolint:unconvert // not 64 bits everywhere
}
