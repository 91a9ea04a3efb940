//go:build linux

// Command toolboxd is PID 1 of a sandbox: it serves the toolbox's protocol on standard input and
// output and runs everything that is ever run there. It is copied into untrusted places, so it holds
// nothing of the control plane.
//
//	toolboxd [workspace [tmp]]   default /workspace /tmp
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"golang.org/x/sys/unix"

	"agent-sandboxing/sandbox/toolbox/server"
)

// dnsAddress is the one name server in the sandbox's resolv.conf.
const dnsAddress = "127.0.0.1:53"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "toolboxd:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	layout := server.Layout{Workspace: "/workspace", Tmp: "/tmp", Env: commandEnv(os.Environ())}
	if len(args) > 0 {
		layout.Workspace = args[0]
	}
	if len(args) > 1 {
		layout.Tmp = args[1]
	}
	// Nothing with our user may open our descriptors and forge answers.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	unix.Umask(0o022)
	// The commands share our user and may signal us: every signal that can be taken is, and ignored.
	// The channel is never read; a full one drops.
	signal.Notify(make(chan os.Signal, 1))
	processes, err := server.NewProcesses(os.Getenv("PATH"))
	if err != nil {
		return err
	}
	defer processes.Close()
	files, err := server.OpenFiles(layout)
	if err != nil {
		return err
	}
	network, closeNetwork := openNetwork()
	defer closeNetwork()
	stream, err := standardStream()
	if err != nil {
		return err
	}
	heard := listen(stream, firstWord, nextWord)
	return errors.Join(server.Serve(context.Background(), heard, files, processes, network), files.Close())
}

// commandEnv are the variables that the container's maker wants commands to have.
func commandEnv(environ []string) []string {
	var env []string
	for _, e := range environ {
		if variable, ok := strings.CutPrefix(e, "COMMAND_ENV_"); ok {
			env = append(env, variable)
		}
	}
	return env
}

// openNetwork takes over the sandbox's DNS before any program can. Where that fails, and outside a
// sandbox, commands run all the same, and the client is told when it wants to let something out.
func openNetwork() (network *server.Network, closeIt func()) {
	if os.Getpid() != 1 {
		return nil, func() {}
	}
	network, err := server.OpenNetwork(context.Background(), dnsAddress)
	if err != nil {
		return nil, func() {}
	}
	return network, func() { _ = network.Close() }
}

// standardStream makes one closable stream of standard input and output. Non-blocking, so that
// closing it ends a read or write that waits.
func standardStream() (io.ReadWriteCloser, error) {
	for _, fd := range []int{0, 1} {
		if err := unix.SetNonblock(fd, true); err != nil {
			return nil, err
		}
	}
	return stdio{in: os.NewFile(0, "stdin"), out: os.NewFile(1, "stdout")}, nil
}

type stdio struct{ in, out *os.File }

func (s stdio) Read(p []byte) (int, error)  { return s.in.Read(p) }
func (s stdio) Write(p []byte) (int, error) { return s.out.Write(p) }
func (s stdio) Close() error                { return errors.Join(s.in.Close(), s.out.Close()) }
