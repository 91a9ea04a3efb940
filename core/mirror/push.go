package mirror

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"agent-sandboxing/core"
)

const pushTimeout = 5 * time.Minute

// Push puts commit on the session's branch, on the condition that GitHub still has expected there
// ("" means no such branch). The caller has checked that commit descends from expected, so that the
// lease never forces anything. Errors are core.Errors: remote_changed, rules_rejected,
// signatures_required, workflow_permission_missing, file_too_large, secret_blocked, lfs_unsupported,
// branch_name_blocked, github_forbidden, repository_moved, github_unavailable (perhaps pushed: read the head), else
// publish_failed.
func (m *Mirror) Push(ctx context.Context, repo core.Repository, token core.RepoToken, q *Quarantine, commit, branch, expected string) error {
	if !strings.HasPrefix(branch, "agent/") || !safeBranch(branch) || !isSHA(commit) || (expected != "" && !isSHA(expected)) {
		return fmt.Errorf("refusing to push to %q", branch)
	}
	r, err := newRemote(m.gitURL(repo), token)
	if err != nil {
		return err
	}
	ref := "refs/heads/" + branch
	out := &head{limit: maxStderr}
	err = m.git.run(ctx, call{
		dir: q.dir, config: hostileConfig, stdout: out, remote: r, timeout: pushTimeout,
		args: []string{"push", "--porcelain", "--no-verify", "--no-follow-tags", "--force-with-lease=" + ref + ":" + expected, r.url, commit + ":" + ref},
	})
	if err == nil {
		return nil
	}
	failed, ok := errors.AsType[*gitError](err)
	if !ok {
		return err
	}
	if reason, refused := parsePorcelain(out.String(), ref); refused {
		return pushRefused(reason, failed)
	}
	if refused := fetchError(err); core.KindOf(refused) != core.Unavailable {
		return refused
	}
	return core.Fail(core.Unavailable, "github_unavailable",
		"GitHub did not confirm the push. Your work is safe in the workspace: publish again in a minute.").Because(err)
}

// parsePorcelain finds the line of ref that begins with ! and returns the reason in its last
// parentheses.
func parsePorcelain(out, ref string) (reason string, refused bool) {
	for line := range strings.Lines(out) {
		fields := strings.SplitN(strings.TrimRight(line, "\n"), "\t", 3)
		if len(fields) != 3 || fields[0] != "!" {
			continue
		}
		if _, to, _ := strings.Cut(fields[1], ":"); to != ref {
			continue
		}
		_, reason, _ = strings.Cut(fields[2], "(")
		return strings.TrimSuffix(strings.TrimSpace(reason), ")"), true
	}
	return "", false
}

// pushRefused classifies by GitHub's code first, by the reason second.
func pushRefused(reason string, failed *gitError) error {
	said := remoteLines(failed.stderr)
	has := func(texts ...string) bool {
		return slices.ContainsFunc(texts, func(t string) bool {
			return strings.Contains(reason, t) || slices.ContainsFunc(said, func(l string) bool { return strings.Contains(l, t) })
		})
	}
	answer := core.Fail(core.Conflict, "publish_failed", "GitHub refused the push. Look at the repository's rules and the App's permissions, then publish again.")
	switch {
	case has("without `workflows` permission", "without workflows permission", "create or update workflow"):
		answer = core.Fail(core.Conflict, "workflow_permission_missing", "GitHub does not let this App change workflow files. Undo the changes below .github/workflows, or make them yourself.")
	case has("PUSH PROTECTION", "push protection"):
		answer = core.Fail(core.Conflict, "secret_blocked", "GitHub found a secret in the changes and refused the push"+secrets(said)+". Remove it from the files, treat it as known to others, and publish again.")
	case has("GH001", "exceeds GitHub's file size limit"):
		answer = core.Fail(core.Conflict, "file_too_large", "GitHub takes no file above 100 MB"+largeFiles(said)+". Remove it from the changes and publish again.")
	case has("GH008"):
		answer = core.Fail(core.Conflict, "lfs_unsupported", "The changes hold a Git LFS pointer whose content GitHub does not know. Remove it and publish again.")
	case has("verified signatures", "signed commits", "signatures are required"):
		answer = core.Fail(core.Conflict, "signatures_required", "The repository's rules demand signed commits, which the platform does not make: "+rules(said))
	case has("GH006", "GH013", "protected branch hook declined", "repository rule violations", "Cannot create ref due to creations being restricted"):
		answer = core.Fail(core.Conflict, "rules_rejected", "The repository's rules refused the branch: "+rules(said)+" Ask an administrator to let the App push to agent/ branches.")
	case has("stale info", "fetch first", "non-fast-forward"):
		answer = core.Fail(core.Conflict, "remote_changed", "Somebody else pushed to this session's branch on GitHub. Nothing was overwritten: look at the branch there first.")
	case has("cannot lock ref", "failed to update ref", "directory/file conflict"):
		answer = core.Fail(core.Conflict, "branch_name_blocked", "A branch named agent stands in the way of agent/… branches. Rename or delete it on GitHub and publish again.")
	}
	return answer.Because(failed)
}

