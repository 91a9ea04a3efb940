// Package server is the toolbox's inner half: it answers the requests of wire over one stream, with
// files below two roots and commands run by a Commands. It runs as PID 1 of a sandbox (toolboxd) and,
// over a folder, in the control plane's own process (sandbox/memory).
//
// It protects the platform's promises about paths, output and processes; it is no boundary against
// the sandbox's own programs, which have the same user. The boundary is the container.
package server

import (
	"context"
	"io"
)

// Commands runs programs in the sandbox.
type Commands interface {
	// Run executes c.Shell and writes its output to out until it has ended. When ctx ends, the whole
	// tree is killed. An error means that nothing was started.
	Run(ctx context.Context, c Shell, out io.Writer) (Exit, error)
	// Program runs one of the platform's own programs to its end, killed when ctx ends.
	Program(ctx context.Context, p Program) (Exit, error)
	// KillAll ends every process but this one and returns how many there were.
	KillAll() int
}

// Shell is one shell text to run.
type Shell struct {
	Text string
	Dir  string   // absolute, as commands know it
	Env  []string // the whole environment but PATH
}

// Program is one of the platform's own, with a fixed argv.
type Program struct {
	Argv   []string
	Dir    string
	Env    []string      // the whole environment but PATH
	Stdin  io.ReadCloser // closed at the end, which ends a read; nil for none
	Stdout io.Writer
}

// Exit is how a program ended.
type Exit struct {
	Code      int
	Signal    string
	OOMKilled bool
	Memory    int64 // the limit, when OOMKilled; 0 when it is not known
	Survivors int   // processes that it left and that were then killed
	// Interrupted says that it was killed because the context had ended.
	Interrupted bool
}
