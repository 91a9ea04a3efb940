package toolbox_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"agent-sandboxing/sandbox/toolbox"
)

// program builds toolboxd once for the whole run.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "toolboxd")
	if err != nil {
		return "", err
	}
	out, err := exec.Command("go", "build", "-o", dir, "./toolboxd").CombinedOutput()
	if err != nil {
		return "", errors.New(string(out))
	}
	return filepath.Join(dir, "toolboxd"), nil
})

// box is a toolboxd process over pipes with folders of its own.
type box struct {
	cmd       *exec.Cmd
	workspace string
	tmp       string
	in        io.WriteCloser
	out       io.ReadCloser
}

func startBox(t *testing.T) *box {
	t.Helper()
	file, err := program()
	if err != nil {
		t.Fatal(err)
	}
	b := &box{workspace: t.TempDir(), tmp: t.TempDir()}
	b.cmd = exec.Command(file, b.workspace, b.tmp)
	b.cmd.Stderr = os.Stderr
	if b.in, err = b.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if b.out, err = b.cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = b.in.Close()
		_ = b.out.Close()
		_ = b.cmd.Wait()
	})
	return b
}

// Read, Write and Close make the box a stream.
func (b *box) Read(p []byte) (int, error)  { return b.out.Read(p) }
func (b *box) Write(p []byte) (int, error) { return b.in.Write(p) }
func (b *box) Close() error                { return errors.Join(b.in.Close(), b.out.Close()) }

func dial(t *testing.T, b *box) *toolbox.Client {
	t.Helper()
	c, err := toolbox.Dial(t.Context(), b, toolbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
