package bashpolicy

import (
	"path"
	"slices"
	"strings"

	"agent-sandboxing/core"
)

var (
	// wrappers start the command that is written behind them.
	wrappers = strings.Fields(`env sudo doas command builtin exec nohup time nice ionice timeout xargs setsid stdbuf flock watch
		parallel strace ltrace unshare busybox npx pnpx bunx uvx su runuser script unbuffer chronic xvfb-run fakeroot eatmydata
		taskset chrt prlimit setarch`)
	// packagers start a program behind one of their subcommands.
	packagers = strings.Fields(`npm pnpm yarn bun bundle composer uv poetry pipx`)
	// textWrappers give each of their arguments to a shell.
	textWrappers = append(strings.Fields(`watch parallel entr hyperfine`), shellers...)
	// shells run a text or a file.
	shells = strings.Fields(`sh bash dash zsh ash ksh mksh rbash fish csh tcsh`)
)

func isShell(name string) bool { return slices.Contains(shells, name) }

// call judges one command line whose first word is the command; input gives what it reads, as far as that
// is known.
func (o *opener) call(words []word, input func() string) *Refusal {
	name, _ := programName(words[0].text)
	c := &command{policy: core.PolicyOpen, effort: o.effort, name: name, args: words[1:]}
	switch {
	case c.name == "git":
		return o.git(c)
	case c.name == "rm", c.name == "shred":
		return withoutGit(c.remove(), c.args)
	case c.name == "mv":
		return withoutGit(c.move(), c.args)
	case c.name == "rsync":
		return c.rsync()
	case slices.Contains(deleters, c.name):
		return c.starts("rm", ownPatterns(c.args)).remove()
	case slices.Contains(committers, c.name), commits(c.name, c.args):
		return platformGit("by " + c.name)
	case c.name == "find":
		return o.find(c)
	case c.name == "eval":
		return o.text(joined(c.args))
	case c.name == "trap" && len(c.args) > 1:
		return o.text(c.args[0].text)
	case c.name == "source", c.name == ".":
		return o.file(c.args, input)
	case isShell(c.name):
		return o.shell(c, input)
	case slices.Contains(packagers, c.name):
		return o.packager(c, input)
	case slices.Contains(wrappers, c.name), slices.Contains(textWrappers, c.name), slices.Contains(starters, c.name):
		return o.wrapped(c, input)
	}
	return nil
}

func joined(words []word) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.text
	}
	return strings.Join(texts, " ")
}

// wrapped judges what a wrapper starts: the first of its arguments that is a command with rules, and what it
// gives to a shell.
func (o *opener) wrapped(c *command, input func() string) *Refusal {
	if slices.Contains(textWrappers, c.name) {
		return o.texts(c.args)
	}
	for i, arg := range c.args {
		rest := c.args[i+1:]
		if text, ok := c.shellText(arg.text, rest); ok {
			return o.text(text)
		}
		if !hasRules(arg.text, rest) {
			continue
		}
		words := c.args[i:]
		if c.name == "xargs" {
			words = append(slices.Clone(words), ownPatterns(fields(input()))...)
		}
		if r := o.effort.take(bytesOf(words)); r != nil {
			return r
		}
		return o.call(words, input)
	}
	return nil
}

// texts judges what is given to a shell, argument by argument or all of it in one.
func (o *opener) texts(args []word) *Refusal {
	for _, arg := range args {
		if r := o.text(arg.text); r != nil {
			return r
		}
	}
	return o.text(joined(slices.DeleteFunc(slices.Clone(args), func(w word) bool {
		return strings.HasPrefix(w.text, "-") || strings.HasPrefix(w.text, ":::")
	})))
}

// hasRules says that call has something to say of a command.
func hasRules(name string, args []word) bool {
	name, _ = programName(name)
	for _, names := range [][]string{{"git", "eval"}, shells, removers, committers, wrappers, textWrappers, packagers, starters} {
		if slices.Contains(names, name) {
			return true
		}
	}
	return commits(name, args)
}

// shellText is the text that an option of a wrapper gives to a shell.
func (c *command) shellText(option string, rest []word) (text string, ok bool) {
	name, value, has := strings.Cut(option, "=")
	letters, short := strings.CutPrefix(option, "-")
	short = short && !strings.HasPrefix(letters, "-")
	switch {
	case c.name == "env" && name == "--split-string", c.name != "env" && (name == "--call" || name == "--command" || name == "--run"):
		if !has {
			return joined(rest), true
		}
		return value + " " + joined(rest), true
	case c.name == "env" && short && strings.Contains(letters, "S"):
		_, value, _ := strings.Cut(letters, "S")
		return value + " " + joined(rest), true
	case slices.Contains([]string{"su", "runuser", "script", "flock", "npx"}, c.name) && short && strings.HasSuffix(letters, "c") && len(rest) > 0:
		return rest[0].text, true
	}
	return "", false
}

