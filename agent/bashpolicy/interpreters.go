package bashpolicy

import (
	"path"
	"slices"
	"strings"
)

func inlineCode(name string) *Refusal {
	return refuse("inline_code_not_allowed", name+" may not run code from the command line or from its input. Write a script file with the write tool and run that file.")
}

// script judges the file that an interpreter runs: it must not be a test runner, and the program of an
// installed package is that program.
func (c *command) script(w word, args []word) *Refusal {
	if name := packageOf(w.segments()); name != "" {
		return c.launched(literal(name), args)
	}
	base := path.Base(w.text)
	base = strings.TrimSuffix(base, path.Ext(base))
	if c.policy != build && slices.Contains(testRunners, base) {
		return testRunner()
	}
	return nil
}

// packageOf is the package, or the program in .bin, that a path leads into; "" when it leads into none.
func packageOf(segments []string) string {
	for i, s := range segments {
		rest := segments[i+1:]
		if (s != "node_modules" && s != "site-packages") || len(rest) == 0 {
			continue
		}
		if len(rest) > 1 && (rest[0] == ".bin" || strings.HasPrefix(rest[0], "@")) {
			return strings.TrimPrefix(rest[0]+"/"+strings.TrimPrefix(rest[1], "_"), ".bin/")
		}
		return rest[0]
	}
	return ""
}

// nodeValues are the options of node that take the next argument, besides those that load code.
var nodeValues = strings.Fields(`--title --icu-data-dir --openssl-config --redirect-warnings --trace-event-categories
	--trace-event-file-pattern --diagnostic-dir --max-http-header-size --secure-heap --secure-heap-min --unhandled-rejections
	--dns-result-order --experimental-default-type --disable-proto --disable-warning --heapsnapshot-signal
	--heapsnapshot-near-heap-limit --cpu-prof-dir --cpu-prof-name --cpu-prof-interval --heap-prof-dir --heap-prof-name
	--heap-prof-interval --report-dir --report-directory --report-filename --report-signal --inspect-port --debug-port
	--inspect-publish-uid --watch-path --watch-kill-signal --localstorage-file --stack-trace-limit --tls-cipher-list
	--tls-keylog --network-family-autoselection-attempt-timeout --allow-fs-read --allow-fs-write --experimental-sea-config
	--build-snapshot-config --env-file-if-exists --require --import --loader --experimental-loader --conditions --env-file`)

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
		case name == "-r" || name == "-C" || slices.Contains(nodeValues, text):
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
			return c.script(c.args[i], c.args[i+1:])
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
			return c.script(c.args[i], c.args[i+1:])
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
	case "pip", "uv":
		return c.starts(top, args).rules()
	}
	if slices.Contains(environments, top) || slices.Contains(taskRunners, top) {
		return c.launched(literal(top), args)
	}
	if c.policy != build && (slices.Contains(testRunners, top) || slices.Contains(testRunners, name) || top == "test" || name == "twisted.trial") {
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
		return c.script(arg, c.args[i+1:])
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
	if len(c.args) == 0 || c.args[0].text != "--sandbox" { // elsewhere it may be a value or a file
		c.inject = append(c.inject, literal("--sandbox"))
	}
	return nil
}
