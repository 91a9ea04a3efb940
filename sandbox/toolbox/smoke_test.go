package toolbox_test

import (
	"context"
	"testing"
	"time"

	"agent-sandboxing/core"
)

func TestSmoke(t *testing.T) {
	c := dial(t, startBox(t))
	st, err := c.Write(t.Context(), core.WriteFile{Path: "a/b.txt", Data: []byte("hello\nworld\n")})
	t.Log(st, err)
	d, err := c.Read(t.Context(), "a/b.txt", 2, 3)
	t.Logf("%+v %v", d, err)
	r, err := c.Run(t.Context(), core.Command{Shell: "echo out; echo err >&2; env; pwd; exit 3"})
	t.Logf("%s %+v %v", r.Head, r, err)
	r, err = c.Run(t.Context(), core.Command{Shell: "sleep 60 & (setsid sleep 61 &) ; echo done"})
	t.Logf("%s %+v %v", r.Head, r, err)
	r, err = c.Run(t.Context(), core.Command{Shell: "trap '' TERM; echo hi; sleep 60; sleep 60", Timeout: 200 * time.Millisecond})
	t.Logf("%s %+v %v", r.Head, r, err)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	r, err = c.Run(ctx, core.Command{Shell: "trap '' TERM; echo hi; sleep 60; sleep 60"})
	t.Logf("%s %+v %v", r.Head, r, err)
	l, err := c.List(t.Context(), "", 0)
	t.Logf("%+v %v", l, err)
	fr, err := c.Find(t.Context(), core.FindQuery{Pattern: "*.txt"})
	t.Logf("%+v %v", fr, err)
	sr, err := c.Search(t.Context(), core.SearchQuery{Pattern: "wor", Context: 1})
	t.Logf("%+v %v", sr, err)
	_, err = c.Read(t.Context(), "/etc/passwd", 0, 0)
	t.Log(err)
	began := time.Now()
	for range 200 {
		if _, err = c.Run(t.Context(), core.Command{Shell: "true"}); err != nil {
			t.Fatal(err)
		}
	}
	t.Log(time.Since(began) / 200)
}
