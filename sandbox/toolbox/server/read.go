package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"syscall"

	"agent-sandboxing/sandbox/toolbox/wire"
)

// Kinds of a wire.Stat.
const (
	kindFile  = "file"
	kindDir   = "dir"
	kindLink  = "link"
	kindOther = "other"
)

// Stat describes the path itself.
func (f *Files) Stat(a wire.StatArgs) (wire.Stat, error) {
	p, err := f.existing(a.Path, false)
	if err != nil {
		return wire.Stat{}, err
	}
	defer p.close()
	return p.stat(), nil
}

func (p place) stat() wire.Stat {
	s := wire.Stat{Path: wire.Name(p.name()), Kind: kindOf(p.info), Size: p.info.Size(), Mode: uint32(p.info.Mode().Perm())}
	if s.Kind == kindLink {
		target, _ := p.root.Readlink(p.rel) // swapped meanwhile: no target is an answer
		s.Target = wire.Name(target)
	}
	return s
}

func kindOf(info fs.FileInfo) string {
	switch info.Mode().Type() {
	case 0:
		return kindFile
	case fs.ModeDir:
		return kindDir
	case fs.ModeSymlink:
		return kindLink
	default:
		return kindOther
	}
}

// Read sends a part of a regular file to out.
func (f *Files) Read(ctx context.Context, a wire.ReadArgs, out io.Writer) (wire.ReadResult, error) {
	p, err := f.existing(a.Path, true)
	if err != nil {
		return wire.ReadResult{}, err
	}
	defer p.close()
	file, err := p.open()
	if err != nil {
		return wire.ReadResult{}, err
	}
	defer file.Close()
	if a.Offset < 0 || a.Limit < 0 {
		return wire.ReadResult{}, wire.Fail(wire.BadRequest, string(a.Path))
	}
	stat := p.stat()
	hash := sha256.New()
	to := out
	if a.Offset == 0 {
		to = io.MultiWriter(out, hash)
	}
	n, err := copyContext(ctx, to, io.NewSectionReader(file, a.Offset, a.Limit))
	if err != nil {
		return wire.ReadResult{}, fileError(err, p.name())
	}
	eof := n < a.Limit || a.Offset+n >= stat.Size
	switch {
	case a.Offset == 0 && eof:
		// The file may have changed meanwhile: size and hash are those of what was sent.
		stat.Size = n
		stat.SHA256 = hex.EncodeToString(hash.Sum(nil))
	case stat.Size <= a.Max:
		hash.Reset()
		if _, err := copyContext(ctx, hash, io.NewSectionReader(file, 0, a.Max)); err != nil {
			return wire.ReadResult{}, fileError(err, p.name())
		}
		stat.SHA256 = hex.EncodeToString(hash.Sum(nil))
	}
	return wire.ReadResult{Stat: stat, EOF: eof}, nil
}

// open opens a regular file and nothing else. O_NONBLOCK keeps a FIFO, swapped in behind the check,
// from hanging; O_NOFOLLOW, because links are resolved already.
func (p *place) open() (*os.File, error) {
	if p.info.IsDir() {
		return nil, wire.Fail(wire.IsDirectory, p.name())
	}
	if !p.info.Mode().IsRegular() {
		return nil, wire.Fail(wire.NotRegular, p.name())
	}
	file, err := p.root.OpenFile(p.rel, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fileError(err, p.name())
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = wire.Fail(wire.NotRegular, p.name())
	}
	if err != nil {
		_ = file.Close()
		return nil, fileError(err, p.name())
	}
	p.info = info
	return file, nil
}

// copyContext copies until r ends or ctx does.
func copyContext(ctx context.Context, w io.Writer, r io.Reader) (int64, error) {
	return io.Copy(w, readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	}))
}
