package bashpolicy

import (
	"path"
	"slices"
	"strings"
)

func inlineCode(name string) *Refusal {
	return refuse("inline_code_not_allowed", name+" may not run code from the command line or from its input. Write a script file with the write tool and run that file.")
}

// script judges the file that an interpreter runs: it must not be a test runner.
func (c *command) script(w word) *Refusal {
	if c.policy == build {
		return nil
	}
	base := path.Base(w.text)
	base = strings.TrimSuffix(base, path.Ext(base))
	if slices.Contains(testRunners, base) {
		return testRunner()
	}
	for _, s := range w.segments() {
		if strings.Contains(w.text, "node_modules/") && slices.Contains(testRunners, s) {
			return testRunner()
		}
	}
	return nil
}

func (c *command) node() *Refusal {
	for i := 0; i < len(c.args); i++ {
		text := c.args[i].text
		name, _, _ := strings.Cut(text, "=")
		switch {
		case text == "-":
			return inlineCode("node")
		case name == "--version" || name == "-v" || name == "--help" || name == "-h":
			return nil
		case strings.Contains(text, "data:"):
			return inlineCode("node")
		case name == "--run":
			_, script, joined := strings.Cut(text, "=")
			if !joined && i+1 < len(c.args) {
				script = c.args[i+1].text
			}
			return c.scriptName(script)
		case text == "inspect":
			return inlineCode("node")
		case name == "--eval" || name == "--print" || name == "--interactive" || name == "--input-type":
			return inlineCode("node")
		case strings.HasPrefix(name, "--test"):
			if c.policy != build {
				return testRunner()
			}
			if text == "--test" {
				return nil // without a file it finds the tests itself
			}
		case name == "-r" || name == "-C" || slices.Contains([]string{"--require", "--import", "--loader", "--experimental-loader", "--conditions", "--env-file"}, text):
			i++ // takes the next argument
			if i < len(c.args) && strings.HasPrefix(c.args[i].text, "data:") {
				return inlineCode("node")
			}
		case strings.HasPrefix(text, "--"):
		case strings.HasPrefix(text, "-"):
			if strings.ContainsAny(text[1:], "epi") {
				return inlineCode("node")
			}
		default:
			return c.script(c.args[i])
		}
	}
	return inlineCode("node")
}

func (c *command) python() *Refusal {
	for i := 0; i < len(c.args); i++ {
		text := c.args[i].text
		switch {
		case text == "-":
			return inlineCode(c.name)
		case text == "--version" || text == "--help":
			return nil
		case strings.HasPrefix(text, "--"):
			if text == "--check-hash-based-pycs" {
				i++
			}
			continue
		case !strings.HasPrefix(text, "-"):
			if base := path.Base(text); c.policy != build && (base == "manage.py" || base == "setup.py") && asksForTests(c.args[i+1:]) {
				return testRunner()
			}
			return c.script(c.args[i])
		}
		letters := text[1:]
		for k := range len(letters) {
			value := letters[k+1:]
			switch letters[k] {
			case 'V', 'h', '?':
				return nil
			case 'c', 'i':
				return inlineCode(c.name)
			case 'm':
				rest := c.args[i+1:]
				if value == "" {
					if len(rest) == 0 {
						return inlineCode(c.name)
					}
					value, rest = rest[0].text, rest[1:]
				}
				return c.module(value, rest)
			case 'W', 'X':
				if value == "" {
					i++
				}
			default:
				continue
			}
			break // the rest of the cluster was a value
		}
	}
	return inlineCode(c.name)
}

// module judges python -m.
func (c *command) module(name string, args []word) *Refusal {
	top, _, _ := strings.Cut(name, ".")
	switch top {
	case "code", "pdb", "timeit", "cProfile", "profile", "trace", "runpy", "IPython", "ptpython", "idlelib", "asyncio":
		return inlineCode(c.name)
	case "pip":
		return c.starts("pip", args).rules()
	}
	if c.policy != build && (slices.Contains(testRunners, top) || slices.Contains(testRunners, name) || top == "test") {
		return testRunner()
	}
	return nil
}

// shell lets sh and bash run a script file only.
func (c *command) shell() *Refusal {
	for i, arg := range c.args {
		text := arg.text
		switch {
		case text == "--version":
			return nil
		case text == "--" && i+1 < len(c.args):
			continue
		case strings.HasPrefix(text, "-") && len(text) > 1 && strings.Trim(text[1:], "euxn") == "":
			continue
		case strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+"):
			return inlineCode(c.name)
		}
		return c.script(arg)
	}
	return inlineCode(c.name)
}

func (c *command) sedInPlace() bool {
	return slices.ContainsFunc(c.args, func(w word) bool {
		if strings.HasPrefix(w.text, "--") {
			return abbreviates(w.text, []string{"--in-place"})
		}
		letters, ok := strings.CutPrefix(w.text, "-")
		// Letters after e, f or l are a value.
		if i := strings.IndexAny(letters, "efl"); i >= 0 {
			letters = letters[:i]
		}
		return ok && strings.Contains(letters, "i")
	})
}

// sed runs in its sandbox mode, which has no commands that run programs or open files.
func (c *command) sed() *Refusal {
	if c.policy == readonly && c.sedInPlace() {
		return refuse("option_not_allowed", "Under this policy nothing may be changed: sed without -i only.")
	}
	if !slices.ContainsFunc(c.args, func(w word) bool { return w.text == "--sandbox" }) {
		c.inject = append(c.inject, literal("--sandbox"))
	}
	return nil
}
