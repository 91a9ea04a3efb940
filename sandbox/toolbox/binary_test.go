package toolbox

import (
	"testing"
	"testing/fstest"

	"agent-sandboxing/core"
)

func TestBinary(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"dist/.keep":                {},
		"dist/toolboxd-linux-amd64": {Data: []byte("abc")},
		"dist/toolboxd-linux-empty": {},
	}
	program, hash, err := binaryIn(files, "amd64")
	if want := "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; err != nil || string(program) != "abc" || hash != want {
		t.Errorf("%q, %s, %v", program, hash, err)
	}
	for _, arch := range []string{"arm64", "empty", "", "../x"} {
		if _, _, err := binaryIn(files, arch); core.CodeOf(err) != "toolbox_missing" {
			t.Errorf("%q: err = %v, want toolbox_missing", arch, err)
		}
	}
}
