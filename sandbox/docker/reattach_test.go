package docker_test

import (
	"context"
	"errors"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/docker/dockertest"
)

// A daemon that dies takes the connection with it and nothing else: the container goes on, and the next
// attach finds the same toolbox, which has ended what the last one ran.
func TestReattach_AfterTheDaemonWasKilled(t *testing.T) {
	t.Parallel()
	config := dockertest.Config(t)
	daemon, err := dockertest.OpenDaemon(t.Context(), dockertest.DaemonOptions{LiveRestore: true, Images: []string{config.Image}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := daemon.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	config.Host = daemon.Host()
	r := dockertest.Open(t, config)
	first := start(t, r, spec())
	first.sh(t, "echo kept > file")
	born, err := r.Inspect(t.Context(), first.ref)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		// It writes on while nobody takes what it writes.
		_, err := first.Run(t.Context(), core.Command{Shell: "touch started; (setsid yes > /dev/null &); yes", LogName: "yes.log"})
		ended <- err
	}()
	for {
		if _, err := first.Stat(t.Context(), "started"); err == nil {
			break
		}
	}
	if err := daemon.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; core.CodeOf(err) != "sandbox_lost" {
		t.Errorf("the command ended with %v, want sandbox_lost", err)
	}
	if err := daemon.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := attach(t, r, first.ref)
	if _, got := second.sh(t, "cat file; cat /proc/[0-9]*/comm | grep -c yes"); got != "kept\n0" {
		t.Errorf("%q", got)
	}
	there, err := r.Inspect(t.Context(), first.ref)
	if err != nil || !there.Running || !there.CreatedAt.Equal(born.CreatedAt) {
		t.Errorf("%+v, %v", there, err)
	}
}

// Docker lets two clients attach to one container and mixes them. The older finds out at once and does
// nothing any more; the newer has the sandbox to itself.
func TestReattach_EndsTheOlderClient(t *testing.T) {
	t.Parallel()
	r := dockertest.New(t)
	older := start(t, r, spec())
	ended := make(chan error, 1)
	go func() {
		_, err := older.Run(t.Context(), core.Command{Shell: "touch started; sleep 3600"})
		ended <- err
	}()
	for {
		if _, err := older.Stat(t.Context(), "started"); err == nil {
			break
		}
	}
	newer := attach(t, r, older.ref)
	<-older.Done()
	if err := <-ended; core.CodeOf(err) != "sandbox_lost" {
		t.Errorf("the older client's command ended with %v", err)
	}
	_, err := older.Write(t.Context(), core.WriteFile{Path: "stale", Data: []byte("x")})
	if core.CodeOf(err) != "sandbox_lost" {
		t.Errorf("the older client wrote: %v", err)
	}
	if _, got := newer.sh(t, "ls; cat /proc/[0-9]*/comm | grep -c sleep"); got != "started\n0" {
		t.Errorf("%q", got)
	}
	if err := newer.Err(); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