// remoteLines are the server's own lines without prefix, decoration and control characters.
func remoteLines(stderr string) []string {
	var lines []string
	for line := range strings.Lines(stderr) {
		text, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "remote:")
		if !ok {
			continue
		}
		text = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar {
				return -1
			}
			return r
		}, text)
		if text = strings.TrimSpace(text); text != "" {
			lines = append(lines, text)
		}
	}
	return lines
}

const maxQuoted = 400 // bytes of a server's words in one message

// rules quotes the bullet lines of a refused rule, or the errors without a code where there are none.
func rules(said []string) string {
	var found, errors []string
	for _, l := range said {
		if bullet := strings.TrimLeft(l, "-*•— "); bullet != l && bullet != "" {
			found = append(found, strings.TrimRight(bullet, "."))
		} else if text, ok := strings.CutPrefix(l, "error: "); ok && !strings.HasPrefix(text, "GH0") {
			errors = append(errors, strings.TrimRight(text, "."))
		}
	}
	if len(found) == 0 {
		found = errors
	}
	if len(found) == 0 {
		return "GitHub named no rule."
	}
	return short(strings.Join(found, "; ")) + "."
}

var (
	secretPlace = regexp.MustCompile(`path: (.+:\d+)$`)
	secretKind  = regexp.MustCompile(`^—— ([^—]+?) —+$`)
	largeFile   = regexp.MustCompile(`File (.+) is [0-9.]+ [KMG]?B; this exceeds`)
)

// secrets names the kinds of what was found and where, never the value.
func secrets(said []string) string {
	kind, kinds := "", []string{}
	for _, l := range said {
		if match := secretKind.FindStringSubmatch(l); match != nil {
			kind = match[1] + " in "
		} else if match := secretPlace.FindStringSubmatch(l); match != nil && !slices.Contains(kinds, kind+match[1]) {
			kinds = append(kinds, kind+match[1])
		}
	}
	return quoted(kinds)
}

func largeFiles(said []string) string { return named(largeFile, said) }

func named(pattern *regexp.Regexp, said []string) string {
	var found []string
	for _, l := range said {
		if match := pattern.FindStringSubmatch(l); match != nil && !slices.Contains(found, match[1]) {
			found = append(found, match[1])
		}
	}
	return quoted(found)
}

// quoted is " (a, b)", "" for none.
func quoted(found []string) string {
	if len(found) == 0 {
		return ""
	}
	return " (" + short(strings.Join(found, ", ")) + ")"
}

// short cuts at whole runes.
func short(s string) string {
	if len(s) <= maxQuoted {
		return s
	}
	return strings.ToValidUTF8(s[:maxQuoted], "") + "…"
}
