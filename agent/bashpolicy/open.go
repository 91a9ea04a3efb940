package bashpolicy

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"agent-sandboxing/core"
)

// wrappers start the command that is written behind them.
var wrappers = strings.Fields(`env sudo doas command builtin exec nohup time nice ionice timeout xargs setsid stdbuf flock watch
	parallel strace ltrace unshare busybox npx pnpx bunx`)

// openRules refuses, in any grammar, only what belongs to the platform: git's history and remotes,
// and the workspace as a whole. It sees commands that are written out, also behind a wrapper such as
// env and in the text of bash -c; what a variable or a file holds is the operator's risk.
func openRules(file *syntax.File) *Refusal {
	var refused *Refusal
	here := directory{core.RepoDir}
	var open []syntax.Node
	syntax.Walk(file, func(node syntax.Node) bool {
		if node == nil {
			last := len(open) - 1
			if ownDirectory(open[last]) {
				here = here[:len(here)-1]
			}
			open = open[:last]
			return true
		}
		if stmt, ok := node.(*syntax.Stmt); ok && refused == nil {
			if call, ok := stmt.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 {
				refused = openCall(here.resolve(openWords(call.Args)), stmt.Redirs)
			}
		}
		if refused != nil {
			return false
		}
		if ownDirectory(node) {
			here = append(here, here[len(here)-1])
		}
		open = append(open, node)
		return true
	})
	return refused
}

// ownDirectory says that a cd in a node ends with it.
func ownDirectory(node syntax.Node) bool {
	switch node.(type) {
	case *syntax.Subshell, *syntax.CmdSubst, *syntax.ProcSubst:
		return true
	}
	return false
}

// directory is where commands run, as far as cd says it, under it those of the shells around.
type directory []string

// resolve follows a cd, and writes the operands of what removes files above the repository as full paths.
// Inside it they stay as they are: a cd may fail, and what follows then runs in the repository itself.
func (d directory) resolve(words []word) []word {
	last := len(d) - 1
	if name := words[0].text; len(words) > 1 && (name == "cd" || name == "pushd") {
		to := words[len(words)-1]
		switch {
		case to.glob || to.text == "-" || to.text == "…":
			d[last] = core.RepoDir
		case path.IsAbs(to.text):
			d[last] = path.Clean(to.text)
		default:
			d[last] = path.Join(d[last], to.text)
		}
		return words
	}
	above := d[last] == "/" || d[last] != core.RepoDir && under(core.RepoDir, d[last])
	if !above || !slices.ContainsFunc(words, func(w word) bool { return slices.Contains(removers, path.Base(w.text)) }) {
		return words
	}
	for i, w := range words {
		if i > 0 && !strings.HasPrefix(w.text, "-") && !path.IsAbs(w.text) && !slices.Contains(removers, w.text) {
			before := literal(strings.TrimSuffix(d[last], "/") + "/")
			words[i] = word{text: before.text + w.text, bare: append(before.bare, w.bare...), glob: w.glob}
		}
	}
	return words
}

// removers take files away from where they are.
var removers = []string{"rm", "mv", "find", "rimraf"}

// openWords reads arguments; what is not known before it runs stands as "…". The directory is known: each
// command line begins in the repository.
func openWords(args []*syntax.Word) []word {
	var words []word
	for _, arg := range args {
		known := &syntax.Word{Parts: inRepository(arg.Parts)}
		expanded := []*syntax.Word{known}
		if syntax.SplitBraces(known); braced(known) <= maxBraced {
			expanded = expand.Braces(known)
		}
		for _, one := range expanded {
			w, r := readWord(one)
			if r != nil {
				w = literal("…")
			}
			words = append(words, w)
		}
	}
	return words
}

// maxBraced bounds the words that braces are expanded to. Nobody writes more, and a few braces mean millions.
const maxBraced = 256

