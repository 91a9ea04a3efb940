package bashpolicy

import (
	"regexp"
	"slices"
	"strings"
)

// packageCommands are what npm, pnpm and yarn may do besides running scripts and programs.
var packageCommands = strings.Fields(`
	install i ci add remove rm un uninstall update up upgrade outdated ls list la ll why explain audit view info
	show v prune dedupe ddp rebuild root prefix bin version help fund query pkg init create pack search import
	cache doctor licenses store workspaces workspace`)

// testScript finds scripts that run tests by the name that people give them.
var testScript = regexp.MustCompile(`(?i)(^|[^a-z])(test|tests|tst|spec|specs|e2e|unit|integration|vitest|jest|mocha|cypress|playwright)([^a-z]|$)`)

// packages judges npm, pnpm and yarn. When it cannot tell an option's value from the subcommand,
// both are judged as the subcommand.
func (c *command) packages() *Refusal {
	if r := c.noOptions("", "--script-shell", "--node-options", "--shell-emulator"); r != nil {
		return r
	}
	for i := 0; i < len(c.args); i++ {
		text := c.args[i].text
		if strings.HasPrefix(text, "-") {
			if text == "--version" || text == "-v" || text == "--help" {
				return nil
			}
			continue
		}
		afterOption := i > 0 && strings.HasPrefix(c.args[i-1].text, "-") && !strings.Contains(c.args[i-1].text, "=")
		if afterOption && takesValue(c.args[i-1].text) {
			continue
		}
		r := c.packageCommand(text, c.args[i+1:])
		if !afterOption || r != nil && r.Rule != "package_command_not_allowed" {
			return r
		}
		if r == nil && i == len(c.args)-1 {
			return nil
		}
	}
	if c.name == "yarn" && !slices.ContainsFunc(c.args, func(w word) bool { return !strings.HasPrefix(w.text, "-") }) {
		return nil // yarn alone installs
	}
	return refuse("package_command_not_allowed", c.name+" needs a subcommand such as ci, install or run.")
}

// takesValue says that an option before the subcommand is followed by its value.
func takesValue(option string) bool {
	switch option {
	case "--prefix", "-C", "--dir", "--cwd", "-w", "--workspace", "-F", "--filter", "--registry", "--loglevel", "--reporter":
		return true
	}
	return false
}

func (c *command) packageCommand(sub string, args []word) *Refusal {
	switch sub {
	case "t", "tst", "test", "it", "install-test", "cit", "clean-install-test", "install-ci-test":
		if c.policy != build {
			return testRunner()
		}
		return nil
	case "run", "run-script", "rum", "urn":
		for _, arg := range args {
			if arg.text == "--" {
				break
			}
			if !strings.HasPrefix(arg.text, "-") {
				return c.scriptName(arg.text)
			}
		}
		return nil
	case "start", "build", "lint", "format", "typecheck", "dev":
		return nil
	case "exec", "x", "dlx":
		return c.programOf(args)
	case "workspace", "workspaces":
		// yarn workspace NAME COMMAND
		if c.name == "yarn" && len(args) > 1 {
			return c.packageCommand(args[len(args)-1].text, nil)
		}
		return nil
	}
	if slices.Contains(packageCommands, sub) {
		return nil
	}
	switch sub {
	case "publish", "unpublish", "login", "logout", "adduser", "config", "c", "set", "get", "token", "owner", "access", "deprecate", "dist-tag", "edit", "explore", "hook", "link", "ln", "org", "profile", "star", "team", "whoami", "node", "env", "setup", "self-update", "patch", "patch-commit", "npm", "plugin":
		return refuse("package_command_not_allowed", c.name+" "+sub+" is not allowed. Use it to install packages or to run a script of the project.")
	}
	if c.name == "npm" {
		return refuse("package_command_not_allowed", "npm "+sub+" is not allowed. Use npm ci, npm install or npm run NAME.")
	}
	// pnpm and yarn run a script or a program under its own name.
	if r := c.scriptName(sub); r != nil {
		return r
	}
	return c.launched(sub, args)
}

func (c *command) scriptName(name string) *Refusal {
	if c.policy != build && testScript.MatchString(name) {
		return testRunner()
	}
	return nil
}

// programOf judges npx NAME and the like: the first operand is the program.
func (c *command) programOf(args []word) *Refusal {
	for i := 0; i < len(args); i++ {
		text := args[i].text
		name, _, joined := strings.Cut(text, "=")
		switch {
		case text == "--":
			continue
		case name == "-c" || name == "--call" || name == "--shell-mode":
			return inlineCode(c.name)
		case name == "-p" || name == "--package":
			value := strings.TrimPrefix(text, name+"=")
			if !joined {
				if i++; i == len(args) {
					return nil
				}
				value = args[i].text
			}
			if r := c.launched(value, nil); r != nil && r.Rule == "test_runner_not_allowed" {
				return r
			}
		case strings.HasPrefix(text, "-"):
			if !strings.HasPrefix(text, "--") && strings.Contains(text, "c") {
				return inlineCode(c.name)
			}
		default:
			return c.launched(text, args[i+1:])
		}
	}
	return nil
}

func (c *command) npx() *Refusal { return c.programOf(c.args) }

// uv judges uv and what uv run starts.
func (c *command) uv() *Refusal {
	for i, arg := range c.args {
		if strings.HasPrefix(arg.text, "-") {
			continue
		}
		rest := c.args[i+1:]
		switch arg.text {
		case "run":
			return c.uvRun(rest)
		case "tool":
			if len(rest) > 0 && rest[0].text == "run" {
				return c.uvRun(rest[1:])
			}
			return nil
		case "sync", "lock", "add", "remove", "tree", "export", "init", "venv", "version", "help", "build", "python", "cache", "format":
			return nil
		case "pip":
			return (&command{policy: c.policy, name: "pip", args: rest}).rules()
		}
		return refuse("package_command_not_allowed", "uv "+arg.text+" is not allowed. Use uv sync, uv add, uv pip or uv run.")
	}
	return nil
}

func (c *command) uvRun(args []word) *Refusal {
	for i := 0; i < len(args); i++ {
		text := args[i].text
		switch {
		case text == "-":
			return inlineCode("uv run")
		case text == "-m" || text == "--module":
			if i+1 < len(args) {
				return (&command{policy: c.policy, name: "python3"}).module(args[i+1].text, args[i+2:])
			}
			return nil
		case slices.Contains([]string{"--with", "--python", "-p", "--extra", "--group", "--project", "--directory", "--env-file", "--from", "--package", "--with-requirements"}, text):
			i++
		case strings.HasPrefix(text, "-"):
		case strings.HasSuffix(text, ".py"):
			return c.script(args[i])
		default:
			return c.launched(text, args[i+1:])
		}
	}
	return inlineCode("uv run")
}

func (c *command) pip() *Refusal {
	for _, arg := range c.args {
		if strings.HasPrefix(arg.text, "-") {
			continue
		}
		switch arg.text {
		case "install", "uninstall", "list", "show", "freeze", "check", "download", "wheel", "index", "inspect", "hash", "help", "compile", "sync", "tree":
			return nil
		}
		return refuse("package_command_not_allowed", "pip "+arg.text+" is not allowed. Use pip install, list, show, freeze or check.")
	}
	return nil
}
