package bashpolicy

import (
	"slices"
	"strings"
)

// gitReads only look.
var gitReads = strings.Fields(`
	status diff log show blame annotate ls-files ls-tree rev-parse rev-list describe shortlog grep cat-file
	merge-base name-rev check-ignore check-attr diff-tree diff-index diff-files show-ref for-each-ref
	count-objects var version help whatchanged range-diff cherry`)

// gitWrites change the work tree and the index only.
var gitWrites = strings.Fields(`add mv rm apply restore checkout`)

var gitForbiddenOptions = []string{"--output", "--ext-diff", "--textconv", "--filters", "--exec", "--upload-pack", "--open-files-in-pager", "--unsafe-paths", "--exec-path", "--git-dir", "--work-tree", "--pathspec-from-file"}

// gitOwnOptions are whole options that also begin a forbidden one.
var gitOwnOptions = []string{"--text", "--filter"}

func isOwnGitOption(option string) bool {
	name, _, _ := strings.Cut(option, "=")
	return slices.Contains(gitOwnOptions, name)
}

func platformGit(sub string) *Refusal {
	return refuse("git_not_allowed", "git "+sub+" is not allowed: commits, branches, remotes and history belong to the platform, and the work stays uncommitted until it is published. Leave your changes in the work tree.")
}

// subcommand is git's subcommand after its global options, "" when there is none.
func (c *command) subcommand() string {
	sub, _, _ := c.gitCall()
	return sub
}

// gitCall splits the arguments of git. Only options that cannot change what runs may stand first.
func (c *command) gitCall() (sub string, args []word, r *Refusal) {
	for i := 0; i < len(c.args); i++ {
		switch text := c.args[i].text; {
		case text == "--no-pager" || text == "-P":
		case text == "-C":
			i++
		case text == "--version" || text == "--help":
			return "version", nil, nil
		case strings.HasPrefix(text, "-"):
			return "", nil, refuse("git_not_allowed", "git may not be used with "+text+" before the subcommand. Leave it out.")
		default:
			return text, c.args[i+1:], nil
		}
	}
	return "", nil, refuse("git_not_allowed", "git needs a subcommand such as status, diff or log.")
}

func (c *command) git() *Refusal {
	sub, args, r := c.gitCall()
	if r != nil {
		return r
	}
	for _, arg := range args {
		if arg.text == "--" {
			break
		}
		if abbreviates(arg.text, gitForbiddenOptions) && !isOwnGitOption(arg.text) || sub == "grep" && strings.HasPrefix(arg.text, "-O") {
			return refuseOption("git "+sub, arg.text)
		}
	}
	switch {
	case slices.Contains(gitReads, sub):
		return nil
	case sub == "branch", sub == "tag":
		return gitList(sub, args)
	case sub == "remote":
		return gitRemote(args)
	case sub == "config":
		if len(args) > 0 && slices.Contains([]string{"--get", "--get-all", "--get-regexp", "--list", "-l", "list", "get"}, args[0].text) {
			return nil
		}
	case slices.Contains(gitWrites, sub) && c.policy != readonly:
		return c.gitWrite(sub, args)
	}
	return platformGit(sub)
}

// gitList lets branch and tag list, not make or delete.
func gitList(sub string, args []word) *Refusal {
	list := slices.ContainsFunc(args, func(w word) bool { return w.text == "--list" || w.text == "-l" })
	for _, arg := range args {
		name, _, _ := strings.Cut(arg.text, "=")
		switch name {
		case "-a", "-r", "-v", "-vv", "-l", "-n", "--all", "--remotes", "--verbose", "--list", "--show-current", "--contains", "--merged", "--no-merged", "--sort", "--format", "--points-at", "--column", "--no-color":
		default:
			if strings.HasPrefix(name, "-") || !list {
				return platformGit(sub)
			}
		}
	}
	return nil
}

// gitRemote shows remotes and changes none.
func gitRemote(args []word) *Refusal {
	if len(args) == 0 || len(args) == 1 && args[0].text == "-v" || args[0].text == "get-url" {
		return nil
	}
	return platformGit("remote " + args[0].text)
}

// gitWrite lets single files be added, moved, removed and restored, never the whole work tree.
func (c *command) gitWrite(sub string, args []word) *Refusal {
	dashes := slices.IndexFunc(args, func(w word) bool { return w.text == "--" })
	has := func(options ...string) bool {
		return slices.ContainsFunc(args, func(w word) bool { return slices.Contains(options, w.text) })
	}
	whole := false
	for i, arg := range args {
		if arg.text == "--" || strings.HasPrefix(arg.text, "-") && (dashes < 0 || i < dashes) {
			continue
		}
		if sub == "checkout" && i < dashes {
			continue // the commit to take the file from
		}
		// git takes patterns from quotes, too.
		arg.glob = arg.glob || strings.ContainsAny(arg.text, "*?[")
		whole = whole || wholeWorkspace(arg) || strings.HasPrefix(arg.text, ":")
		if sub != "add" {
			if r := protectGit(arg); r != nil {
				return r
			}
		}
	}
	switch sub {
	case "checkout":
		if dashes < 0 || dashes == len(args)-1 || has("-b", "-B", "--orphan", "-p", "--patch") {
			return platformGit("checkout without -- and a file")
		}
	case "restore":
		worktree := slices.ContainsFunc(args, func(w word) bool { return w.text != "--" && abbreviates(w.text, []string{"--worktree"}) })
		if has("--staged", "-S") && !has("-W") && !worktree {
			return nil
		}
	case "add":
		return nil
	}
	if whole {
		return refuse("workspace_deletion", "git "+sub+" on the whole work tree would destroy the session's work. Name the files.")
	}
	return nil
}

// gitGrepPaths checks git grep as grep, whose first operand is a pattern.
func (c *command) gitGrepPaths() *Refusal {
	_, args, _ := c.gitCall()
	if r := c.starts("git", c.args[:len(c.args)-len(args)-1]).paths(); r != nil {
		return r
	}
	return c.starts("grep", args).paths()
}
