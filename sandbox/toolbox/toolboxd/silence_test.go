//go:build linux

package main

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

func TestListener_EndsWhenNobodyComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		l := listen(ours, 20*time.Second, time.Hour)
		began := time.Now()
		if _, err := l.Read(make([]byte, 1)); err == nil || time.Since(began) != 20*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

func TestListener_WaitsLongerOnceItWasSpokenTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		l := listen(ours, 20*time.Second, time.Hour)
		began := time.Now()
		go func() {
			<-time.After(10 * time.Second)
			_, _ = theirs.Write([]byte("x"))
			<-time.After(50 * time.Minute)
			_, _ = theirs.Write([]byte("y"))
		}()
		all, _ := io.ReadAll(l)
		if want := 10*time.Second + 50*time.Minute + time.Hour; string(all) != "xy" || time.Since(began) != want {
			t.Errorf("heard %q for %s, want %s", all, time.Since(began), want)
		}
	})
}

func TestListener_CloseEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		if err := listen(ours, time.Second, time.Second).Close(); err != nil {
			t.Error(err)
		}
	}) // a timer that still ran would be found here
}
