package publish

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"agent-sandboxing/core"
	"agent-sandboxing/core/mirror"
)

// Limits of what is published, in bytes and files.
const (
	maxNewFile   = 1 << 20
	maxFile      = 100 << 20 // GitHub's own
	maxFiles     = 3000      // GitHub shows no more in a pull request
	maxLink      = 4096
	maxNested    = 50 // folders named
	contentBatch = 32 << 20
)

// selection is what a publish pushes.
type selection struct {
	tree    string
	changes []mirror.Change // from base to tree
	leftOut []string        // "path: rule"
}

// notChosen is the rule of a path that a person left out.
const notChosen = "left out by a person"

// choose applies the publish set: every change of a file that given has, and new text files up to
// 1 MiB. Other new files stay in the workspace, each with the rule that kept it there. What people chose
// for a path goes before the rules. given is the base with what others changed on the branch, which is
// neither judged nor taken out again.
func choose(ctx context.Context, q *mirror.Quarantine, given string, chosen core.PathChoices) (selection, error) {
	changes, err := q.Changes(ctx, given, q.Tree)
	if err != nil {
		return selection{}, err
	}
	sizes, err := sizesOf(ctx, q, changes)
	if err != nil {
		return selection{}, err
	}
	rules, err := judge(ctx, q, changes, sizes)
	if err != nil {
		return selection{}, err
	}
	for i, c := range changes {
		switch in, ok := chosen[key(c.Path)]; {
		case ok && in:
			rules[i] = ""
		case ok:
			rules[i] = cmp.Or(rules[i], notChosen)
		}
	}
	if err := refuse(changes, sizes, rules); err != nil {
		return selection{}, err
	}
	set := selection{tree: q.Tree, changes: changes}
	for _, folder := range q.Nested[:min(len(q.Nested), maxNested)] {
		set.leftOut = append(set.leftOut, printable(path.Join(folder, ".git"))+": history of a nested repository")
	}
	var out []mirror.Change
	for i, c := range changes {
		if rules[i] != "" {
			out = append(out, c)
			set.leftOut = append(set.leftOut, printable(c.Path)+": "+rules[i])
		}
	}
	if len(out) > 0 {
		if set.tree, err = q.Without(ctx, q.Tree, out); err != nil {
			return selection{}, err
		}
	}
	if n := len(changes) - len(out); n > maxFiles {
		return selection{}, core.Fail(core.Conflict, "too_many_files", fmt.Sprintf(
			"%d files would change, more than %d. Ignore or remove what does not belong in the pull request and publish again.", n, maxFiles))
	}
	if len(out) > 0 || given != q.Base {
		set.changes, err = q.Changes(ctx, q.Base, set.tree)
	}
	return set, err
}

// key is a path as it is stored and as a form can send it.
func key(path string) string { return strings.ToValidUTF8(path, "\uFFFD") }

// judge is the rule that keeps each change out, "" for those that go in.
func judge(ctx context.Context, q *mirror.Quarantine, changes []mirror.Change, sizes []int64) ([]string, error) {
	rules := make([]string, len(changes))
	for i, c := range changes {
		rules[i] = nameRule(c)
		if rules[i] == "" && c.Status == "added" {
			rules[i] = contentRule(c, sizes[i])
		}
	}
	return rules, readRules(ctx, q, changes, sizes, rules)
}

// sizesOf is the size of each change's new content, 0 where there is none.
func sizesOf(ctx context.Context, q *mirror.Quarantine, changes []mirror.Change) ([]int64, error) {
	var blobs []string
	var at []int
	for i, c := range changes {
		if c.NewSHA != "" && c.NewMode != mirror.ModeGitlink {
			blobs, at = append(blobs, c.NewSHA), append(at, i)
		}
	}
	sizes := make([]int64, len(changes))
	if len(blobs) == 0 {
		return sizes, nil
	}
	known, err := q.Sizes(ctx, blobs)
	for n, i := range at {
		if err == nil {
			sizes[i] = known[n]
		}
	}
	return sizes, err
}

// refuse names what GitHub does not take of what goes in. It is not left out quietly: that would change
// what the work means.
func refuse(changes []mirror.Change, sizes []int64, rules []string) error {
	var links, workflows, large []string
	for i, c := range changes {
		if rules[i] != "" {
			continue
		}
		if c.OldMode == mirror.ModeGitlink || c.NewMode == mirror.ModeGitlink {
			links = append(links, printable(c.Path))
		}
		if isWorkflow(c.Path) || isWorkflow(c.OldPath) {
			workflows = append(workflows, printable(c.Path))
		}
		if sizes[i] > maxFile {
			large = append(large, printable(c.Path))
		}
	}
	switch {
	case len(links) > 0:
		return core.Fail(core.Conflict, "submodule_change_refused", "Submodules cannot be changed from a session: "+few(links)+". Leave them out in the publish form, or undo that, and publish again.")
	case len(workflows) > 0:
		return core.Fail(core.Conflict, "workflow_permission_missing", "The platform's App may not change workflow files: "+few(workflows)+". Leave them out in the publish form and make these changes yourself, or undo them, and publish again.")
	case len(large) > 0:
		return core.Fail(core.Conflict, "file_too_large", "GitHub takes no file above 100 MB: "+few(large)+". Leave it out in the publish form, or make it smaller, and publish again.")
	}
	return nil
}

