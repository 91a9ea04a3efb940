package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent-sandboxing/sandbox/toolbox/wire"
)

// What a kill leaves of a write that was under way is no part of the work, and the next toolbox removes it.
func TestWrite_WhatAKillLeavesIsNotInTheRepository(t *testing.T) {
	t.Parallel()
	files, dir := newFiles(t)
	workspace := filepath.Join(dir, "workspace")
	if _, err := files.Write(wire.WriteArgs{Path: wire.Name("a/b.txt"), Mode: 0o644, Max: 10}, strings.NewReader("one")); err != nil {
		t.Fatal(err)
	}
	p, err := files.find(wire.Name("a/b.txt"), true)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	d, err := files.draft(p, []byte("two"), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer d.folder.Close()
	if got := names(t, filepath.Join(workspace, "repo")); len(got) != 2 || got[0] != "a" || got[1] != "a/b.txt" {
		t.Errorf("the repository holds %q", got)
	}
	if got := names(t, filepath.Join(workspace, draftsDir)); len(got) != 1 {
		t.Errorf("the drafts are %q, want one", got)
	}
	again, err := OpenFiles(files.layout)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := os.Stat(filepath.Join(workspace, draftsDir)); !os.IsNotExist(err) {
		t.Errorf("the drafts are still there: %v", err)
	}
	if _, err := again.Write(wire.WriteArgs{Path: wire.Name("a/b.txt"), Max: 10}, strings.NewReader("three")); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(workspace, "repo/a/b.txt")); string(text) != "three" || err != nil {
		t.Errorf("a/b.txt = %q, %v", text, err)
	}
	if got := names(t, filepath.Join(workspace, draftsDir)); len(got) != 0 {
		t.Errorf("a finished write left %q", got)
	}
}

// names lists what is below a folder.
func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, path); rel != "." {
			list = append(list, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
