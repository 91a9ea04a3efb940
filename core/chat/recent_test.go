package chat

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestRecent_ForgetsAfterItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRecent[int, string](time.Minute)
		r.put(1, "one")
		<-time.After(59 * time.Second)
		if v, ok := r.get(1); !ok || v != "one" {
			t.Errorf("after 59 s: %q, %v", v, ok)
		}
		<-time.After(2 * time.Second)
		if _, ok := r.get(1); ok {
			t.Error("after 61 s it is still there")
		}
	})
}

func TestRecent_StaysSmall(t *testing.T) {
	t.Parallel()
	r := newRecent[int, int](time.Hour)
	for i := range 3 * maxRecent {
		r.put(i, i)
	}
	if n := len(r.entries); n > maxRecent {
		t.Errorf("%d entries, want at most %d", n, maxRecent)
	}
	if v, ok := r.get(3*maxRecent - 1); !ok || v != 3*maxRecent-1 {
		t.Error("the newest was dropped")
	}
}
