package localpg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"agent-sandboxing/core"
)

const (
	superuser = "postgres"
	// maxSocket is what the kernel allows a socket's path, in bytes.
	maxSocket    = 107
	socketName   = "/.s.PGSQL.5432"
	socketPrefix = "agent-pg-"
)

// folder is the part of DATA_DIR that belongs to Postgres, and who it runs as.
type folder struct {
	root  string // DATA_DIR
	data  string // the cluster
	owner *syscall.Credential
}

// openFolder makes DATA_DIR when it is missing and finds the user that the server will run as:
// Postgres refuses to be root.
func openFolder(dataDir string) (*folder, error) {
	root, err := filepath.Abs(dataDir)
	if err != nil {
		return nil, unusable(dataDir, err)
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, unusable(root, err)
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return nil, unusable(root, err)
	}
	f := &folder{root: root, data: filepath.Join(root, "postgres")}
	if os.Geteuid() != 0 {
		return f, nil
	}
	if f.owner, err = serverUser(); err != nil {
		return nil, unusable(root, err)
	}
	return f, f.letOwnerIn()
}

func serverUser() (*syscall.Credential, error) {
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return nil, fmt.Errorf("find a user for Postgres: %w", err)
		}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// letOwnerIn opens DATA_DIR itself for passing through, not for listing, and demands that the
// folders above it let the server's user pass.
func (f *folder) letOwnerIn() error {
	info, err := os.Stat(f.root)
	if err != nil {
		return unusable(f.root, err)
	}
	if !f.mayEnter(info) {
		if err := os.Chmod(f.root, info.Mode().Perm()|0o011); err != nil {
			return unusable(f.root, err)
		}
	}
	for dir := filepath.Dir(f.root); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return unusable(f.root, err)
		}
		if !f.mayEnter(info) {
			return core.Fail(core.Unavailable, "data_dir_unusable", fmt.Sprintf("Postgres runs as another user than root and cannot enter %s. Set DATA_DIR to a folder outside of it, such as /var/lib/agent-sandboxing.", dir))
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

func (f *folder) mayEnter(dir os.FileInfo) bool {
	stat, ok := dir.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	switch {
	case stat.Uid == f.owner.Uid:
		return stat.Mode&0o100 != 0
	case stat.Gid == f.owner.Gid:
		return stat.Mode&0o010 != 0
	}
	return stat.Mode&0o001 != 0
}

// initialized returns the programs for the cluster, after making it when there is none. It is made
// beside its place and moved there when complete, so a killed initdb leaves nothing half-made.
func (f *folder) initialized(ctx context.Context, log *slog.Logger) (installed, error) {
	major, err := f.major()
	if err != nil {
		return installed{}, unusable(f.root, err)
	}
	bin, err := newest(ctx, places(), major)
	if err != nil || major != 0 {
		return bin, err
	}
	fresh := f.data + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return bin, unusable(f.root, err)
	}
	if err := f.makeOwned(fresh); err != nil {
		return bin, unusable(f.root, err)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin.dir, "initdb"), "-D", fresh, "-U", superuser,
		"--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8") // trust: the socket's folder admits only the owner
	f.asOwner(cmd)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return bin, failed("A new Postgres cluster could not be made.", fmt.Errorf("%w: %s", err, tail(output.String())))
	}
	if err := os.Rename(fresh, f.data); err != nil {
		return bin, unusable(f.root, err)
	}
	log.InfoContext(ctx, "local_postgres_created", slog.String("folder", f.data), slog.Int("version", bin.major))
	return bin, nil
}

// major is the version that made the cluster, 0 when there is none.
func (f *folder) major() (int, error) {
	if there, err := exists(f.data); err != nil || !there {
		return 0, err
	}
	text, err := os.ReadFile(filepath.Join(f.data, "PG_VERSION"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// freshSocket makes the folder of the server's socket, where the path is short, and records it with
// our own process.
func (f *folder) freshSocket() (string, error) {
	f.forgetSocket()
	var all error
	for _, parent := range []string{"/run", "/tmp"} {
		dir, err := os.MkdirTemp(parent, socketPrefix)
		if err == nil {
			err = f.giveToOwner(dir)
		}
		if err == nil && len(dir)+len(socketName) > maxSocket {
			err = fmt.Errorf("%s is too long for a socket", dir)
		}
		if err == nil {
			err = os.WriteFile(f.socketRecord(), fmt.Appendf(nil, "%s\n%d\n", dir, os.Getpid()), 0o600)
		}
		if err == nil {
			return dir, nil
		}
		all = errors.Join(all, err)
	}
	return "", failed("There is no place for the socket of Postgres.", all)
}

// recordedSocket is the folder that the last start used, and that start's process; "" when there
// is no record.
func (f *folder) recordedSocket() (dir string, starter int) {
	text, err := os.ReadFile(f.socketRecord())
	if err != nil {
		return "", 0
	}
	if _, err := fmt.Sscanf(string(text), "%s\n%d\n", &dir, &starter); err != nil || !strings.HasPrefix(filepath.Base(dir), socketPrefix) {
		return "", 0
	}
	return dir, starter
}

// forgetSocket removes the socket's folder and its record. What cannot be removed does no harm.
func (f *folder) forgetSocket() {
	if dir, _ := f.recordedSocket(); dir != "" {
		_ = os.RemoveAll(dir)
	}
	_ = os.Remove(f.socketRecord())
}

func (f *folder) socketRecord() string { return filepath.Join(f.root, "postgres.socket") }

func (f *folder) makeOwned(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return f.giveToOwner(dir)
}

func (f *folder) giveToOwner(path string) error {
	if f.owner == nil {
		return nil
	}
	return os.Lchown(path, int(f.owner.Uid), int(f.owner.Gid))
}

// asOwner makes cmd run as the server's user, away from our folder, in a process group of its own:
// Ctrl-C at a terminal is for us alone, the server stops after us.
func (f *folder) asOwner(cmd *exec.Cmd) {
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: f.owner, Setpgid: true}
}

func unusable(dir string, cause error) *core.Error {
	return core.Fail(core.Unavailable, "data_dir_unusable", fmt.Sprintf("The data folder %s cannot be used. Set DATA_DIR to a folder that this user may write.", dir)).Because(cause)
}

// tail is the end of a program's output, enough for a log line.
func tail(output string) string {
	const most = 2000
	return strings.TrimSpace(output[max(0, len(output)-most):])
}
