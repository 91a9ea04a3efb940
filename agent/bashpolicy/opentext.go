package bashpolicy

import (
	"cmp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"agent-sandboxing/core"
)

// unknown stands for the part of a word that is not known before it runs.
const unknown = "…"

// source is where a statement reads from: what another prints into it, or what the one around it reads.
type source struct {
	from  *syntax.Stmt
	piped bool
}

// link notes where the statements directly in s read from.
func (o *opener) link(s *syntax.Stmt) {
	switch cmd := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		o.sources[cmd.X], o.sources[cmd.Y] = source{from: s}, source{from: s}
		if cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll {
			o.sources[cmd.Y] = source{from: cmd.X, piped: true}
		}
	case *syntax.TimeClause:
		if cmd.Stmt != nil {
			o.sources[cmd.Stmt] = source{from: s}
		}
	case *syntax.Block:
		o.linkAll(s, cmd.Stmts)
	case *syntax.Subshell:
		o.linkAll(s, cmd.Stmts)
	}
}

func (o *opener) linkAll(s *syntax.Stmt, within []*syntax.Stmt) {
	for _, inner := range within {
		o.sources[inner] = source{from: s}
	}
}

// reads is the text that a statement reads, "" when it is not known.
func (o *opener) reads(s *syntax.Stmt) string {
	var texts []string
	for _, redir := range s.Redirs {
		text := redir.Hdoc
		if redir.Op == syntax.WordHdoc {
			text = redir.Word
		}
		if text != nil {
			texts = append(texts, joined(o.words([]*syntax.Word{text})))
		} else if redir.Op == syntax.RdrIn {
			texts = append(texts, o.substituted(redir.Word))
		}
	}
	if call, ok := s.Cmd.(*syntax.CallExpr); ok {
		for _, arg := range call.Args {
			texts = append(texts, o.substituted(arg))
		}
	}
	if text := strings.TrimSpace(strings.Join(texts, "\n")); text != "" {
		return text
	}
	switch from := o.sources[s]; {
	case from.piped:
		return o.prints(from.from)
	case from.from != nil:
		return o.reads(from.from)
	}
	return ""
}

// substituted is what the commands of <(…) print.
func (o *opener) substituted(w *syntax.Word) string {
	text := ""
	for _, part := range w.Parts {
		if p, ok := part.(*syntax.ProcSubst); ok && p.Op == syntax.CmdIn {
			text += o.printed(p.Stmts)
		}
	}
	return text
}

func (o *opener) printed(stmts []*syntax.Stmt) string {
	texts := make([]string, len(stmts))
	for i, s := range stmts {
		texts[i] = o.prints(s)
	}
	return strings.TrimSpace(strings.Join(texts, "\n"))
}

// prints is the text that a statement prints, "" when it is not known. All files are "*".
func (o *opener) prints(s *syntax.Stmt) string {
	if r := o.effort.take(int(s.End().Offset() - s.Pos().Offset())); r != nil {
		o.refused = r
		return ""
	}
	o.link(s)
	switch cmd := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		if cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll {
			return o.prints(cmd.Y)
		}
		return o.printed([]*syntax.Stmt{cmd.X, cmd.Y})
	case *syntax.Block:
		return o.printed(cmd.Stmts)
	case *syntax.Subshell:
		return o.printed(cmd.Stmts)
	case *syntax.CallExpr:
		if words := o.words(cmd.Args); len(words) > 0 {
			return o.printedBy(words, s)
		}
	}
	return ""
}

