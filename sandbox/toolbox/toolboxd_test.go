package toolbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"agent-sandboxing/sandbox/toolbox"
)

// program is toolboxd, built once for the whole run.
var program string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "toolboxd")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "toolboxd")
	out, err := exec.CommandContext(context.Background(), "go", "build", "-o", program, "./toolboxd").CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "build toolboxd: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// box is a toolboxd process over pipes with folders of its own.
type box struct {
	cmd       *exec.Cmd
	workspace string
	tmp       string
	in        io.WriteCloser
	out       io.ReadCloser
}

func startBox(t testing.TB) *box {
	t.Helper()
	b := &box{workspace: t.TempDir(), tmp: t.TempDir()}
	b.cmd = exec.Command(program, b.workspace, b.tmp)
	b.cmd.Stderr = os.Stderr
	var err error
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

func dial(t testing.TB, b *box) *toolbox.Client {
	t.Helper()
	c, err := toolbox.Dial(t.Context(), b, toolbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
