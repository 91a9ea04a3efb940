package server

import (
	"io"
	"os"
	"sync"
	"time"
)

// streams are the ends of the pipes between a program and us.
type streams struct {
	child  []uintptr // its descriptors 0, 1, 2
	files  []*os.File
	stdin  *os.File // our end, nil for /dev/null
	stdout *os.File // our end

	reading sync.WaitGroup
	feeding sync.WaitGroup
}

// openStreams makes them. With merge, both outputs share one pipe, so that their order is kept; else
// the second goes nowhere.
func openStreams(program Program, merge bool) (_ *streams, err error) {
	s := &streams{}
	defer func() {
		if err != nil {
			s.closeChild()
			s.abort()
		}
	}()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	s.files = append(s.files, null)
	in, out, errOut := null, null, null
	if program.Stdin != nil {
		if in, s.stdin, err = os.Pipe(); err != nil {
			return nil, err
		}
		s.files = append(s.files, in)
	}
	if program.Stdout != nil {
		if s.stdout, out, err = os.Pipe(); err != nil {
			return nil, err
		}
		s.files = append(s.files, out)
	}
	if merge {
		errOut = out
	}
	s.child = []uintptr{in.Fd(), out.Fd(), errOut.Fd()}
	return s, nil
}

// closeChild closes the program's ends.
func (s *streams) closeChild() {
	for _, f := range s.files {
		_ = f.Close()
	}
}

func (s *streams) abort() {
	for _, f := range []*os.File{s.stdin, s.stdout} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// copy moves data in both directions in the background.
func (s *streams) copy(program Program) {
	if s.stdout != nil {
		s.reading.Go(func() { _, _ = io.Copy(program.Stdout, s.stdout) })
	}
	if s.stdin != nil {
		s.feeding.Go(func() {
			_, _ = io.Copy(s.stdin, program.Stdin) // a program that does not read all of it says why by its exit
			_ = s.stdin.Close()
		})
	}
}

// finish waits for the rest of the output, at most grace, and closes our ends and the program's
// input. The program is gone.
func (s *streams) finish(program Program, grace time.Duration) {
	if program.Stdin != nil {
		_ = program.Stdin.Close()
	}
	if s.stdout != nil {
		_ = s.stdout.SetReadDeadline(time.Now().Add(grace))
	}
	s.reading.Wait()
	s.feeding.Wait()
	s.abort()
}
