package bashpolicy

import (
	"slices"
	"strings"
)

// openGitWrites are what policy open refuses of git: history, refs and remotes are the platform's, and what
// throws the work tree away is nobody's.
var openGitWrites = strings.Fields(`
	commit push fetch pull merge rebase cherry-pick revert am reset clean stash switch worktree bisect
	update-ref symbolic-ref filter-branch commit-tree mktag replace notes fast-import send-pack gc prune
	read-tree checkout-index subtree lfs svn`)

// openGitConfig are the settings that give git another remote, other programs or other names for commands.
var openGitConfig = strings.Fields(`alias. remote. branch. url. core.hookspath core.sshcommand core.fsmonitor credential. push. include. includeif.`)

// openGit refuses the subcommands that move history, branches or remotes.
func (c *command) openGit() *Refusal {
	for i := 0; i < len(c.args); i++ {
		sub, rest := c.args[i].text, c.args[i+1:]
		switch {
		case sub == "-c" && len(rest) > 0 && strings.HasPrefix(strings.ToLower(rest[0].text), "alias."):
			return platformGit("-c " + rest[0].text)
		case slices.Contains([]string{"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--attr-source", "--super-prefix"}, sub):
			i++
		case slices.Contains(openGitWrites, sub):
			return platformGit(sub)
		case sub == "branch" || sub == "tag":
			return gitList(sub, rest)
		case sub == "remote":
			return gitRemote(rest)
		case sub == "config":
			return openConfig(rest)
		case sub == "submodule" && len(rest) > 1 && slices.ContainsFunc(rest, func(w word) bool { return w.text == "foreach" }):
			return openText(joined(rest[1:]))
		case sub == "checkout" || sub == "restore" || sub == "rm":
			return c.gitWrite(sub, rest)
		case !strings.HasPrefix(sub, "-"):
			return nil
		}
	}
	return nil
}

// openConfig lets git's settings be read and, but for those that are the platform's, written.
func openConfig(args []word) *Refusal {
	for i, arg := range args {
		if strings.HasPrefix(arg.text, "-") || arg.text == "set" || arg.text == "get" {
			continue
		}
		key := strings.ToLower(arg.text)
		if i+1 < len(args) && slices.ContainsFunc(openGitConfig, func(p string) bool { return strings.HasPrefix(key, p) }) && !reads(args) {
			return platformGit("config " + arg.text)
		}
	}
	return nil
}

// reads says that git config only shows.
func reads(args []word) bool {
	return slices.ContainsFunc(args, func(w word) bool { return strings.HasPrefix(w.text, "--get") || w.text == "get" })
}
