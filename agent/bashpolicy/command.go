package bashpolicy

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"agent-sandboxing/core"
)

// command is one simple command with its arguments after quote removal.
type command struct {
	policy core.BashPolicy
	effort *effort
	name   string
	args   []word
	inject []word // arguments that the rendering puts first
}

// starts is another command that c starts.
func (c *command) starts(name string, args []word) *command {
	return &command{policy: c.policy, effort: c.effort, name: name, args: args}
}

// judge applies the rules of the command's name, then those for paths.
func (c *command) judge() *Refusal {
	if !allowedName(c.policy, c.name) {
		return refuseName(c.policy, c.name)
	}
	if r := c.rules(); r != nil {
		return r
	}
	return c.paths()
}

func (c *command) rules() *Refusal {
	switch c.name {
	case "git":
		return c.git()
	case "node":
		return c.node()
	case "python", "python3":
		return c.python()
	case "sh", "bash":
		return c.shell()
	case "npm", "pnpm", "yarn":
		return c.packages()
	case "npx":
		return c.npx()
	case "uv":
		return c.uv()
	case "pip":
		return c.pip()
	case "cd":
		return c.cd()
	case "rm":
		return c.remove()
	case "mv":
		return c.move()
	case "tee":
		return c.tee()
	case "chmod":
		return c.chmod()
	case "gzip", "gunzip":
		return c.gzip()
	case "find":
		return c.find()
	case "sed":
		return c.sed()
	case "awk":
		return c.awk()
	case "env":
		return c.env()
	case "sleep":
		return c.sleep()
	case "ready":
		return c.ready()
	case "tar":
		return c.tar()
	case "rg":
		return c.noOptions("", "--pre", "--hostname-bin")
	case "sort":
		return c.sort()
	case "uniq":
		return c.uniq()
	case "printf":
		return c.printf()
	case "file":
		return c.noOptions("C", "--compile")
	case "unzip":
		return c.noOptions(":")
	case "du", "wc":
		return c.noOptions("", "--files0-from")
	}
	if c.policy == build {
		return c.toolchain()
	}
	return nil
}

// noOptions refuses options that start programs or leave the workspace: any of the letters short,
// also in a cluster, and the long ones, also abbreviated.
func (c *command) noOptions(short string, long ...string) *Refusal {
	for i, arg := range c.args {
		switch {
		case arg.text == "--":
			return nil
		case strings.HasPrefix(arg.text, "--"):
			if abbreviates(arg.text, long) {
				return refuseOption(c.name, arg.text)
			}
		case strings.HasPrefix(arg.text, "-"), c.name == "tar" && i == 0:
			if strings.ContainsAny(strings.TrimPrefix(arg.text, "-"), short) {
				return refuseOption(c.name, arg.text)
			}
		}
	}
	return nil
}

// abbreviates says that option, without its value, is one of long or a shortened form of one.
func abbreviates(option string, long []string) bool {
	name, _, _ := strings.Cut(option, "=")
	return len(name) > 2 && slices.ContainsFunc(long, func(l string) bool { return strings.HasPrefix(l, name) })
}

func refuseOption(name, option string) *Refusal {
	option, _, _ = strings.Cut(option, "=")
	return refuse("option_not_allowed", name+" may not be used with "+option+": it would start a program or leave the workspace. Leave the option out.")
}

// tar starts no program, leaves the files and their names as they are, and reads no archive over the network.
func (c *command) tar() *Refusal {
	for i, arg := range c.args {
		name, archive, joined := strings.Cut(arg.text, "=")
		switch letter, value, _ := c.shape().cluster(arg.text); {
		case strings.HasPrefix(name, "--"):
			if !abbreviates(name, []string{"--file"}) {
				continue
			}
		case strings.HasPrefix(arg.text, "-") && letter == "f":
			archive, joined = value, value != ""
		case i > 0 || !strings.Contains(arg.text, "f"):
			continue
		}
		if !joined && i+1 < len(c.args) {
			archive = c.args[i+1].text
		}
		if host, _, remote := strings.Cut(archive, ":"); remote && !strings.Contains(host, "/") {
			return refuse("option_not_allowed", "An archive whose name has a colon is read from another machine. Write ./ in front of the name.")
		}
	}
	return c.noOptions("IPF", "--remove-files", "--to-command", "--checkpoint-action", "--use-compress-program", "--absolute-names",
		"--info-script", "--new-volume-script", "--rsh-command", "--rmt-command", "--transform", "--xform")
}

func (c *command) cd() *Refusal {
	if len(c.args) != 1 || strings.HasPrefix(c.args[0].text, "-") {
		return refuse("path_outside_workspace", "cd needs one directory inside the repository.")
	}
	return nil
}

// sort may write a file by -o, which only the policies that write allow.
func (c *command) sort() *Refusal {
	if r := c.noOptions("", "--compress-program", "--files0-from"); r != nil || c.policy != readonly {
		return r
	}
	return c.noOptions("o", "--output")
}

// printf may not set a variable: what follows could run under another PATH.
func (c *command) printf() *Refusal {
	if len(c.args) > 0 && strings.HasPrefix(c.args[0].text, "-v") {
		return refuseOption(c.name, "-v")
	}
	return nil
}

// uniq writes its second operand.
func (c *command) uniq() *Refusal {
	if c.policy != readonly {
		return nil
	}
	operands := 0
	for _, arg := range c.args {
		if !strings.HasPrefix(arg.text, "-") || arg.text == "-" {
			operands++
		}
	}
	if operands > 1 {
		return refuse("option_not_allowed", "Under this policy nothing may be written: uniq with one file only.")
	}
	return nil
}

func (c *command) find() *Refusal {
	for _, arg := range c.args {
		switch arg.text {
		case "-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls", "-files0-from":
			return refuse("option_not_allowed", "find may only find: no "+arg.text+". Use what it prints in another call.")
		}
	}
	return nil
}

// env may print the environment and nothing else.
func (c *command) env() *Refusal {
	for _, arg := range c.args {
		if arg.text != "-0" && arg.text != "--null" {
			return refuse("command_not_allowed", "env may only print. Put NAME=value in front of the command instead.")
		}
	}
	return nil
}

func (c *command) sleep() *Refusal {
	const most = time.Minute
	var total time.Duration
	for _, arg := range c.args {
		text := arg.text
		if _, err := strconv.ParseFloat(text, 64); err == nil {
			text += "s"
		}
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 || d > most {
			total = most + 1
			break
		}
		total += d
	}
	if total > most {
		return refuse("sleep_too_long", "sleep may take 60 seconds at most.")
	}
	return nil
}
