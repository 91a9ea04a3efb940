package bashpolicy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// openGitWrites are what policy open refuses of git: history, refs and remotes are the platform's, and what
// throws the work tree away is nobody's.
var openGitWrites = strings.Fields(`
	commit push fetch pull merge rebase cherry-pick revert am reset clean stash switch worktree bisect
	update-ref symbolic-ref filter-branch commit-tree mktag replace notes fast-import send-pack gc prune
	read-tree checkout-index subtree lfs svn sparse-checkout filter-repo http-push for-each-repo`)

// openGitConfig are the settings that give git another remote, other programs or other names for commands.
var openGitConfig = strings.Fields(`alias. remote. branch. url. core.hookspath core.sshcommand core.fsmonitor credential. push. include. includeif.`)

// git refuses the subcommands that move history, branches or remotes.
func (o *opener) git(c *command) *Refusal {
	for i := 0; i < len(c.args); i++ {
		sub, rest := c.args[i].text, c.args[i+1:]
		switch {
		case strings.Contains(sub, unknown): // an option, perhaps
		case sub == "-c" && len(rest) > 0 && renames(rest[0].text):
			return platformGit("-c " + rest[0].text)
		case strings.HasPrefix(sub, "--config-env=") && renames(strings.TrimPrefix(sub, "--config-env=")):
			return platformGit(sub)
		case sub == "reflog" && len(rest) > 0 && (rest[0].text == "expire" || rest[0].text == "delete"):
			return platformGit("reflog " + rest[0].text)
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
		case sub == "submodule":
			return o.submodule(rest)
		case sub == "checkout" || sub == "restore" || sub == "rm":
			return c.gitWrite(sub, rest)
		case !strings.HasPrefix(sub, "-"):
			return nil
		}
	}
	return nil
}

// submodule judges the text that git submodule foreach runs.
func (o *opener) submodule(args []word) *Refusal {
	each := slices.IndexFunc(args, func(w word) bool { return w.text == "foreach" })
	if each < 0 {
		return nil
	}
	args = args[each+1:]
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		args = args[1:]
	}
	return o.text(joined(args))
}

// renames says that a setting could give a command of git another name.
func renames(setting string) bool {
	setting = strings.ToLower(setting)
	return strings.HasPrefix(setting, "alias.") || strings.HasPrefix(setting, "include")
}

// configuresGit says that a variable in front of git is a setting of it.
func configuresGit(a *syntax.Assign) bool {
	if a.Name == nil {
		return false
	}
	name, ok := strings.CutPrefix(a.Name.Value, "GIT_CONFIG_")
	return ok && (name == "COUNT" || name == "PARAMETERS" || strings.HasPrefix(name, "KEY_") || strings.HasPrefix(name, "VALUE_"))
}

// openConfig lets git's settings be read and, but for those that are the platform's, written.
func openConfig(args []word) *Refusal {
	for i, arg := range args {
		if strings.HasPrefix(arg.text, "-") || arg.text == "set" || arg.text == "get" {
			continue
		}
		key := strings.ToLower(arg.text)
		if (i+1 < len(args) || removes(args)) && slices.ContainsFunc(openGitConfig, func(p string) bool { return strings.HasPrefix(key, p) }) && !reads(args) {
			return platformGit("config " + arg.text)
		}
	}
	return nil
}

// removes says that git config takes a setting or a section of them away.
func removes(args []word) bool {
	return slices.ContainsFunc(args, func(w word) bool {
		return strings.HasPrefix(w.text, "--unset") || w.text == "--remove-section" || w.text == "unset" || w.text == "remove-section"
	})
}

// reads says that git config only shows.
func reads(args []word) bool {
	return slices.ContainsFunc(args, func(w word) bool { return strings.HasPrefix(w.text, "--get") || w.text == "get" })
}
