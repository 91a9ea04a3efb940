package server

import (
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"agent-sandboxing/sandbox/toolbox/wire"
)

const (
	// spareThreads is enough for every request to sit in a system call at once.
	spareThreads = wire.MaxStreams + 8
	// commandNice is how far commands step back behind the toolbox. It compares the sandbox's own
	// processes only: what the sandbox gets of the host is its cgroup's.
	commandNice = 19
)

// reserveThreads makes the threads that this process will ever need. At the sandbox's limit of processes
// none can be made, and a Go program that needs one then ends.
func reserveThreads() {
	var here, all sync.WaitGroup
	here.Add(spareThreads)
	for range spareThreads {
		all.Go(func() {
			runtime.LockOSThread() // a locked goroutine that waits keeps its thread
			defer runtime.UnlockOSThread()
			here.Done()
			here.Wait()
		})
	}
	all.Wait()
}

// forker starts programs from a thread of its own, whose niceness they inherit: however many there are,
// the toolbox gets to run and to kill them. (It may change no other process, as nobody in a sandbox may.)
type forker struct {
	work chan func()
	done sync.WaitGroup
}

func newForker() *forker {
	f := &forker{work: make(chan func())}
	f.done.Go(func() {
		runtime.LockOSThread()                                  // never unlocked: the thread ends with the goroutine
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, commandNice) // commands that are not nice run all the same
		for fork := range f.work {
			fork()
		}
	})
	return f
}

// do runs fork on the thread and waits for it.
func (f *forker) do(fork func()) {
	ended := make(chan struct{})
	f.work <- func() {
		defer close(ended)
		fork()
	}
	<-ended
}

func (f *forker) close() {
	close(f.work)
	f.done.Wait()
}