// braced is how many words the braces of w stand for, or more than maxBraced.
func braced(w *syntax.Word) int {
	n := 1
	for _, part := range w.Parts {
		b, ok := part.(*syntax.BraceExp)
		if !ok {
			continue
		}
		if b.Sequence {
			return maxBraced + 1 // its numbers are no names of what is worth keeping
		}
		sum := 0
		for _, elem := range b.Elems {
			sum += braced(elem)
		}
		if n *= sum; n > maxBraced {
			return n
		}
	}
	return n
}

// inRepository puts the repository's path in the place of $PWD and $(pwd).
func inRepository(parts []syntax.WordPart) []syntax.WordPart {
	out := make([]syntax.WordPart, len(parts))
	for i, part := range parts {
		switch p := part.(type) {
		case *syntax.DblQuoted:
			part = &syntax.DblQuoted{Dollar: p.Dollar, Parts: inRepository(p.Parts)}
		case *syntax.CmdSubst:
			if printsDirectory(p) {
				part = &syntax.Lit{Value: core.RepoDir}
			}
		case *syntax.ParamExp:
			if p.Param != nil && p.Param.Value == "PWD" && plainExpansion(p) {
				part = &syntax.Lit{Value: core.RepoDir}
			}
		}
		out[i] = part
	}
	return out
}

// plainExpansion says that nothing is done to the value of a variable that is set.
func plainExpansion(p *syntax.ParamExp) bool {
	return !p.Excl && !p.Length && !p.Width && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Names == 0 &&
		(p.Exp == nil || slices.Contains([]syntax.ParExpOperator{syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.ErrorUnset, syntax.ErrorUnsetOrNull}, p.Exp.Op))
}

// printsDirectory says that a substitution is pwd.
func printsDirectory(s *syntax.CmdSubst) bool {
	if len(s.Stmts) != 1 {
		return false
	}
	call, ok := s.Stmts[0].Cmd.(*syntax.CallExpr)
	return ok && len(call.Args) == 1 && call.Args[0].Lit() == "pwd"
}

// openCall judges one command line whose first word is the command.
func openCall(words []word, redirs []*syntax.Redirect) *Refusal {
	c := &command{policy: core.PolicyOpen, name: path.Base(words[0].text), args: words[1:]}
	switch {
	case c.name == "git":
		return c.openGit()
	case c.name == "rm":
		return c.remove()
	case c.name == "mv":
		return c.move()
	case c.name == "rimraf":
		return (&command{policy: c.policy, name: "rm", args: ownPatterns(c.args)}).remove()
	case slices.Contains(committers, c.name):
		return platformGit("by " + c.name)
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
			if text, ok := strings.CutPrefix(arg.text, "-S"); ok && c.name == "env" {
				return openText(text + " " + joined(c.args[i+1:]))
			}
			if name == "git" || slices.Contains(removers, name) || slices.Contains(committers, name) || name == "eval" || isShell(name) || slices.Contains(wrappers, name) {
				return openCall(c.args[i:], redirs)
			}
		}
	}
	return nil
}

func isShell(name string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "zsh", "ash", "ksh"}, name)
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
		rest := c.args[i+1:]
		if len(rest) > 1 && rest[0].text == "--" {
			rest = rest[1:]
		}
		if strings.Contains(arg.text, "c") && len(rest) > 0 {
			return openText(rest[0].text)
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
	conditions, deletes, starts := false, false, false
	for i, arg := range c.args {
		switch text := arg.text; {
		case starts:
			starts = text != ";" && text != "+"
		case text == "-delete":
			deletes = true
		case slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, text):
			if i+1 < len(c.args) {
				if r := openCall(c.args[i+1:], nil); r != nil {
					return r
				}
				starts = true
				deletes = deletes || slices.Contains(removers, path.Base(c.args[i+1].text))
			}
		case slices.Contains([]string{"-mindepth", "-maxdepth", "-depth", "-type", "-print", "-print0"}, text):
		case i+1 < len(c.args) && (text == "-name" || text == "-path") && strings.Trim(c.args[i+1].text, "*./") == "":
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
