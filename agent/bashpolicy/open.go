package bashpolicy

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"agent-sandboxing/core"
)

// wrappers start the command that is written behind them.
var wrappers = strings.Fields(`env sudo doas command builtin exec nohup time nice ionice timeout xargs setsid stdbuf`)

// openGitWrites are what policy open refuses of git: history, refs and remotes are the platform's, and what
// throws the work tree away is nobody's.
var openGitWrites = strings.Fields(`
	commit push fetch pull merge rebase cherry-pick revert am reset clean stash switch worktree bisect
	update-ref symbolic-ref filter-branch commit-tree mktag replace notes fast-import send-pack gc prune`)

// openRules refuses, in any grammar, only what belongs to the platform: git's history and remotes,
// and the workspace as a whole. It sees commands that are written out, also behind a wrapper such as
// env and in the text of bash -c; what a variable or a file holds is the operator's risk.
func openRules(file *syntax.File) *Refusal {
	var refused *Refusal
	syntax.Walk(file, func(node syntax.Node) bool {
		stmt, ok := node.(*syntax.Stmt)
		if !ok || refused != nil {
			return refused == nil
		}
		if call, ok := stmt.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			refused = openCall(openWords(call.Args), stmt.Redirs)
		}
		return refused == nil
	})
	return refused
}

// openWords reads arguments; what is not known before it runs stands as "…". The directory is known: each
// command line begins in the repository.
func openWords(args []*syntax.Word) []word {
	words := make([]word, len(args))
	for i, arg := range args {
		w, r := readWord(&syntax.Word{Parts: inRepository(arg.Parts)})
		if r != nil {
			w = literal("…")
		}
		words[i] = w
	}
	return words
}

// inRepository puts the repository's path in the place of $PWD.
func inRepository(parts []syntax.WordPart) []syntax.WordPart {
	out := make([]syntax.WordPart, len(parts))
	for i, part := range parts {
		switch p := part.(type) {
		case *syntax.DblQuoted:
			part = &syntax.DblQuoted{Dollar: p.Dollar, Parts: inRepository(p.Parts)}
		case *syntax.ParamExp:
			if p.Param != nil && p.Param.Value == "PWD" && plainExpansion(p) {
				part = &syntax.Lit{Value: core.RepoDir}
			}
		}
		out[i] = part
	}
	return out
}

// plainExpansion says that nothing is done to the variable's value.
func plainExpansion(p *syntax.ParamExp) bool {
	return !p.Excl && !p.Length && !p.Width && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Exp == nil && p.Names == 0
}

// openCall judges one command line whose first word is the command.
func openCall(words []word, redirs []*syntax.Redirect) *Refusal {
	c := &command{policy: core.PolicyOpen, name: path.Base(words[0].text), args: words[1:]}
	switch {
	case c.name == "git":
		return c.openGit()
	case c.name == "rm":
		return c.remove()
	case c.name == "find":
		return c.openFind()
	case c.name == "eval":
		return openText(joined(c.args))
	case c.name == "trap" && len(c.args) > 1:
		return openText(c.args[0].text)
	case isShell(c.name):
		return c.openShell(redirs)
	case slices.Contains(wrappers, c.name):
		for i, arg := range c.args {
			name := path.Base(arg.text)
			if name == "git" || name == "rm" || name == "find" || name == "eval" || isShell(name) || slices.Contains(wrappers, name) {
				return openCall(c.args[i:], redirs)
			}
		}
	}
	return nil
}

func isShell(name string) bool {
	return name == "sh" || name == "bash" || name == "dash" || name == "zsh"
}

func joined(words []word) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.text
	}
	return strings.Join(texts, " ")
}

// openText judges a text that a shell is given. One that cannot be read is left to that shell.
func openText(text string) *Refusal {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil
	}
	return openRules(file)
}

// openShell judges the text of -c and of a here-document.
func (c *command) openShell(redirs []*syntax.Redirect) *Refusal {
	for i, arg := range c.args {
		if strings.HasPrefix(arg.text, "--") || !strings.HasPrefix(arg.text, "-") {
			continue
		}
		if strings.Contains(arg.text, "c") && i+1 < len(c.args) {
			return openText(c.args[i+1].text)
		}
	}
	for _, redir := range redirs {
		text := redir.Hdoc
		if redir.Op == syntax.WordHdoc {
			text = redir.Word
		}
		if text == nil {
			continue
		}
		if w, r := readWord(text); r == nil {
			if r := openText(w.text); r != nil {
				return r
			}
		}
	}
	return nil
}

// openFind judges what -exec starts, and -delete without any condition.
func (c *command) openFind() *Refusal {
	var roots []word
	conditions, deletes := false, false
	for i, arg := range c.args {
		switch text := arg.text; {
		case text == "-delete":
			deletes = true
		case slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, text):
			if i+1 < len(c.args) {
				return openCall(c.args[i+1:], nil)
			}
		case text == "-mindepth" || text == "-maxdepth" || text == "-depth" || text == "-type":
		case strings.HasPrefix(text, "-") || text == "(" || text == "!":
			conditions = true
		case i == 0 || len(roots) == i:
			roots = append(roots, arg)
		}
	}
	if deletes && !conditions && (len(roots) == 0 || slices.ContainsFunc(roots, wholeWorkspace)) {
		return refuse("workspace_deletion", "The repository may not be deleted wholesale. Give find a condition, or name the files.")
	}
	return nil
}

// openGit refuses the subcommands that move history, branches or remotes.
func (c *command) openGit() *Refusal {
	for i := 0; i < len(c.args); i++ {
		sub, rest := c.args[i].text, c.args[i+1:]
		switch {
		case sub == "-c" && len(rest) > 0 && strings.HasPrefix(strings.ToLower(rest[0].text), "alias."):
			return platformGit("-c " + rest[0].text)
		case slices.Contains([]string{"-C", "-c", "--git-dir", "--work-tree", "--namespace"}, sub):
			i++
		case slices.Contains(openGitWrites, sub):
			return platformGit(sub)
		case sub == "branch" || sub == "tag":
			return gitList(sub, rest)
		case sub == "remote":
			return gitRemote(rest)
		case sub == "checkout" || sub == "restore" || sub == "rm":
			return c.gitWrite(sub, rest)
		case !strings.HasPrefix(sub, "-"):
			return nil
		}
	}
	return nil
}
