package toolbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/toolbox/wire"
)

var (
	hexSHA256 = regexp.MustCompile(`^[0-9a-f]{64}$`)
	hexSHA1   = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// Read returns up to limit bytes from offset. SHA256 is of the whole file, and empty for one larger
// than core.MaxRead.
func (c *Client) Read(ctx context.Context, name string, offset, limit int64) (core.FileData, error) {
	if offset < 0 || limit < 0 {
		return core.FileData{}, core.Fail(core.Invalid, "range_invalid", "Offset and limit must not be negative.")
	}
	if limit == 0 || limit > core.MaxRead {
		limit = core.MaxRead
	}
	args := wire.ReadArgs{Path: wire.Name(name), Offset: offset, Limit: limit, Max: core.MaxRead}
	data := &bounded{room: int(limit)}
	res, err := do[wire.ReadArgs, wire.ReadResult](ctx, c, request{verb: wire.VerbRead, detail: name, sink: data}, args)
	if err != nil {
		return core.FileData{}, err
	}
	stat, ok := fileStat(res.Stat)
	whole := offset == 0 && res.EOF
	if !ok || stat.Kind != core.FileRegular || whole && stat.SHA256 != "" && stat.SHA256 != sum(data.Bytes()) {
		return core.FileData{}, c.forged()
	}
	return core.FileData{FileStat: stat, Offset: offset, Data: data.Bytes(), EOF: res.EOF}, nil
}

// Write replaces or creates one file atomically.
func (c *Client) Write(ctx context.Context, w core.WriteFile) (core.FileStat, error) {
	if len(w.Data) > core.MaxWrite {
		return core.FileStat{}, core.Fail(core.TooLarge, "file_too_large", "A write holds at most 1 MiB. Write the file in parts with a command.")
	}
	if w.Expect != "" && w.Expect != "absent" && !hexSHA256.MatchString(w.Expect) {
		return core.FileStat{}, core.Fail(core.Invalid, "expect_invalid", `Expect is "absent" or a SHA-256 in hexadecimal.`)
	}
	mode := w.Mode.Perm()
	if mode == 0 {
		mode = 0o644
	}
	args := wire.WriteArgs{Path: wire.Name(w.Path), Mode: uint32(mode), Expect: w.Expect, Max: core.MaxWrite}
	req := request{verb: wire.VerbWrite, detail: w.Path, body: bytes.NewReader(w.Data)}
	res, err := do[wire.WriteArgs, wire.Stat](ctx, c, req, args)
	if err != nil {
		return core.FileStat{}, err
	}
	stat, ok := fileStat(res)
	if !ok || stat.Kind != core.FileRegular || stat.SHA256 != sum(w.Data) {
		return core.FileStat{}, c.forged()
	}
	return stat, nil
}

// Stat describes the path itself.
func (c *Client) Stat(ctx context.Context, name string) (core.FileStat, error) {
	res, err := do[wire.StatArgs, wire.Stat](ctx, c, request{verb: wire.VerbStat, detail: name}, wire.StatArgs{Path: wire.Name(name)})
	if err != nil {
		return core.FileStat{}, err
	}
	stat, ok := fileStat(res)
	if !ok {
		return core.FileStat{}, c.forged()
	}
	return stat, nil
}

// bounded collects at most room bytes.
type bounded struct {
	bytes.Buffer
	room int
}

func (b *bounded) Write(p []byte) (int, error) {
	if len(p) > b.room-b.Len() {
		return 0, errForged
	}
	return b.Buffer.Write(p)
}

var _ io.Writer = (*bounded)(nil)

// fileStat checks a stat; false when it cannot be one.
func fileStat(s wire.Stat) (core.FileStat, bool) {
	kind := core.FileKind(s.Kind)
	switch kind {
	case core.FileRegular, core.FileDir, core.FileLink, core.FileOther:
	default:
		return core.FileStat{}, false
	}
	if !validPath(string(s.Path)) || s.Size < 0 || len(s.Target) > maxPath ||
		s.SHA256 != "" && !hexSHA256.MatchString(s.SHA256) {
		return core.FileStat{}, false
	}
	return core.FileStat{
		Path:   string(s.Path),
		Kind:   kind,
		Size:   s.Size,
		Mode:   fs.FileMode(s.Mode).Perm(),
		Target: string(s.Target),
		SHA256: s.SHA256,
	}, true
}

const maxPath = 8 << 10 // bytes

// validPath accepts a clean path relative to the repository, or an absolute one below /tmp.
func validPath(p string) bool {
	if p == "" || len(p) > maxPath || strings.ContainsRune(p, 0) || path.Clean(p) != p {
		return false
	}
	if strings.HasPrefix(p, "/") {
		return p == "/tmp" || strings.HasPrefix(p, "/tmp/")
	}
	return p != ".." && !strings.HasPrefix(p, "../")
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// forged ends the connection to a toolbox whose answer makes no sense.
func (c *Client) forged() error {
	c.fail(errForged)
	return lost(errForged)
}
