package bashpolicy

import (
	"slices"
	"strings"
)

// toolchain judges the programs that policy build adds. They run what the project's files say; code from
// the command line is no more theirs than node's.
func (c *command) toolchain() *Refusal {
	first := word{}
	if len(c.args) > 0 {
		first = c.args[0]
	}
	switch c.name {
	case "ruby":
		return c.noText("e")
	case "php":
		return c.noText("rBRE", "--run", "--process-begin", "--process-code", "--process-end")
	case "rake":
		return c.noText("eEp", "--execute", "--execute-continue", "--execute-print")
	case "bun":
		if r := c.noText("ep", "--eval", "--print"); r != nil || first.text != "x" {
			return r
		}
		return c.programOf(c.args[1:])
	case "deno":
		if first.text == "eval" || first.text == "repl" {
			return inlineCode(c.name)
		}
	case "make":
		return c.noText("E", "--eval")
	case "cmake":
		return c.noOptions("E")
	case "bundle", "composer":
		if first.text == "exec" {
			return c.programOf(c.args[1:])
		}
	}
	return nil
}

// noText refuses options that bring code, up to the file that runs.
func (c *command) noText(short string, long ...string) *Refusal {
	options := shape{values: short + valued}
	for i := 0; i < len(c.args); i++ {
		text := c.args[i].text
		switch {
		case strings.HasPrefix(text, "--"):
			name, _, _ := strings.Cut(text, "=")
			if slices.Contains(long, name) {
				return inlineCode(c.name)
			}
		case strings.HasPrefix(text, "-"):
			letter, _, next := options.cluster(text)
			if letter != "" && strings.Contains(short, letter) {
				return inlineCode(c.name)
			}
			if next {
				i++
			}
		case c.name != "make" && c.name != "rake":
			return nil
		}
	}
	return nil
}

// valued are short options of those programs that have a value.
const valued = "CIdfjors"
