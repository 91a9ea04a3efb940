package bashpolicy

import (
	"slices"
	"strings"

	"agent-sandboxing/core"
)

// shape says which arguments of a command are text and no paths.
type shape struct {
	all      bool     // every argument
	first    bool     // the first operand: a pattern or a program
	values   string   // short options with a value of their own
	data     []string // options whose value is text
	provides []string // options that give the pattern, so that the first operand is a path
	pairs    []string // options that are followed by a name and a text
}

func (c *command) shape() shape {
	switch c.name {
	case "echo", "printf", "tr", "sleep", "exit", "true", "false", "type", "which", "basename", "dirname", "ready":
		return shape{all: true}
	case "grep":
		return shape{
			first: true, values: "efmABCdD",
			data:     []string{"-e", "--regexp", "--include", "--exclude", "--exclude-dir"},
			provides: []string{"-e", "-f", "--regexp", "--file"},
		}
	case "rg":
		return shape{
			first: true, values: "efmABCdgtTjrEM",
			data:     []string{"-e", "--regexp", "-g", "--glob", "-r", "--replace"},
			provides: []string{"-e", "-f", "--regexp", "--file", "--files", "--type-list"},
		}
	case "sed":
		return shape{first: true, values: "efl", data: []string{"-e", "--expression"}, provides: []string{"-e", "-f", "--expression", "--file"}}
	case "awk":
		return shape{first: true, values: "Fvf", data: []string{"-F", "-v", "--assign", "--field-separator"}, provides: []string{"-f", "--file"}}
	case "date":
		return shape{values: "dfrsI", data: []string{"-d", "--date", "-s", "--set", "-I"}}
	case "jq":
		return shape{first: true, values: "fL", provides: []string{"-f", "--from-file"}, pairs: []string{"--arg", "--argjson"}}
	case "tar":
		return shape{values: "fCTXbgKNLV"}
	case "cp", "mv":
		return shape{values: "tS"}
	case "touch":
		return shape{values: "rdt", data: []string{"-d", "-t", "--date"}}
	case "cut":
		return shape{values: "bcdf", data: []string{"-d", "--delimiter", "--output-delimiter"}}
	case "sort":
		return shape{values: "kStTo", data: []string{"-t", "--field-separator"}}
	case "git":
		return shape{values: "CSGLn", data: []string{"-S", "-G", "-L", "-e", "--grep", "--author", "--committer", "--format", "--pretty", "--date", "--since", "--until"}}
	}
	return shape{}
}

// paths checks every argument that can be a path.
func (c *command) paths() *Refusal {
	s := c.shape()
	if s.all {
		return nil
	}
	first := s.first && !slices.ContainsFunc(c.args, func(w word) bool { return s.gives(w.text) })
	if c.name == "git" && c.subcommand() == "grep" {
		return c.gitGrepPaths()
	}
	operands := false // after --
	for i := 0; i < len(c.args); i++ {
		arg := c.args[i]
		text := arg.text
		switch {
		case operands || text == "-" || !strings.HasPrefix(text, "-"):
			if first {
				first = false
				continue
			}
			if c.name == "find" && i > 0 && findPattern(c.args[i-1].text) || c.name == "date" && strings.HasPrefix(text, "+") {
				continue
			}
			if r := c.operand(arg); r != nil {
				return r
			}
		case text == "--":
			operands = true
		case strings.HasPrefix(text, "--"):
			name, value, ok := strings.Cut(text, "=")
			if !ok {
				if slices.Contains(s.pairs, name) {
					i += 2
				} else if slices.Contains(s.data, name) && name != "--" {
					i++ // its value is the next argument
				}
				continue
			}
			if slices.Contains(s.data, name) {
				continue
			}
			if r := c.optionValue(arg.from(len(text) - len(value))); r != nil {
				return r
			}
		default:
			letter, value, next := s.cluster(text)
			data := slices.Contains(s.data, "-"+letter)
			if next {
				i++
				if i < len(c.args) && !data {
					if r := c.operand(c.args[i]); r != nil {
						return r
					}
				}
				continue
			}
			if data {
				continue
			}
			if r := c.optionValue(arg.from(len(text) - len(value))); r != nil {
				return r
			}
			// Which letter of an unknown cluster takes a value is not known: -xzf/etc/x.
			if i := strings.IndexByte(text, '/'); letter == "" && i > 0 {
				if r := c.path(arg.from(i)); r != nil {
					return r
				}
			}
		}
	}
	return nil
}

// gives says that option provides the pattern that else is the first operand.
func (s shape) gives(option string) bool {
	if strings.HasPrefix(option, "--") {
		return abbreviates(option, s.provides)
	}
	letter, _, _ := s.cluster(option)
	return strings.HasPrefix(option, "-") && letter != "" && slices.Contains(s.provides, "-"+letter)
}

// cluster reads short options up to the first that takes a value. next says that the value is the
// next argument. Without such an option what follows the first letter may be a value.
func (s shape) cluster(text string) (letter, value string, next bool) {
	for i := 1; i < len(text); i++ {
		if strings.IndexByte(s.values, text[i]) >= 0 {
			return text[i : i+1], text[i+1:], i+1 == len(text)
		}
	}
	return "", text[min(2, len(text)):], false
}

// operand checks a path, and of NAME=value the value.
func (c *command) operand(w word) *Refusal {
	if i := strings.IndexByte(w.text, '='); i > 0 && !strings.Contains(w.text[:i], "/") {
		if r := c.path(w.from(i + 1)); r != nil {
			return r
		}
	}
	if r := c.path(w); r != nil {
		return r
	}
	if c.writes() {
		return protectGit(w)
	}
	return nil
}

// writes says that a command may change the files that it is given, or make those that its options name.
func (c *command) writes() bool {
	return slices.Contains(writers, c.name) || slices.Contains(buildNames, c.name) || c.name == "sed" && c.sedInPlace()
}

// optionValue checks what is joined to an option, which may be a file to write, as of sort -o.
func (c *command) optionValue(w word) *Refusal {
	if strings.HasPrefix(w.text, "=") {
		w = w.from(1)
	}
	if r := c.path(w); r != nil {
		return r
	}
	if c.writes() {
		return protectGit(w)
	}
	return nil
}

// path refuses what lies outside the workspace.
func (c *command) path(w word) *Refusal {
	if w.mayBe("..") {
		return refuse("path_traversal", "No .. in paths. Write the path from the repository root.")
	}
	if strings.HasPrefix(w.text, "file:") {
		return outside(w.text)
	}
	if !strings.HasPrefix(w.text, "/") || w.text == "/dev/null" || under(w.text, core.RepoDir) {
		return nil
	}
	// The whole output of an earlier command is kept in OutputDir.
	if under(w.text, core.OutputDir) || c.policy == build && under(w.text, "/tmp") {
		return nil
	}
	return outside(w.text)
}

func under(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

func outside(p string) *Refusal {
	return refuse("path_outside_workspace", p+" is outside the workspace. Use a path relative to the repository root.")
}

// protectGit refuses to write into git's own directory.
func protectGit(w word) *Refusal {
	if w.mayBe(".git") {
		return refuse("git_dir_protected", "Nothing may change .git. Change files of the work tree only; the platform makes the commits.")
	}
	return nil
}

// findPattern says that the argument after option is a pattern of find.
func findPattern(option string) bool {
	switch option {
	case "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-lname", "-ilname", "-regextype", "-printf":
		return true
	}
	return false
}
