package bashpolicy

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// What programs of packages do that a command of the same kind may not do either.
var (
	// deleters remove what they are given, patterns too.
	deleters = strings.Fields(`rimraf del trash`)
	// nodes run a file or the text of an option as node does.
	nodes = strings.Fields(`tsx ts-node ts-node-esm esno jiti babel-node vite-node zx`)
	// starters start the command that is written behind them.
	starters = strings.Fields(`shx cross-env env-cmd dotenv dotenvx`)
	// scriptRunners run scripts of the project by their names.
	scriptRunners = strings.Fields(`npm-run-all npm-run-all2 run-s run-p`)
	// shellers give their arguments to a shell.
	shellers = strings.Fields(`concurrently cross-env-shell start-server-and-test onchange chokidar`)
	// committers make commits, tags or hooks.
	committers = strings.Fields(`husky simple-git-hooks lefthook git-cz commitizen cz standard-version commit-and-tag-version
		release-it semantic-release np gh-pages lint-staged`)
	// environments start the program behind run.
	environments = strings.Fields(`poetry pipenv pdm hatch rye pixi pipx`)
	// taskRunners run tasks of the project, several at once.
	taskRunners = strings.Fields(`nx turbo lerna lage rush moon grunt gulp nps wsrun ultra invoke inv just task django`)
	// strangers are started by nobody: most of them start something else.
	strangers = strings.Fields(`eval exec source xargs timeout nohup sudo curl wget ssh nc docker ln kill perl busybox irb pry bpython`)
)

var pythonName = regexp.MustCompile(`^(?:i?python|pypy)[0-9.]*$`)

// programName is the program that a path or a package's name starts, and the scope of the package:
// jest of jest@29, jest-cli, node_modules/.bin/jest.cmd and @jest/cli.
func programName(name string) (base, scope string) {
	dir, base, ok := strings.Cut(name, "/")
	if scope, scoped := strings.CutPrefix(dir, "@"); ok && scoped {
		base, _ := programName(base)
		return base, scope
	}
	base = name[strings.LastIndexByte(name, '/')+1:]
	if at := strings.LastIndexByte(base, '@'); at > 0 {
		base = base[:at]
	}
	for _, suffix := range []string{".js", ".mjs", ".cjs", ".cmd", ".exe", "-cli"} {
		base = strings.TrimSuffix(base, suffix)
	}
	if pythonName.MatchString(base) {
		base = "python3"
	}
	return base, ""
}

// launched judges a program that another one starts: npx NAME, uv run NAME.
func (c *command) launched(program word, args []word) *Refusal {
	if r := c.effort.take(len(program.text) + bytesOf(args)); r != nil {
		return r
	}
	if program.glob || strings.Contains(program.text, "://") || strings.ContainsAny(program.text, " \t\n;&|") {
		return notPlain()
	}
	base, scope := programName(program.text)
	if c.policy != build && (slices.Contains(testRunners, base) || slices.Contains(testRunners, scope)) {
		return testRunner()
	}
	switch {
	case base == "cd" || base == "type" || base == "sed":
		return refuse("command_not_allowed", base+" is not started that way. Run it itself.")
	case slices.Contains(seedNames, base), c.policy == build && slices.Contains(buildNames, base):
		return c.starts(base, args).judge()
	case slices.Contains(packagedTools, base):
		return nil
	case slices.Contains(buildNames, base), slices.Contains(strangers, base):
		return refuseName(c.policy, base)
	case slices.Contains(deleters, base):
		return c.starts("rm", ownPatterns(args)).judge()
	case slices.Contains(nodes, base):
		return c.starts("node", args).judge()
	case slices.Contains(starters, base):
		if len(args) > 0 && args[0].text == "run" {
			args = args[1:]
		}
		return c.programOf(args)
	case slices.Contains(shellers, base):
		return inlineCode(base)
	case slices.Contains(committers, base), commits(base, args), base == "cli" && commits(scope, args):
		return platformGit("by " + base)
	case slices.Contains(environments, base):
		if len(args) > 0 && args[0].text == "run" {
			if r := c.runScript(args[1:]); r != nil {
				return r
			}
			return c.programOf(args[1:])
		}
	case slices.Contains(taskRunners, base):
		return c.tasks(args)
	case slices.Contains(scriptRunners, base):
		return c.tasks(args)
	}
	if c.policy != build && asksForTests(args) {
		return testRunner()
	}
	return nil
}

// tasks judges names of scripts and tasks, web:test and -t test too; a pattern must not match a test.
func (c *command) tasks(args []word) *Refusal {
	for _, arg := range args {
		_, value, joined := strings.Cut(arg.text, "=")
		if !joined {
			value = strings.TrimLeft(arg.text, "-")
		}
		if ok, _ := path.Match(value, "test"); ok && c.policy != build {
			return testRunner()
		}
		if r := c.scriptName(value); r != nil {
			return r
		}
	}
	return nil
}

// ownPatterns are arguments of a program that reads patterns itself, from quotes too.
func ownPatterns(args []word) []word {
	args = slices.Clone(args)
	for i := range args {
		args[i].glob = args[i].glob || strings.ContainsAny(args[i].text, "*?[")
	}
	return args
}

// commits says that a program which does several things is told to make commits, tags or hooks.
func commits(name string, args []word) bool {
	if len(args) == 0 {
		return false
	}
	switch sub := args[0].text; name {
	case "lerna":
		return sub == "version" || sub == "publish"
	case "changeset", "changesets":
		return sub == "publish" || sub == "tag"
	case "pre-commit":
		return sub == "install" || sub == "init-templatedir"
	}
	return false
}

// asksForTests says that a tool which does several things is told to run tests: ng test, nx run web:test.
func asksForTests(args []word) bool {
	words := slices.DeleteFunc(slices.Clone(args), func(w word) bool { return strings.HasPrefix(w.text, "-") })
	if len(words) > 1 && words[0].text == "run" {
		words = words[1:]
	}
	if len(words) == 0 {
		return false
	}
	_, task, joined := strings.Cut(words[0].text, ":")
	return words[0].text == "test" || words[0].text == "e2e" || strings.HasPrefix(words[0].text, "test:") || joined && task == "test"
}
