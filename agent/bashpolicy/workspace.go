package bashpolicy

import (
	"path"
	"regexp"
	"strconv"
	"strings"

	"agent-sandboxing/core"
)

// remove keeps the workspace as a whole.
func (c *command) remove() *Refusal {
	for _, arg := range c.args {
		if strings.HasPrefix(arg.text, "-") {
			continue
		}
		if wholeWorkspace(arg) {
			return refuse("workspace_deletion", "The repository may not be deleted wholesale. Name the files or directories to remove.")
		}
	}
	return nil
}

// wholeWorkspace says that w names the repository, a directory above it or, by a pattern, all that is in one
// of them.
func wholeWorkspace(w word) bool {
	p := w.text
	if !strings.HasPrefix(p, "/") {
		p = core.RepoDir + "/" + p
	}
	p = path.Clean(p)
	for w.glob {
		dir, last := path.Split(p)
		if !matchesAll(last) {
			break
		}
		p = path.Clean(dir)
	}
	return p == "/" || under(core.RepoDir, p) || w.glob && matchesAbove(p)
}

// matchesAbove says that a pattern matches the repository or a directory above it.
func matchesAbove(pattern string) bool {
	pattern = strings.ReplaceAll(pattern, "[!", "[^")
	for dir := core.RepoDir; dir != "/"; dir = path.Dir(dir) {
		if ok, _ := path.Match(pattern, dir); ok {
			return true
		}
	}
	return false
}

// matchesAll says that a pattern leaves out next to nothing: nothing in it is written out, as in *.*,
// [a-z]* and *[!x].
func matchesAll(pattern string) bool {
	if pattern == "" || pattern[0] == '.' {
		return false
	}
	written := bracket.ReplaceAllString(pattern, "")
	return strings.Trim(written, "*?.") == "" && (written == pattern || strings.Contains(written, "*"))
}

// bracket is a set of characters in a pattern.
var bracket = regexp.MustCompile(`\[[!^]?\]?[^\]]*\]`)

// move keeps the repository where it is: neither itself nor all that is in it goes elsewhere.
func (c *command) move() *Refusal {
	var operands []word
	target := "" // of -t
	for i := 0; i < len(c.args); i++ {
		text := c.args[i].text
		name, value, joined := strings.Cut(text, "=")
		switch {
		case len(name) > 2 && abbreviates(name, []string{"--target-directory"}):
			if !joined && i+1 < len(c.args) {
				i++
				value = c.args[i].text
			}
			target = value
		case strings.HasPrefix(text, "--"):
		case strings.HasPrefix(text, "-") && len(text) > 1:
			if _, value, ok := strings.Cut(text, "t"); ok {
				if target = value; value == "" && i+1 < len(c.args) {
					i++
					target = c.args[i].text
				}
			}
		default:
			operands = append(operands, c.args[i])
		}
	}
	if target == "" && len(operands) > 1 {
		last := len(operands) - 1
		target, operands = operands[last].text, operands[:last]
	}
	if !path.IsAbs(target) {
		target = core.RepoDir + "/" + target
	}
	stays := under(path.Clean(target), core.RepoDir)
	for _, w := range operands {
		if wholeWorkspace(w) && (!w.glob || !stays) {
			return refuse("workspace_deletion", "The repository stays where it is. Name the files or directories to move, and a place inside it.")
		}
	}
	return nil
}

// tee empties what it is given before it writes.
func (c *command) tee() *Refusal {
	for _, w := range c.args {
		if w.glob && wholeWorkspace(w) {
			return refuse("workspace_deletion", "tee would replace the text of every file. Name the files.")
		}
	}
	return nil
}

// gzip puts another file in the place of each that it is given, with -r in a whole tree, git's own too.
func (c *command) gzip() *Refusal {
	recursive, whole := false, false
	for _, arg := range c.args {
		switch {
		case strings.HasPrefix(arg.text, "--"):
			recursive = recursive || abbreviates(arg.text, []string{"--recursive"})
		case strings.HasPrefix(arg.text, "-"):
			recursive = recursive || strings.Contains(arg.text, "r")
		default:
			whole = whole || wholeWorkspace(arg)
		}
	}
	if recursive && whole {
		return refuse("workspace_deletion", c.name+" -r on the whole repository would put another file in the place of every one, git's own too. Name the files.")
	}
	return nil
}

// chmod on the whole repository must leave it usable: without its rights no command runs there any more.
func (c *command) chmod() *Refusal {
	mode, whole := "", false
	for _, arg := range c.args {
		switch {
		case strings.HasPrefix(arg.text, "--reference"):
			return nil
		case strings.HasPrefix(arg.text, "--"), strings.HasPrefix(arg.text, "-") && strings.Trim(arg.text[1:], "Rcfv") == "":
		case mode == "":
			mode = arg.text
		default:
			whole = whole || wholeWorkspace(arg)
		}
	}
	if whole && !keepsOwner(mode) {
		return refuse("workspace_deletion", "chmod on the whole repository may not take rights from its owner: nothing could run there any more. Name the files.")
	}
	return nil
}

// keepsOwner says that a mode of chmod takes nothing from the owner of a directory.
func keepsOwner(mode string) bool {
	if n, err := strconv.ParseUint(mode, 8, 16); err == nil {
		return n&0o700 == 0o700
	}
	for clause := range strings.SplitSeq(mode, ",") {
		who := strings.TrimLeft(clause, "go")
		if who == clause || strings.HasPrefix(who, "u") || strings.HasPrefix(who, "a") { // not only group and others
			if strings.ContainsAny(clause, "-=") {
				return false
			}
		}
	}
	return true
}
