package mirror

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"agent-sandboxing/core"
)

// bring runs one fetch within the limits of time, progress and size. One that fails leaves nothing of
// what it had brought: half a pack is of no use to anybody.
func (m *Mirror) bring(ctx context.Context, c call) error {
	// All of it goes into one file, so that the limit of a file is that of the whole.
	c.config = append([]string{"fetch.unpackLimit=1"}, lenientFsck...)
	c.timeout, c.limits = m.fetchWithin, limits{file: m.maxBase}
	err := m.git.run(ctx, c)
	if err == nil {
		return nil
	}
	full, lookErr := m.full(c.dir)
	failed, _ := errors.AsType[*gitError](err)
	err = errors.Join(err, lookErr, clearAbandoned(c.dir))
	switch {
	case full:
		return core.Fail(core.TooLarge, "clone_too_large", fmt.Sprintf(
			"The repository's last commits are larger than the %d MiB that this server takes. Ask the operator to lower CLONE_DEPTH or to raise CLONE_MAX_MIB.",
			m.maxBase>>20)).Because(errOutputLimit)
	case failed != nil && failed.exhausted():
		return core.Fail(core.TooLarge, "clone_too_large", fmt.Sprintf(
			"The repository takes git more than the %d MiB of memory that it gets. Ask the operator to lower CLONE_DEPTH; if that does not help, its folders lie too deep in one another.",
			gitMemory>>20)).Because(err)
	}
	return err
}

// full says whether a pack that did not become whole ended at the limit: git itself does not say it.
func (m *Mirror) full(dir string) (bool, error) {
	packs, err := filepath.Glob(filepath.Join(dir, "objects", "pack", "tmp_pack_*"))
	for _, path := range packs {
		if info, err := os.Stat(path); err == nil && info.Size() >= int64(m.maxBase) {
			return true, nil
		}
	}
	return false, err
}
