package toolbox_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The same source gives the same program wherever it lies, so that its hash says what it is.
func TestBuild_IsTheSameInAnyFolder(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	short, long := copied(t, root, "a"), copied(t, root, "another/much/longer/folder name")
	first, second := built(t, short), built(t, long)
	for _, arch := range []string{"amd64", "arm64"} {
		if first[arch] != second[arch] || first[arch] == "" {
			t.Errorf("%s: %s and %s", arch, first[arch], second[arch])
		}
	}
	if first["amd64"] == first["arm64"] {
		t.Error("both architectures have one program")
	}
	// A byte of the source changes it: the comparison is of what was just built.
	name := filepath.Join(long, "sandbox/toolbox/toolboxd/main.go")
	source, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, bytes.Replace(source, []byte(`"toolboxd:"`), []byte(`"toolboxD:"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if changed := built(t, long); changed["amd64"] == first["amd64"] || changed["arm64"] == first["arm64"] {
		t.Error("another source gives the same program")
	}
}

// copied puts what toolboxd is made of into a folder of its own.
func copied(t *testing.T, root, name string) string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}", "./sandbox/toolbox/toolboxd")
	list.Dir = root
	folders, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := []string{"go.mod", "go.sum", "scripts/build-toolbox"}
	for folder := range strings.FieldsSeq(string(folders)) {
		found, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			rel, err := filepath.Rel(root, file)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, rel)
		}
	}
	to := filepath.Join(t.TempDir(), name)
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, file)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, file), data, 0o700); err != nil { //nolint:gosec // the script has to run
			t.Fatal(err)
		}
	}
	return to
}

// built runs the build script of a folder and returns the hash of each program.
func built(t *testing.T, root string) map[string]string {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), filepath.Join(root, "scripts/build-toolbox")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	sums := map[string]string{}
	for _, arch := range []string{"amd64", "arm64"} {
		program, err := os.ReadFile(filepath.Join(root, "sandbox/toolbox/dist/toolboxd-linux-"+arch))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(program)
		sums[arch] = hex.EncodeToString(sum[:])
	}
	return sums
}
