package server

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// However git's output is cut into writes, the tree is the same, and nothing in it ends the toolbox.
func FuzzTreeList(f *testing.F) {
	sha := strings.Repeat("a", 40)
	f.Add([]byte("100644 blob "+sha+"\tREADME.md\x00040000 tree "+sha+"\tsrc\x00"), uint8(3))
	f.Add([]byte("100644 blob "+sha+"\ta\tb\nc\x00160000 commit "+sha+"\tsub\x00100644"), uint8(0))
	f.Add([]byte("\x00\x00\t"), uint8(1))
	f.Fuzz(func(t *testing.T, list []byte, cut uint8) {
		read := func(piece int) (*baseTree, string, error) {
			l := treeList{
				tree: &baseTree{leaves: map[string]baseEntry{}, folders: map[string]bool{}, objects: map[string]bool{}},
				stop: func(error) {},
			}
			for rest := list; len(rest) > 0 && l.err == nil; {
				n := min(piece, len(rest))
				_, _ = l.Write(rest[:n])
				rest = rest[n:]
			}
			if l.err != nil {
				return nil, "", l.err
			}
			return l.tree, string(l.rest), nil
		}
		want, wantRest, wantErr := read(len(list) + 1)
		got, rest, err := read(int(cut) + 1)
		if !reflect.DeepEqual(got, want) || rest != wantRest || (err == nil) != (wantErr == nil) {
			t.Errorf("in pieces of %d: %v, %q, %v; at once: %v, %q, %v", cut+1, got, rest, err, want, wantRest, wantErr)
		}
	})
}

// A list that is too long ends git, which would wait for a reader for ever.
func TestTreeList_StopsAtItsBounds(t *testing.T) {
	t.Parallel()
	entry := []byte("100644 blob " + strings.Repeat("a", 40) + "\tx\x00")
	endless := bytes.Repeat([]byte("x"), 1<<20)
	for what, write := range map[string][]byte{"entries": entry, "one entry": endless} {
		ctx, stop := context.WithCancelCause(t.Context())
		l := treeList{tree: &baseTree{leaves: map[string]baseEntry{}, folders: map[string]bool{}, objects: map[string]bool{}}, stop: stop}
		for l.err == nil && l.size <= 2*maxTree {
			_, _ = l.Write(write)
		}
		if !errors.Is(l.err, errTreeTooLarge) || !errors.Is(context.Cause(ctx), errTreeTooLarge) || l.size > maxTree+len(write) || l.entries > maxWalk+1 {
			t.Errorf("%s: %v after %d bytes, %v", what, l.err, l.size, context.Cause(ctx))
		}
	}
}
