package bashpolicy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// redirect judges one redirection and renders it.
func (c *command) redirect(r *syntax.Redirect) (string, *Refusal) {
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return "", refuse("heredoc_not_allowed", "No here-documents. Make the file with the write tool.")
	case syntax.RdrOut, syntax.AppOut, syntax.RdrIn, syntax.RdrAll, syntax.AppAll, syntax.DplOut:
	default:
		return "", refuse("redirect_not_allowed", "Use >, >>, <, &> or 2>&1 only.")
	}
	fd := ""
	if r.N != nil {
		if fd = r.N.Value; fd != "1" && fd != "2" && fd != "0" {
			return "", refuse("redirect_not_allowed", "Only descriptors 0, 1 and 2 may be redirected.")
		}
	}
	target, refused := readWord(r.Word)
	if refused != nil {
		return "", refused
	}
	if r.Op == syntax.DplOut {
		if target.text != "1" && target.text != "2" {
			return "", refuse("redirect_not_allowed", "Use 2>&1 or 1>&2 only.")
		}
		return fd + ">&" + target.text, nil
	}
	if target.glob {
		return "", refuse("redirect_not_allowed", "A redirection needs the full name of a file, without a pattern.")
	}
	if refused := c.redirectTarget(target, r.Op == syntax.RdrIn); refused != nil {
		return "", refused
	}
	name := quote(target.text)
	switch r.Op {
	case syntax.RdrIn:
		return fd + "< " + name, nil
	case syntax.AppOut:
		return fd + ">> " + name, nil
	case syntax.RdrAll:
		return "> " + name + " 2>&1", nil
	case syntax.AppAll:
		return ">> " + name + " 2>&1", nil
	default:
		return fd + "> " + name, nil
	}
}

func (c *command) redirectTarget(target word, input bool) *Refusal {
	if target.text == "/dev/null" {
		return nil
	}
	if r := c.path(target); r != nil {
		return r
	}
	if input {
		return nil
	}
	if c.policy == readonly {
		return refuse("redirect_not_allowed", "Under this policy nothing may be written. Redirect to /dev/null only.")
	}
	return protectGit(target)
}

// assignment judges NAME=value in front of a command and renders it.
func assignment(a *syntax.Assign) (string, *Refusal) {
	if a.Append || a.Naked || a.Index != nil || a.Array != nil || a.Name == nil {
		return "", refuse("assignment_not_allowed", "Only NAME=value may stand in front of a command.")
	}
	name := a.Name.Value
	if !syntax.ValidName(name) {
		return "", refuse("assignment_not_allowed", "The name of a variable has letters, digits and underscores only.")
	}
	if steers(name) {
		return "", refuse("assignment_not_allowed", name+" decides which programs run. Leave it as it is.")
	}
	value := word{}
	if a.Value != nil {
		var r *Refusal
		if value, r = readWord(a.Value); r != nil {
			return "", r
		}
	}
	return name + "=" + quote(value.text), nil
}

// steers says that a variable changes which code a program loads or starts.
func steers(name string) bool {
	switch name {
	case "PATH", "IFS", "ENV", "BASH_ENV", "SHELL", "SHELLOPTS", "BASHOPTS", "HOME", "XDG_CONFIG_HOME", "CDPATH", "PS4", "PROMPT_COMMAND",
		"PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONINSPECT", "PYTHONWARNINGS", "PYTHONBREAKPOINT", "NODE_OPTIONS", "NODE_PATH", "NODE_REPL_EXTERNAL_MODULE", "RUBYOPT", "RUBYLIB", "PERL5OPT", "PERL5LIB",
		"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "MAKEFLAGS", "MAKEFILES", "BROWSER",
		"TAR_OPTIONS", "UNZIP", "GREP_OPTIONS", "GCONV_PATH", "VISUAL", "LESSOPEN", "RIPGREP_CONFIG_PATH", "AWKPATH", "AWKLIBPATH":
		return true
	}
	for _, prefix := range []string{"LD_", "GIT_", "BASH_FUNC_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return strings.HasSuffix(name, "PAGER") || strings.HasSuffix(name, "EDITOR") ||
		strings.HasPrefix(strings.ToLower(name), "npm_config_")
}