// packager judges what a package manager makes or starts.
func (o *opener) packager(c *command, input func() string) *Refusal {
	for i, arg := range c.args {
		if strings.HasPrefix(arg.text, "-") {
			continue
		}
		switch arg.text {
		case "version":
			if c.name == "npm" || c.name == "pnpm" || c.name == "yarn" {
				return c.packageVersion(c.args[i+1:])
			}
		case "exec", "x", "dlx", "run":
			return o.wrapped(c.starts("npx", c.args[i+1:]), input)
		}
		if (c.name == "pnpm" || c.name == "yarn") && !slices.Contains(packageCommands, arg.text) { // a program under its own name
			return o.wrapped(c.starts("npx", c.args[i:]), input)
		}
		return nil
	}
	return nil
}

// shell judges the text of -c, else what the shell reads.
func (o *opener) shell(c *command, input func() string) *Refusal {
	inline := false
	for i := 0; i < len(c.args); i++ {
		text := c.args[i].text
		switch {
		case text == "-" || text == "--":
		case text == "--rcfile" || text == "--init-file":
			i++
		case strings.HasPrefix(text, "--"):
		case strings.HasPrefix(text, "-"), strings.HasPrefix(text, "+"):
			inline = inline || text[0] == '-' && strings.Contains(text, "c")
			if !inline && strings.Contains(text, "s") {
				return o.text(input())
			}
			if strings.HasSuffix(strings.ToLower(text), "o") { // pipefail and the like
				i++
			}
		case inline:
			return o.text(text)
		default:
			return o.file(c.args[i:], input)
		}
	}
	return o.text(input())
}

// file judges what a shell reads instead of a file, when that is what the file's name means.
func (o *opener) file(args []word, input func() string) *Refusal {
	if len(args) > 0 && slices.Contains([]string{unknown, "-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"}, args[0].text) {
		return o.text(input())
	}
	return nil
}

// find judges what -exec starts, and the removal of all that is found.
func (o *opener) find(c *command) *Refusal {
	f := readFind(c.args)
	for _, started := range f.starts {
		if r := o.effort.take(bytesOf(started)); r != nil {
			return r
		}
		if r := o.call(started, func() string { return "" }); r != nil {
			return r
		}
		f.deletes = f.deletes || slices.ContainsFunc(started, func(w word) bool { return slices.Contains(removers, path.Base(w.text)) })
	}
	if f.deletes && f.all {
		return refuse("workspace_deletion", "The repository may not be deleted wholesale. Give find a condition, or name the files.")
	}
	return nil
}

// found is what a find does: all says that it is with every file of the repository.
type found struct {
	all, deletes bool
	starts       [][]word
}

func readFind(args []word) found {
	var f found
	var roots []word
	conditions := false
	for i := 0; i < len(args); i++ {
		next := args[min(i+1, len(args)):]
		switch text := args[i].text; {
		case text == "-delete":
			f.deletes = true
		case slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, text):
			end := slices.IndexFunc(next, func(w word) bool { return w.text == ";" || w.text == "+" })
			if end < 0 {
				end = len(next)
			}
			if end > 0 {
				f.starts = append(f.starts, next[:end])
			}
			i += end
		case slices.Contains([]string{"-mindepth", "-maxdepth", "-type"}, text):
			i++
		case slices.Contains([]string{"-depth", "-print", "-print0"}, text):
		case len(next) > 0 && (text == "-name" || text == "-path") && strings.Trim(next[0].text, "*./") == "":
			i++
		case strings.HasPrefix(text, "-") || text == "(" || text == "!":
			conditions = true
		case len(roots) == i:
			roots = append(roots, args[i])
		}
	}
	f.all = !conditions && (len(roots) == 0 || slices.ContainsFunc(roots, wholeWorkspace))
	return f
}

// rsync may not make the repository the same as another folder.
func (c *command) rsync() *Refusal {
	deletes := slices.ContainsFunc(c.args, func(w word) bool { return strings.HasPrefix(w.text, "--del") })
	if deletes && wholeWorkspace(c.args[len(c.args)-1]) {
		return refuse("workspace_deletion", "rsync may not delete what is in the repository wholesale. Name a directory in it.")
	}
	return nil
}
