package bashpolicy

import (
	"slices"
	"strings"
)

// toolchain judges the programs that policy build adds. They run what the project's files say; code from
// the command line is no more theirs than node's, nor are commits and releases.
func (c *command) toolchain() *Refusal {
	first := word{}
	if len(c.args) > 0 {
		first = c.args[0]
	}
	switch c.name {
	case "ruby":
		return c.needsFile("eS", []string{"-v", "-h", "--version", "--help", "--copyright"})
	case "php":
		return c.needsFile("rBREa", []string{"-v", "-i", "-m", "-h", "-S", "--version", "--help", "--info", "--modules"},
			"--run", "--process-begin", "--process-code", "--process-end", "--interactive")
	case "rake":
		if slices.ContainsFunc(c.args, releases) {
			return platformGit("by rake release")
		}
		return c.noText("eEp", "--execute", "--execute-continue", "--execute-print")
	case "bun":
		return c.bun(first)
	case "deno":
		if first.text == "eval" || first.text == "repl" || c.has("-") {
			return inlineCode(c.name)
		}
	case "make":
		if slices.ContainsFunc(c.args, func(w word) bool { return strings.Contains(w.text, "$") || strings.Contains(w.text, "!=") }) {
			return inlineCode(c.name)
		}
		return c.noText("E", "--eval")
	case "cmake":
		if c.has("-E") {
			return refuseOption(c.name, "-E")
		}
	case "java":
		if slices.ContainsFunc(c.args, func(w word) bool { return strings.HasPrefix(w.text, "-XX:On") }) {
			return inlineCode(c.name)
		}
	case "mvn":
		return c.maven()
	case "cargo":
		if first.text == "release" || first.text == "publish" {
			return platformGit("by cargo " + first.text)
		}
	case "bundle", "composer":
		if first.text == "console" {
			return inlineCode(c.name)
		}
		if at := slices.IndexFunc(c.args, func(w word) bool { return w.text == "exec" }); at >= 0 {
			return c.programOf(c.args[at+1:])
		}
	}
	return nil
}

// has says that a text is one of the arguments.
func (c *command) has(text string) bool {
	return slices.ContainsFunc(c.args, func(w word) bool { return w.text == text })
}

// releases says that a task of rake or maven makes commits and tags.
func releases(w word) bool {
	return w.text == "release" || strings.HasPrefix(w.text, "release:") || strings.HasPrefix(w.text, "scm:")
}

// bun runs a program of the system, too, when the project has no script of its name.
func (c *command) bun(first word) *Refusal {
	switch {
	case first.text == "exec" || c.has("-"):
		return inlineCode(c.name)
	case first.text == "x" || first.text == "run":
		return c.programOf(c.args[1:])
	}
	return c.noText("ep", "--eval", "--print")
}

func (c *command) maven() *Refusal {
	for _, arg := range c.args {
		switch {
		case releases(arg):
			return platformGit("by mvn " + arg.text)
		case strings.HasPrefix(arg.text, "exec:"), strings.HasPrefix(arg.text, "-Dexec."):
			return inlineCode(c.name)
		}
	}
	return nil
}

// needsFile refuses an interpreter that would read its program from the command line, or from its input.
// shows are options with which it only tells something.
func (c *command) needsFile(short string, shows []string, long ...string) *Refusal {
	if r := c.noText(short, long...); r != nil {
		return r
	}
	for i, arg := range c.args {
		switch {
		case arg.text == "-":
			return inlineCode(c.name)
		case slices.Contains(shows, arg.text):
			return nil
		case !strings.HasPrefix(arg.text, "-") && (i == 0 || len(c.args[i-1].text) != 2 || c.args[i-1].text == "-f" || !strings.ContainsAny(c.args[i-1].text[1:], valued)):
			return nil
		}
	}
	return inlineCode(c.name)
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
