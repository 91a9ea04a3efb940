package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "agent-sandboxing"

// rules say which of our packages a package may never reach, even indirectly. A prefix ends in
// /... and holds for everything below. This is the security boundary of the product: the agent
// never gets a Docker client, a database client or a GitHub client.
var rules = []struct {
	from  string
	never []string
}{
	{"core", []string{"..."}},
	{"core/...", []string{"agent/...", "sandbox/...", "web", "handlers", "views/..."}},
	{"agent/...", []string{"sandbox/...", "core/store", "core/github", "core/mirror", "core/publish", "core/chat", "core/turn", "web", "handlers", "views/..."}},
	{"sandbox/...", []string{"agent/...", "core/store", "core/github", "core/mirror", "web", "handlers", "views/..."}},
	{"views/...", []string{"core", "core/...", "agent/...", "sandbox/...", "web", "handlers"}},
	{"handlers", []string{"core/store", "core/github", "core/mirror", "core/turn", "core/publish", "agent/...", "sandbox/..."}},
	{"web", []string{"core/store", "core/github", "core/mirror", "core/turn", "core/publish", "agent/...", "sandbox/..."}},
	{"sandbox/toolbox/toolboxd", []string{"core/store", "core/config", "sandbox/docker"}},
	{"", []string{"core/github/githubtest/...", "agent/modeltest", "agent/bashpolicy/policytest", "core/store/storetest", "sandbox/memory", "sandbox/sandboxtest", "e2e/..."}},
}

// homes says which packages alone may import a third-party module directly.
var homes = []struct {
	library string
	homes   []string
}{
	{"github.com/jackc/pgx/v5", []string{"", "core/store", "core/store/storetest", "core/localpg"}},
	{"github.com/labstack/echo/v4", []string{"web", "handlers"}},
	{"github.com/docker/docker", []string{"sandbox/docker"}},
	{"github.com/google/go-github/v62", []string{"core/github"}},
	{"github.com/sashabaranov/go-openai", []string{"agent/openai"}},
	{"mvdan.cc/sh/v3", []string{"agent/bashpolicy", "sandbox/memory"}},
	{"github.com/playwright-community/playwright-go", []string{"e2e/..."}},
}

// insideSandbox is all that the program inside sandboxes may be made of besides the standard library:
// what is copied into an untrusted place must be small.
var insideSandbox = []string{module + "/sandbox/toolbox/...", "github.com/klauspost/compress/...", "golang.org/x/net/dns/dnsmessage", "golang.org/x/sys/unix"}

func TestImports_WhatRunsInsideASandboxIsSmall(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		if p.ImportPath != module+"/sandbox/toolbox/toolboxd" {
			continue
		}
		for _, dep := range p.Deps {
			domain, _, _ := strings.Cut(dep, "/")
			if !strings.Contains(domain, ".") && domain != module {
				continue // the standard library
			}
			if !slices.ContainsFunc(insideSandbox, func(n string) bool { return matches(dep, n) }) {
				t.Errorf("%q is part of the program inside sandboxes", dep)
			}
		}
		return
	}
	t.Fatal("the program inside sandboxes was not found")
}

type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func TestImports_KeepThePlanesApart(t *testing.T) {
	t.Parallel()
	packages := list(t)
	for _, rule := range rules {
		for _, p := range packages {
			name, _ := ours(p.ImportPath)
			if !matches(name, rule.from) {
				continue
			}
			for _, dep := range p.Deps {
				d, ok := ours(dep)
				if ok && d != name && slices.ContainsFunc(rule.never, func(n string) bool { return matches(d, n) && !matches(d, rule.from) }) {
					t.Errorf("%q reaches %q, which it may not", name, d)
				}
			}
		}
	}
}

func TestImports_EachClientHasOneHome(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		name, _ := ours(p.ImportPath)
		for _, imported := range p.Imports {
			for _, h := range homes {
				if imported != h.library && !strings.HasPrefix(imported, h.library+"/") {
					continue
				}
				if !slices.ContainsFunc(h.homes, func(n string) bool { return matches(name, n) }) {
					t.Errorf("%q imports %s; its home is %v", name, imported, h.homes)
				}
			}
		}
	}
}

// list returns our packages with their transitive dependencies, without test files.
func list(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,Deps", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 3 {
		t.Fatalf("go list found only %d packages", len(all))
	}
	return all
}

// ours cuts our module's name off an import path; the root package is "".
func ours(path string) (string, bool) {
	if path == module {
		return "", true
	}
	return strings.CutPrefix(path, module+"/")
}

func matches(name, pattern string) bool {
	if pattern == "..." {
		return true
	}
	if prefix, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == prefix || strings.HasPrefix(name, prefix+"/")
	}
	return name == pattern
}
