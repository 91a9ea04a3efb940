package server

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"agent-sandboxing/sandbox/toolbox/wire"
)

const (
	// expectAbsent demands that nothing is at the path.
	expectAbsent = "absent"
	// maxExpected bounds a file whose content may be expected: nobody has read more. Bytes.
	maxExpected = 16 << 20
)

// Write replaces or creates one file: the content goes to a new file in the same folder, which then
// takes the name. A link is written through, its target replaced. Parent folders are made.
func (f *Files) Write(a wire.WriteArgs, body io.Reader) (wire.Stat, error) {
	data, err := io.ReadAll(io.LimitReader(body, a.Max+1))
	if err != nil {
		return wire.Stat{}, err
	}
	if int64(len(data)) > a.Max {
		return wire.Stat{}, wire.Fail(wire.FileTooLarge, string(a.Path))
	}
	p, err := f.find(a.Path, true)
	if err != nil {
		return wire.Stat{}, err
	}
	defer p.close()
	if p.info == nil && strings.HasSuffix(string(a.Path), "/") {
		return wire.Stat{}, wire.Fail(wire.IsDirectory, p.name())
	}
	mode := fs.FileMode(a.Mode).Perm()
	if p.info != nil {
		mode = p.info.Mode().Perm()
	}
	if err := p.expect(a.Expect); err != nil {
		return wire.Stat{}, err
	}
	if err := p.replace(data, mode, a.Expect == expectAbsent); err != nil {
		return wire.Stat{}, err
	}
	if p.info, err = p.root.Lstat(p.rel); err != nil {
		return wire.Stat{}, fileError(err, p.name())
	}
	hash := sha256.Sum256(data)
	stat := wire.Stat{Path: wire.Name(p.name()), Kind: kindFile, Size: int64(len(data)), Mode: uint32(mode)}
	stat.SHA256 = hex.EncodeToString(hash[:])
	return stat, nil
}

// expect checks the caller's condition on what is there now.
func (p *place) expect(want string) error {
	switch {
	case p.info == nil:
		if want != "" && want != expectAbsent {
			return wire.Fail(wire.ChangedSinceRead, p.name())
		}
		return nil
	case want == expectAbsent:
		return wire.Fail(wire.AlreadyExists, p.name())
	}
	file, err := p.open() // whatever is replaced must be a regular file
	if err != nil {
		return err
	}
	defer file.Close()
	if want == "" {
		return nil
	}
	if p.info.Size() > maxExpected {
		return wire.Fail(wire.FileTooLarge, p.name())
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, io.LimitReader(file, maxExpected)); err != nil {
		return fileError(err, p.name())
	}
	if hex.EncodeToString(hash.Sum(nil)) != want {
		return wire.Fail(wire.ChangedSinceRead, p.name())
	}
	return nil
}

// replace puts data at the place in one step. With create it fails when something is there by then.
func (p *place) replace(data []byte, mode fs.FileMode, create bool) error {
	dir := path.Dir(p.rel)
	if err := p.root.MkdirAll(dir, 0o755); err != nil {
		return fileError(err, p.name())
	}
	temp := path.Join(dir, ".toolbox-"+rand.Text())
	file, err := p.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return fileError(err, p.name())
	}
	_, err = file.Write(data)
	// The mode is set on the open file: the umask does not cut it.
	if err = errors.Join(err, file.Chmod(mode), file.Close()); err == nil {
		err = p.put(temp, create)
	}
	if err != nil || create {
		_ = p.root.Remove(temp)
	}
	if err != nil {
		return fileError(err, p.name())
	}
	return nil
}

func (p *place) put(temp string, create bool) error {
	if create {
		return p.root.Link(temp, p.rel) // unlike a rename, it refuses what exists
	}
	return p.root.Rename(temp, p.rel)
}
