package bashpolicy

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// packageCommands are what npm, pnpm and yarn may do besides running scripts and programs.
var packageCommands = strings.Fields(`
	install i ci add remove rm un uninstall update up upgrade outdated ls list la ll why explain audit view info
	show v prune dedupe ddp rebuild root prefix bin version help fund query pkg init create pack search import
	cache doctor licenses store workspaces workspace`)

// testScript finds scripts that run tests by the name that people give them, in its words.
var testScript = regexp.MustCompile(`(?i)(^|[^a-z])(test|tests|tst|spec|specs|e2e|unit|integration|coverage|vitest|jest|mocha|cypress|playwright|karma|jasmine|pytest)([^a-z]|$)`)

// humps are where a word of a name begins with a capital letter.
var humps = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// packages judges npm, pnpm and yarn. When it cannot tell an option's value from the subcommand,
// both are judged as the subcommand.
func (c *command) packages() *Refusal {
	if r := c.noOptions("", "--script-shell", "--node-options", "--shell-emulator"); r != nil {
		return r
	}
	for i := 0; i < len(c.args); i++ {
		text := c.args[i].text
		if strings.HasPrefix(text, "-") {
			switch {
			case text == "--version" || text == "-v" || text == "--help":
				return nil
			case callsShell(text):
				return inlineCode(c.name)
			}
			continue
		}
		afterOption := i > 0 && strings.HasPrefix(c.args[i-1].text, "-") && !strings.Contains(c.args[i-1].text, "=")
		if afterOption && c.takesValue(c.args[i-1].text) {
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

// takesValue says that an option before the subcommand is followed by its value. Of pnpm -w is the root.
func (c *command) takesValue(option string) bool {
	switch option {
	case "-w":
		return c.name != "pnpm"
	case "--prefix", "-C", "--dir", "--cwd", "--workspace", "-F", "--filter", "--registry", "--loglevel", "--reporter",
		"--cache", "--userconfig":
		return true
	}
	return false
}

// programTakesValue is takesValue of what starts a program: npx, uv run, dotenv.
func (c *command) programTakesValue(option string) bool {
	switch option {
	case "-e", "--environments", "-f", "--file", "--with", "--with-editable", "--with-requirements", "--python", "--extra", "--group", "--project", "--directory", "--env-file",
		"--from", "--index", "--index-url", "--default-index", "--package", "--color", "--config-file":
		return true
	}
	return c.takesValue(option)
}

// isSwitch says that an option before the name of a program has no value.
func isSwitch(option string) bool {
	switch option {
	case "-y", "--yes", "-n", "--no", "-q", "--quiet", "-s", "--silent", "-v", "--verbose", "-r", "--recursive", "-T", "--top-level",
		"--ignore-existing", "--offline", "--prefer-offline", "--include-workspace-root", "--workspaces",
		"--isolated", "--locked", "--frozen", "--active", "--exact", "--refresh", "--all-extras", "--all-groups", "--dev", "--script":
		return true
	}
	return strings.HasPrefix(option, "--no-")
}

// callsShell says that an option of npm or pnpm hands a text to a shell.
func callsShell(option string) bool {
	return option == "-c" || abbreviates(option, []string{"--call", "--shell-mode"})
}

func (c *command) packageCommand(sub string, args []word) *Refusal {
	switch sub {
	case "t", "tst", "test", "it", "install-test", "cit", "clean-install-test", "install-ci-test":
		if c.policy != build {
			return testRunner()
		}
		return nil
	case "run", "run-script", "rum", "urn":
		return c.runScript(args)
	case "start", "build", "lint", "format", "typecheck", "dev":
		return nil
	case "exec", "x", "dlx":
		// npm reads its own options behind the program, too.
		for _, arg := range args {
			if arg.text == "--" || c.name != "npm" {
				break
			}
			if callsShell(arg.text) {
				return inlineCode(c.name)
			}
		}
		return c.programOf(args)
	case "version":
		return c.packageVersion(args)
	case "workspace", "workspaces", "recursive", "multi", "m":
		return c.inWorkspaces(args)
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
	return c.launched(literal(sub), args)
}

// runScript judges npm run NAME. Behind an option that is not known the name may be the option's value, and
// the next one the script.
func (c *command) runScript(args []word) *Refusal {
	for i, arg := range args {
		if strings.HasPrefix(arg.text, "-") {
			continue
		}
		before := ""
		if i > 0 && !strings.Contains(args[i-1].text, "=") {
			before = args[i-1].text
		}
		if c.takesValue(before) {
			continue
		}
		if r := c.scriptName(arg.text); r != nil {
			return r
		}
		if c.name == "yarn" { // which runs programs by their names, too
			if r := c.launched(arg, args[i+1:]); r != nil {
				return r
			}
		}
		if !strings.HasPrefix(before, "-") || before == "--" || isSwitch(before) || before == "--if-present" {
			return nil
		}
	}
	return nil
}

// packageVersion lets the version be shown, or written to the package's file alone.
func (c *command) packageVersion(args []word) *Refusal {
	shown, only := true, false
	for _, arg := range args {
		switch arg.text {
		case "--json":
		case "--no-git-tag-version", "--git-tag-version=false":
			only = true
		case "--git-tag-version", "--git-tag-version=true":
			return platformGit("by " + c.name + " version")
		default:
			shown = false
		}
	}
	if shown || only {
		return nil
	}
	return refuse("git_not_allowed", c.name+" version would make a commit and a tag, and those belong to the platform. Add --no-git-tag-version.")
}

// inWorkspaces judges what is run in workspaces. Which word is the command depends on options that are not
// known here, so each is taken for it.
func (c *command) inWorkspaces(args []word) *Refusal {
	for i, arg := range args {
		if strings.HasPrefix(arg.text, "-") {
			continue
		}
		if r := c.effort.take(bytesOf(args[i:])); r != nil {
			return r
		}
		if r := c.packageCommand(arg.text, args[i+1:]); r != nil && r.Rule != "package_command_not_allowed" {
			return r
		}
	}
	return nil
}

func (c *command) scriptName(name string) *Refusal {
	if c.policy != build && testScript.MatchString(humps.ReplaceAllString(name, "$1-$2")) {
		return testRunner()
	}
	return nil
}

// programOf judges npx NAME and the like: the first operand is the program. Behind an option that is not
// known it may be the option's value, and the next one the program.
func (c *command) programOf(args []word) *Refusal {
	unknown := false
	for i := 0; i < len(args); i++ {
		text := args[i].text
		name, value, joined := strings.Cut(text, "=")
		switch {
		case text == "--":
			unknown = false
		case callsShell(name), strings.HasPrefix(name, "-") && !strings.HasPrefix(name, "--") && strings.Contains(name, "c"):
			return inlineCode(c.name)
		case name == "-p" || name == "--package":
			if !joined {
				if i++; i == len(args) {
					return nil
				}
				value = args[i].text
			}
			if r := c.launched(literal(value), nil); r != nil && r.Rule == "test_runner_not_allowed" {
				return r
			}
		case strings.HasPrefix(text, "-"):
			if !joined && c.programTakesValue(text) {
				i++
			} else {
				unknown = !joined && !isSwitch(text)
			}
		case joined && syntax.ValidName(name):
			// a variable for the program
		default:
			if r := c.launched(args[i], args[i+1:]); r != nil || !unknown {
				return r
			}
			unknown = false
		}
	}
	return nil
}

func (c *command) npx() *Refusal { return c.programOf(c.args) }
