package bashpolicy

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"agent-sandboxing/core"
)

// opener judges one text under policy open. It refuses, in any grammar, only what belongs to the platform:
// git's history and remotes, and the workspace as a whole. It sees commands that are written out, also behind
// a wrapper such as env, in the text of bash -c and in what echo prints into a shell; what a variable or a
// file holds is the operator's risk.
type opener struct {
	effort  *effort
	here    directory
	sources map[*syntax.Stmt]source
	refused *Refusal
}

// openRules judges a whole text.
func openRules(file *syntax.File, e *effort) *Refusal {
	o := &opener{effort: e, here: directory{core.RepoDir}, sources: map[*syntax.Stmt]source{}}
	var open []syntax.Node
	syntax.Walk(file, func(node syntax.Node) bool {
		if node == nil {
			last := len(open) - 1
			if ownDirectory(open[last]) {
				o.here = o.here[:len(o.here)-1]
			}
			open = open[:last]
			return true
		}
		if stmt, ok := node.(*syntax.Stmt); ok && o.refused == nil {
			o.stmt(stmt)
		}
		if o.refused != nil {
			return false
		}
		if ownDirectory(node) {
			o.here = append(o.here, o.here[len(o.here)-1])
		}
		open = append(open, node)
		return true
	})
	return o.refused
}

// stmt judges the command of one statement; those inside it are judged for themselves.
func (o *opener) stmt(s *syntax.Stmt) {
	o.link(s)
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return
	}
	words := o.here.resolve(o.words(call.Args))
	if len(words) == 0 {
		return
	}
	if words[0].text == "git" && slices.ContainsFunc(call.Assigns, configuresGit) {
		o.refused = platformGit("with settings from variables")
		return
	}
	r := o.call(words, func() string { return o.reads(s) })
	if o.refused == nil {
		o.refused = r
	}
}

// text judges a text that a shell is given. One that cannot be read is left to that shell.
func (o *opener) text(text string) *Refusal {
	if r := o.effort.take(len(text)); r != nil {
		return r
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil
	}
	return openRules(file, o.effort)
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
	if len(words) < 2 {
		return words
	}
	last := len(d) - 1
	if name := words[0].text; name == "cd" || name == "pushd" {
		to := words[len(words)-1]
		switch {
		case to.glob || to.text == "-" || strings.Contains(to.text, unknown):
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
var removers = append([]string{"rm", "mv", "find", "shred", "rsync"}, deleters...)

// withoutGit adds to the rules of a command that takes its operands away that the repository's own .git is
// none of them; that of another repository in it may go.
func withoutGit(r *Refusal, operands []word) *Refusal {
	if r != nil {
		return r
	}
	for _, w := range operands {
		p := strings.TrimPrefix(path.Clean(w.text), core.RepoDir+"/")
		first, _, _ := strings.Cut(p, "/")
		if !strings.HasPrefix(w.text, "-") && (word{text: first, glob: w.glob}).mayBe(".git") {
			return protectGit(literal(".git"))
		}
	}
	return nil
}
