package mirror

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agent-sandboxing/core"
)

// FixtureBranch is the one branch of every fixture repository.
const FixtureBranch = "main"

// fixtureIdentity and its date make the commit depend on the folder's content alone.
const fixtureIdentity = "Fixture <fixture@localhost> 946684800 +0000"

// FixtureHead is the branch of a fixture repository: one commit of its folder, the same for the
// same content. not_found when there is no such folder, or when fixtures are off.
func (m *Mirror) FixtureHead(ctx context.Context, repo core.Repository) (core.Branch, error) {
	held, err := m.locks.acquire(ctx, key(repo))
	if err != nil {
		return core.Branch{}, err
	}
	defer held.release()
	head, err := m.importFixture(ctx, held, repo)
	return core.Branch{Name: FixtureBranch, SHA: head, Subject: fixtureSubject(repo)}, err
}

func fixtureSubject(repo core.Repository) string { return "Import " + repo.Name }

// withFixture is withBase for a fixture: its folder is imported instead of fetched. A session keeps
// the commit that it began from when the folder changes.
func (m *Mirror) withFixture(ctx context.Context, s core.ChatSession, use func(dir, base string) error) error {
	held, err := m.locks.acquire(ctx, key(s.Repository))
	if err != nil {
		return err
	}
	defer held.release()
	dir, err := m.open(ctx, s.Repository)
	if err != nil {
		return err
	}
	base, err := m.resolve(ctx, dir, keepRef(s.ID))
	if err != nil {
		return err
	}
	if base == "" {
		if base, err = m.importFixture(ctx, held, s.Repository); err != nil {
			return err
		}
		if s.BaseSHA != "" && s.BaseSHA != base {
			return core.Fail(core.Conflict, "base_moved", fmt.Sprintf(
				"The fixture %s changed from %.12s to %.12s before the session began. Start the session again.", s.Repository.Name, s.BaseSHA, base))
		}
		if err := m.git.run(ctx, call{dir: dir, args: []string{"update-ref", keepRef(s.ID), base}, lock: held}); err != nil {
			return err
		}
	}
	return use(dir, base)
}

// importFixture turns the folder into a commit, once per content.
func (m *Mirror) importFixture(ctx context.Context, held *lock, repo core.Repository) (head string, err error) {
	name := repo.Name
	if m.fixtures == "" || !repo.IsFixture() || name == "" || name != filepath.Base(name) || name == "." || name == ".." {
		return "", core.NotFoundError()
	}
	dir, err := m.open(ctx, repo)
	if err != nil {
		return "", err
	}
	var stream bytes.Buffer
	if err := writeFixture(&stream, filepath.Join(m.fixtures, name), fixtureSubject(repo)); err != nil {
		return "", err
	}
	digest := sha256.Sum256(stream.Bytes())
	ref := "refs/agent/fixtures/" + hex.EncodeToString(digest[:])
	head, err = m.resolve(ctx, dir, ref)
	if err != nil || head != "" {
		return head, err
	}
	script := io.MultiReader(strings.NewReader("commit "+ref+"\n"), &stream)
	if err := m.git.run(ctx, call{dir: dir, args: []string{"fast-import", "--quiet", "--done"}, stdin: script, lock: held}); err != nil {
		return "", fmt.Errorf("import fixture %s: %w", name, err)
	}
	return m.resolve(ctx, dir, ref)
}

// writeFixture writes the body of a fast-import commit: what fast-import reads is data, so no
// attribute, filter or link of the folder has any effect.
func writeFixture(out *bytes.Buffer, folder, subject string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return core.NotFoundError().Because(err)
	}
	defer root.Close()
	fmt.Fprintf(out, "committer %s\ndata %d\n%s\n", fixtureIdentity, len(subject), subject)
	err = fs.WalkDir(root.FS(), ".", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.Name() == ".git" && path != ".":
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case e.IsDir():
			return nil
		}
		mode, data, err := fixtureFile(root, path, e)
		if err != nil || mode == "" {
			return err
		}
		fmt.Fprintf(out, "M %s inline %s\ndata %d\n", mode, quotePath(path), len(data))
		out.Write(data)
		out.WriteString("\n")
		return nil
	})
	if err != nil {
		return fmt.Errorf("read fixture: %w", err)
	}
	out.WriteString("done\n")
	return nil
}

// fixtureFile returns a file's git mode and content, "" for what git cannot hold.
func fixtureFile(root *os.Root, path string, e fs.DirEntry) (mode string, data []byte, err error) {
	switch {
	case e.Type()&fs.ModeSymlink != 0:
		target, err := root.Readlink(path)
		return "120000", []byte(target), err
	case !e.Type().IsRegular():
		return "", nil, nil
	}
	info, err := e.Info()
	if err != nil {
		return "", nil, err
	}
	mode = "100644"
	if info.Mode()&0o111 != 0 {
		mode = "100755"
	}
	data, err = root.ReadFile(path)
	return mode, data, err
}

// quotePath is fast-import's C-style quoting, harmless where it was not needed.
func quotePath(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}