func (o *opener) printedBy(words []word, s *syntax.Stmt) string {
	args := words[1:]
	switch words[0].text {
	case "echo":
		for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
			args = args[1:]
		}
		return joined(args)
	case "printf":
		return formatted(args)
	}
	args = slices.DeleteFunc(slices.Clone(args), func(w word) bool { return strings.HasPrefix(w.text, "-") })
	switch words[0].text {
	case "cat", "tee", "sort", "head", "tail":
		if words[0].text == "tee" || len(args) == 0 {
			return o.reads(s)
		}
	case "pwd":
		return core.RepoDir
	case "ls":
		if len(args) == 0 {
			return "*"
		}
	case "find":
		if readFind(words[1:]).all {
			return "*"
		}
	case "git":
		switch joined(words[1:]) {
		case "ls-files", "ls-files -z":
			return "*"
		case "rev-parse --show-toplevel":
			return core.RepoDir
		}
	}
	return ""
}

// formatted is about what printf prints.
func formatted(args []word) string {
	if len(args) == 0 {
		return ""
	}
	text := args[0].text
	for _, arg := range args[1:] {
		if before, after, ok := strings.Cut(text, "%s"); ok {
			text = before + arg.text + after
		} else {
			text += " " + arg.text
		}
	}
	return strings.ReplaceAll(text, `\n`, "\n")
}

// words reads arguments. The directory is known: each command line begins in the repository.
func (o *opener) words(args []*syntax.Word) []word {
	var words []word
	for _, arg := range args {
		if text, ok := o.alone(arg); ok {
			words = append(words, ownPatterns(fields(text))...)
			continue
		}
		known := &syntax.Word{Parts: o.known(arg.Parts)}
		syntax.SplitBraces(known)
		left := maxBraced
		for one, err := range expand.BracesSeq(nil, known) {
			w := literal(unknown)
			if err == nil {
				if read, r := readWord(one); r == nil {
					w = read
				}
			}
			words = append(words, w)
			if left--; err != nil || left == 0 {
				break
			}
		}
	}
	return words
}

// maxBraced bounds the words that one word's braces are expanded to. Nobody writes more, and a few braces
// mean millions.
const maxBraced = 32

// alone is the known text of a word that is one substitution, which the shell splits.
func (o *opener) alone(w *syntax.Word) (text string, ok bool) {
	if len(w.Parts) != 1 {
		return "", false
	}
	s, ok := w.Parts[0].(*syntax.CmdSubst)
	if !ok {
		return "", false
	}
	text = o.printed(s.Stmts)
	return text, text != ""
}

func fields(text string) []word {
	var words []word
	for field := range strings.FieldsSeq(text) {
		words = append(words, literal(field))
	}
	return words
}

// known writes out what parts of a word mean: what substitutions print, the repository's path in the place of
// $PWD, and unknown in that of the rest.
func (o *opener) known(parts []syntax.WordPart) []syntax.WordPart {
	out := make([]syntax.WordPart, len(parts))
	for i, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
		case *syntax.SglQuoted:
			if p.Dollar {
				part = written(escapes(p))
			}
		case *syntax.DblQuoted:
			part = &syntax.DblQuoted{Parts: o.known(p.Parts)}
		case *syntax.CmdSubst:
			part = written(cmp.Or(o.printed(p.Stmts), unknown))
		case *syntax.ParamExp:
			part = written(unknown)
			if p.Param != nil && p.Param.Value == "PWD" && plainExpansion(p) {
				part = written(core.RepoDir)
			}
		default:
			part = written(unknown)
		}
		out[i] = part
	}
	return out
}

// written is a literal that stands for text, in quotes and outside.
func written(text string) *syntax.Lit {
	return &syntax.Lit{Value: strings.ReplaceAll(text, `\`, `\\`)}
}

// escapes is what $'…' means.
func escapes(p *syntax.SglQuoted) string {
	text, err := expand.Literal(nil, &syntax.Word{Parts: []syntax.WordPart{p}})
	if err != nil {
		return unknown
	}
	return text
}

// plainExpansion says that nothing is done to the value of a variable that is set.
func plainExpansion(p *syntax.ParamExp) bool {
	return !p.Excl && !p.Length && !p.Width && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Names == 0 &&
		(p.Exp == nil || slices.Contains([]syntax.ParExpOperator{syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.ErrorUnset, syntax.ErrorUnsetOrNull}, p.Exp.Op))
}
