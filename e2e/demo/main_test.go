package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What a shell reads is what the product was given, and nothing that the caller keeps to himself.
func TestKeepEnvironment_IsForAShell(t *testing.T) {
	t.Setenv("OPENROUTER_API_KEY", "canary")
	t.Setenv("SANDBOX_IMAGE", "some/image:1")
	d := &demo{dataDir: t.TempDir(), env: map[string]string{
		"OPENROUTER_API_KEY": "canary", "SANDBOX_IMAGE": "some/image:1", "MODEL_LABEL": "it's $HOME\nscripted",
	}}
	if err := d.keepEnvironment(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(d.dataDir, "environment")
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), "canary") {
		t.Errorf("%q, %v", text, err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `. "$0"; printf %s "$SANDBOX_IMAGE $MODEL_LABEL"`, path)
	cmd.Env = []string{}
	if out, err := cmd.Output(); err != nil || string(out) != "some/image:1 it's $HOME\nscripted" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestOpenLog_KeepsTheLogOfTheStartBefore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "serve.log")
	for _, line := range []string{"first", "second", "third"} {
		f, err := openLog(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(line); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{path: "third", path + ".old": "second"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
}
