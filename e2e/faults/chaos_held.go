package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"agent-sandboxing/e2e/person"
)

// held is what a run may hold on to. The first and the last are the workers' own.
type held struct {
	files, goroutines, containers, volumes, mounts int
}

// stillLooks is for how many looks, ten in a second, mounts have to be the same.
const stillLooks = 15

// mounts are those of the daemon's folder.
func (c *chaos) mounts() (int, error) {
	all, err := os.ReadFile("/proc/self/mountinfo")
	return strings.Count(string(all), filepath.Dir(c.daemon.Socket())+"/"), err
}

// measure stops every sandbox and then counts. The workers that were looked at are new afterwards:
// that a Go program tells its goroutines ends it.
func (c *chaos) measure(ctx context.Context) (held, error) {
	for _, s := range c.session {
		var answer any
		err := c.owner.Ask(ctx, http.MethodPost, "/chat-sessions/"+s.id+"/stop", "", nil, &answer)
		if r, ok := errors.AsType[*person.Refusal](err); err != nil && (!ok || r.Code != "nothing_to_stop") {
			return held{}, err
		}
	}
	h, same := held{mounts: -1}, 0
	err := c.eventually(ctx, "every sandbox is stopped", func() bool { // the daemon unmounts after the end of a process
		same++
		if n, err := c.mounts(); err != nil || n != h.mounts || len(c.daemon.Processes()) > 0 {
			h.mounts, same = n, 0
		}
		return same == stillLooks
	})
	if err != nil {
		return h, err
	}
	for _, kind := range []struct {
		count *int
		args  []string
	}{{&h.containers, []string{"ps", "-aq"}}, {&h.volumes, []string{"volume", "ls", "-q"}}} {
		words, err := c.host(ctx, kind.args...)
		if err != nil {
			return h, err
		}
		*kind.count = len(words)
	}
	for _, name := range chaosWorkers {
		pid := c.running[name].cmd.Process.Pid
		files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if err != nil {
			return h, err
		}
		h.files += len(files)
		told, err := os.ReadFile(filepath.Join(c.dir, name+".log"))
		if err != nil {
			return h, err
		}
		if err := errors.Join(c.signal(ctx, name, syscall.SIGQUIT), c.startAs(name, "worker", nil)); err != nil {
			return h, err
		}
		after, err := os.ReadFile(filepath.Join(c.dir, name+".log"))
		if err != nil {
			return h, err
		}
		h.goroutines += strings.Count(string(after[len(told):]), "\ngoroutine ")
	}
	return h, nil
}

// baseline compares what is held after everything with what was held before it.
func (c *chaos) baseline(ctx context.Context, before held) error {
	if err := c.pool(ctx, "0"); err != nil {
		return err
	}
	var working sync.WaitGroup
	var mu sync.Mutex
	var failures []error
	for _, s := range c.session { // workers that have done as much as those before
		working.Go(func() {
			err := c.post(ctx, s.id, "file last.txt")
			if err == nil {
				_, err = c.ended(ctx, s.id)
			}
			mu.Lock()
			failures = append(failures, err)
			mu.Unlock()
		})
	}
	working.Wait()
	// What a crash left of a helper belongs to nobody for two minutes before it is removed.
	tidied := c.eventually(ctx, "the host was tidied up", func() bool {
		left, err := c.host(ctx, "ps", "-aq")
		return err == nil && len(left) <= before.containers
	})
	if tidied != nil {
		list, err := c.daemon.Run(ctx, "ps", "-a", "--no-trunc", "--format", `{{.Names}} {{.Status}} {{.Label "agent-sandboxing.purpose"}} {{.Label "agent-sandboxing.generation"}}`)
		fmt.Println(list)
		failures = append(failures, tidied, err)
	}
	after, err := c.measure(ctx)
	if err := errors.Join(append(failures, err)...); err != nil {
		return err
	}
	fmt.Printf("chaos: before %+v, after %+v\n", before, after)
	if after.containers > before.containers || after.volumes > before.volumes || after.mounts > before.mounts {
		return errors.New("containers, volumes or mounts have leaked")
	}
	if slack := 10; after.files > before.files+slack || after.goroutines > before.goroutines+slack { // idle connections come and go
		return errors.New("files or goroutines of the workers have leaked")
	}
	return nil
}
