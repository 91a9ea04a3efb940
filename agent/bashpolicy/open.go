package bashpolicy

import (
	"path"

	"mvdan.cc/sh/v3/syntax"

	"agent-sandboxing/core"
)

// openRules refuses, in any grammar, only what belongs to the platform: git's history and remotes,
// and the workspace as a whole. It sees commands that are written out; others are the operator's risk.
func openRules(file *syntax.File) *Refusal {
	var refused *Refusal
	syntax.Walk(file, func(node syntax.Node) bool {
		call, ok := node.(*syntax.CallExpr)
		if !ok || refused != nil || len(call.Args) == 0 {
			return refused == nil
		}
		c := &command{policy: core.PolicyOpen}
		for i, arg := range call.Args {
			w, r := readWord(arg)
			if r != nil {
				w = literal("…") // an expansion: its value is not known
			}
			if i == 0 {
				c.name = path.Base(w.text)
				continue
			}
			c.args = append(c.args, w)
		}
		switch c.name {
		case "git":
			refused = c.openGit()
		case "rm":
			refused = c.remove()
		}
		return refused == nil
	})
	return refused
}

// openGit refuses the subcommands that move history, branches or remotes.
func (c *command) openGit() *Refusal {
	for i := 0; i < len(c.args); i++ {
		switch sub := c.args[i].text; sub {
		case "-C", "-c", "--git-dir", "--work-tree", "--namespace":
			i++
		case "commit", "push", "fetch", "pull", "merge", "rebase", "cherry-pick", "revert", "am", "reset", "clean", "stash", "switch", "update-ref", "filter-branch", "gc", "prune", "worktree":
			return platformGit(sub)
		case "branch", "tag":
			return gitList(sub, c.args[i+1:])
		case "checkout", "restore":
			return c.gitWrite(sub, c.args[i+1:])
		default:
			if sub == "" || sub[0] != '-' {
				return nil
			}
		}
	}
	return nil
}