func isWorkflow(p string) bool { return strings.HasPrefix(p, ".github/workflows/") }

func few(names []string) string {
	if n := len(names); n > 5 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:5], ", "), n-5)
	}
	return strings.Join(names, ", ")
}

// nameRule judges a path that base does not have.
func nameRule(c mirror.Change) string {
	switch {
	case c.Status != "added" && c.Status != "renamed":
		return ""
	case !utf8.ValidString(c.Path) || strings.IndexFunc(c.Path, unicode.IsControl) >= 0:
		return "name with control characters"
	case looksSecret(c.Path):
		return "may hold secrets"
	case c.Status == "added" && looksGenerated(c.Path):
		return "generated"
	}
	return ""
}

func contentRule(c mirror.Change, size int64) string {
	switch {
	case size > maxNewFile:
		return "larger than 1 MiB"
	case c.Binary:
		return "new binary file"
	}
	return ""
}

// readRules reads the content of what is still in the set, a part at a time.
func readRules(ctx context.Context, q *mirror.Quarantine, changes []mirror.Change, sizes []int64, rules []string) error {
	var blobs []string
	var at []int
	var total int64
	flush := func() error {
		err := q.EachBlob(ctx, blobs, func(n int, data []byte) { rules[at[n]] = dataRule(changes[at[n]], data) })
		blobs, at, total = nil, nil, 0
		return err
	}
	for i, c := range changes {
		if c.Status != "added" || rules[i] != "" || c.NewMode == mirror.ModeGitlink {
			continue
		}
		blobs, at, total = append(blobs, c.NewSHA), append(at, i), total+sizes[i]
		if total > contentBatch {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

func dataRule(c mirror.Change, data []byte) string {
	if c.NewMode == mirror.ModeLink {
		target := string(data)
		if len(target) > maxLink || path.IsAbs(target) || escapes(path.Join(path.Dir(c.Path), target)) {
			return "link out of the repository"
		}
		return ""
	}
	if bytes.Contains(data, []byte("-----BEGIN ")) && bytes.Contains(data, []byte("PRIVATE KEY-----")) {
		return "may hold secrets"
	}
	return ""
}

func escapes(p string) bool { return p == ".." || strings.HasPrefix(p, "../") }

var secretNames = []string{
	".env", ".npmrc", ".pypirc", ".netrc", ".htpasswd", ".git-credentials", ".dockercfg", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519",
	"credentials", "credentials.json", "secrets.json", "secrets.yaml", "secrets.yml", "service-account.json", "terraform.tfstate",
}

var secretSuffixes = []string{".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".tfstate"}

// looksSecret knows the usual names; a sample of an environment file is none.
func looksSecret(p string) bool {
	name := strings.ToLower(path.Base(p))
	if rest, ok := strings.CutPrefix(name, ".env."); ok {
		return !slices.Contains([]string{"example", "sample", "template", "dist", "defaults"}, rest)
	}
	return slices.Contains(secretNames, name) || slices.ContainsFunc(secretSuffixes, func(s string) bool { return strings.HasSuffix(name, s) })
}

var generatedFolders = []string{
	"node_modules", "__pycache__", ".venv", ".tox", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".next", ".nuxt", ".turbo", ".gradle", ".terraform", ".cache",
}

var generatedSuffixes = []string{".pyc", ".pyo", ".class", ".o", ".min.js", ".min.css", ".js.map", ".css.map", ".log", ".tmp", ".swp", ".orig", ".rej"}

// looksGenerated knows what tools leave behind when no .gitignore catches it.
func looksGenerated(p string) bool {
	parts := strings.Split(p, "/")
	name := strings.ToLower(parts[len(parts)-1])
	return name == ".ds_store" ||
		slices.ContainsFunc(parts[:len(parts)-1], func(d string) bool { return slices.Contains(generatedFolders, d) }) ||
		slices.ContainsFunc(generatedSuffixes, func(s string) bool { return strings.HasSuffix(name, s) })
}

// printable quotes a path that would not print as itself.
func printable(p string) string {
	if !utf8.ValidString(p) || strings.IndexFunc(p, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) >= 0 {
		return fmt.Sprintf("%q", p)
	}
	return p
}
