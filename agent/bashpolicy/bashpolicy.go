// Package bashpolicy judges one shell text before it runs. It parses the text, walks the syntax
// tree against an allow-list, and writes the tree out again with every literal quoted; that
// rendering is what runs, so a difference between this parser and the shell in the sandbox cannot
// matter.
//
// It is guidance for a well-meaning model and a record for people, not a security boundary: an
// allowed script can run anything. The sandbox is the boundary.
package bashpolicy

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"agent-sandboxing/core"
)

// Refusal says why a text may not run. Rule is stable snake_case; Message says what to do instead.
type Refusal struct {
	Rule    string
	Message string
}

func refuse(rule, message string) *Refusal { return &Refusal{Rule: rule, Message: message} }

// Check judges src under policy. It returns the canonical text to run, or why none may run. The
// canonical text of policy open is src itself, because any grammar is allowed there.
func Check(policy core.BashPolicy, src string) (canonical string, refused *Refusal) {
	if strings.ContainsFunc(src, unprintable) || !utf8.ValidString(src) {
		return "", refuse("unparsable", "The command holds characters that are not text. Write plain UTF-8 without control characters.")
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(src), "")
	if err != nil {
		return "", refuse("unparsable", "The command is not valid shell syntax. Check its quotes and operators.")
	}
	if len(file.Stmts) == 0 {
		return "", refuse("empty_command", "There is no command in this text. Write one command line.")
	}
	if policy == core.PolicyOpen {
		return src, openRules(file, newEffort(src))
	}
	if len(file.Stmts) > 1 && !file.Stmts[0].Background {
		return "", refuse("separator_not_allowed", "One statement per call. Join commands with &&, or make separate calls.")
	}
	j := &judge{policy: policy, effort: newEffort(src)}
	if r := j.stmt(file.Stmts[0]); r != nil {
		return "", r
	}
	return j.out.String(), nil
}

func unprintable(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }

// judge walks one statement and renders what it accepts.
type judge struct {
	policy core.BashPolicy
	effort *effort
	out    strings.Builder
}

// stmt judges a pipeline, a chain or one command.
func (j *judge) stmt(s *syntax.Stmt) *Refusal {
	if s.Background || s.Coprocess || s.Disown {
		return refuse("background_not_allowed", "Nothing may run in the background: it would be ended with the command. Run it in the foreground, with a timeout.")
	}
	if s.Negated {
		j.out.WriteString("! ")
	}
	switch cmd := s.Cmd.(type) {
	case *syntax.CallExpr:
		return j.call(cmd, s.Redirs)
	case *syntax.BinaryCmd:
		return j.binary(cmd)
	case *syntax.TimeClause:
		if cmd.Stmt == nil {
			return refuse("empty_command", "time needs a command.")
		}
		j.out.WriteString("time ")
		if cmd.PosixFormat {
			j.out.WriteString("-p ")
		}
		return j.stmt(cmd.Stmt)
	case nil:
		return refuse("empty_command", "A redirection needs a command. To make a file use the write tool.")
	case *syntax.Subshell:
		return refuse("subshell_not_allowed", "No subshell. Join commands with &&; cd lasts only for its own call anyway.")
	case *syntax.Block:
		return refuse("subshell_not_allowed", "No group of commands. Join them with &&, or make separate calls.")
	}
	return refuse("construct_not_allowed", "No loops, conditions, functions or declarations. Use &&, || and |, make separate calls, or write a script file and run it with bash FILE.")
}

func (j *judge) binary(b *syntax.BinaryCmd) *Refusal {
	var op string
	switch b.Op {
	case syntax.AndStmt:
		op = " && "
	case syntax.OrStmt:
		op = " || "
	case syntax.Pipe:
		op = " | "
	default:
		return refuse("construct_not_allowed", "|& is not allowed. Write 2>&1 | instead.")
	}
	if r := j.stmt(b.X); r != nil {
		return r
	}
	j.out.WriteString(op)
	return j.stmt(b.Y)
}

// call judges one simple command: assignments, name, arguments, redirections.
func (j *judge) call(call *syntax.CallExpr, redirs []*syntax.Redirect) *Refusal {
	if len(call.Args) == 0 {
		return refuse("assignment_not_allowed", "Variables do not last and are not expanded. Put NAME=value in front of the command that needs it.")
	}
	for _, assign := range call.Assigns {
		text, r := assignment(assign)
		if r != nil {
			return r
		}
		j.out.WriteString(text + " ")
	}
	c := &command{policy: j.policy, effort: j.effort}
	for i, arg := range call.Args {
		w, r := readWord(arg)
		if r != nil {
			return r
		}
		if i == 0 {
			if c.name = plainName(arg); c.name == "" {
				return notPlain()
			}
			continue
		}
		c.args = append(c.args, w)
	}
	var tail strings.Builder
	for _, redir := range redirs {
		text, r := c.redirect(redir)
		if r != nil {
			return r
		}
		tail.WriteString(" " + text)
	}
	if r := c.judge(); r != nil {
		return r
	}
	c.portable()
	j.out.WriteString(c.name)
	for _, arg := range append(c.inject, c.args...) {
		j.out.WriteString(" " + arg.render())
	}
	j.out.WriteString(tail.String())
	return nil
}

func notPlain() *Refusal {
	return refuse("command_not_plain", "The name of the command must be a plain word without quotes, slashes or patterns. Run a script with bash FILE, node FILE or python3 FILE.")
}

// plainName is the command's name when it is one bare literal, else "".
func plainName(w *syntax.Word) string {
	if len(w.Parts) != 1 {
		return ""
	}
	lit, ok := w.Parts[0].(*syntax.Lit)
	if !ok || strings.ContainsAny(lit.Value, `/\*?[]{}~!^`) {
		return ""
	}
	return lit.Value
}
