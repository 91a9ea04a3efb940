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

	"golang.org/x/sys/unix"

	"agent-sandboxing/sandbox/toolbox/wire"
)

const (
	// expectAbsent demands that nothing is at the path.
	expectAbsent = "absent"
	// maxExpected bounds a file whose content may be expected: nobody has read more. Bytes.
	maxExpected = 16 << 20
)

// Write replaces or creates one file: the content goes to a new file elsewhere, which then takes the
// name. A link is written through, its target replaced. Parent folders are made.
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
	if err := f.replace(p, data, mode, a.Expect == expectAbsent); err != nil {
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
func (f *Files) replace(p place, data []byte, mode fs.FileMode, create bool) error {
	dir := path.Dir(p.rel)
	if err := p.root.MkdirAll(dir, 0o755); err != nil {
		return fileError(err, p.name())
	}
	to, err := openFolder(p.root, dir)
	if err != nil {
		return fileError(err, p.name())
	}
	defer to.Close()
	d, err := f.draft(p, data, mode)
	if err != nil {
		return fileError(err, p.name())
	}
	if err := errors.Join(d.put(to, path.Base(p.rel), create), d.close()); err != nil {
		return fileError(err, p.name())
	}
	return nil
}

// draft is a new file before it has its name.
type draft struct {
	folder *os.File
	name   string // "" once the draft has become the file
}

// draft writes a file where nobody sees it: of the repository in the platform's folder, because one that
// stays there when all of this is killed must not become part of the work; of /tmp, another file
// system which ends with the container, beside its place. It has to be closed.
func (f *Files) draft(p place, data []byte, mode fs.FileMode) (*draft, error) {
	root, dir := p.root, path.Dir(p.rel)
	if p.prefix == "" {
		root, dir = f.workspace, draftsDir
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	folder, err := openFolder(root, dir)
	if err != nil {
		return nil, err
	}
	d := &draft{folder: folder, name: ".toolbox-" + rand.Text()}
	file, err := root.OpenFile(path.Join(dir, d.name), os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	_, err = file.Write(data)
	// The mode is set on the open file: the umask does not cut it.
	if err = errors.Join(err, file.Chmod(mode), file.Close()); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// put gives the draft its place. Both folders are open ones: no name above them can be swapped.
func (d *draft) put(to *os.File, name string, create bool) error {
	if create { // unlike a rename, a link refuses what exists
		return unix.Linkat(int(d.folder.Fd()), d.name, int(to.Fd()), name, 0)
	}
	err := unix.Renameat(int(d.folder.Fd()), d.name, int(to.Fd()), name)
	if err == nil {
		d.name = ""
	}
	return err
}

// close removes what has not become the file, or has by a link.
func (d *draft) close() error {
	if d.name != "" {
		_ = unix.Unlinkat(int(d.folder.Fd()), d.name, 0)
	}
	return d.folder.Close()
}

func openFolder(root *os.Root, dir string) (*os.File, error) {
	return root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
}
