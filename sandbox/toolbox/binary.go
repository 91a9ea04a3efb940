package toolbox

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"

	"agent-sandboxing/core"
)

// dist is filled by scripts/build-toolbox. It may hold nothing but .keep: everything builds without
// the binaries, and a worker refuses to start sandboxes.
//
//go:embed all:dist
var dist embed.FS

// Binary returns the toolbox's program for a GOARCH (amd64, arm64) and its SHA-256 in hexadecimal.
// Error: toolbox_missing.
func Binary(arch string) (program []byte, sha256Hex string, err error) {
	return binaryIn(dist, arch)
}

func binaryIn(files fs.FS, arch string) ([]byte, string, error) {
	program, err := fs.ReadFile(files, "dist/toolboxd-linux-"+arch)
	if err != nil || len(program) == 0 {
		return nil, "", core.Fail(core.Unavailable, "toolbox_missing", fmt.Sprintf(
			"This build holds no toolbox for %q. Run scripts/build-toolbox, then build again.", arch)).Because(err)
	}
	hash := sha256.Sum256(program)
	return program, hex.EncodeToString(hash[:]), nil
}
