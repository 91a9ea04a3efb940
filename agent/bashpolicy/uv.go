package bashpolicy

import "strings"

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
			return c.starts("pip", rest).rules()
		}
		return refuse("package_command_not_allowed", "uv "+arg.text+" is not allowed. Use uv sync, uv add, uv pip or uv run.")
	}
	return nil
}

// uvRun judges uv run: a file of Python, or a program.
func (c *command) uvRun(args []word) *Refusal {
	for i, arg := range args {
		switch text := arg.text; {
		case text == "-":
			return inlineCode("uv run")
		case strings.HasPrefix(text, "-m") && len(text) > 2:
			return c.starts("python3", nil).module(text[2:], args[i+1:])
		case text == "-m" || text == "--module":
			if i+1 < len(args) {
				return c.starts("python3", nil).module(args[i+1].text, args[i+2:])
			}
			return inlineCode("uv run")
		case !strings.HasPrefix(text, "-") && strings.HasSuffix(text, ".py") && !strings.Contains(text, "://"):
			return c.starts("python3", args[i:]).python()
		case !strings.HasPrefix(text, "-") && (i == 0 || !c.programTakesValue(args[i-1].text)):
			return c.programOf(args)
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
