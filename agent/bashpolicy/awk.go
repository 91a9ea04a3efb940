package bashpolicy

import "strings"

// awk refuses programs that start others or write files. Debian's awk has no sandbox mode.
func (c *command) awk() *Refusal {
	program := -1
	s := c.shape()
	for i := 0; i < len(c.args); i++ {
		text := c.args[i].text
		if text == "--" {
			if program < 0 {
				program = i + 1
			}
			break
		}
		if !strings.HasPrefix(text, "-") || text == "-" {
			program = i
			break
		}
		if strings.HasPrefix(text, "--") {
			name, _, joined := strings.Cut(text, "=")
			switch name {
			case "--version", "--help":
				return nil
			case "--field-separator", "--assign":
				if !joined {
					i++
				}
				continue
			}
			return refuseOption("awk", text)
		}
		letter, _, next := s.cluster(text)
		switch letter {
		case "f":
			return c.awkFile(i)
		case "":
			return refuseOption("awk", text)
		}
		if next {
			i++
		}
	}
	if program < 0 || program >= len(c.args) {
		return refuse("awk_program_not_allowed", "awk needs a program in quotes.")
	}
	if why := awkEscapes(c.args[program].text); why != "" {
		return refuse("awk_program_not_allowed", "An awk program may only print to its output: no "+why+". Join commands with | or use > outside the program.")
	}
	return nil
}

// awkFile judges awk -f: a program file of the workspace, as any script.
func (c *command) awkFile(option int) *Refusal {
	if c.policy == readonly {
		return refuse("awk_program_not_allowed", "Under this policy awk takes its program in quotes, not from a file.")
	}
	_, file, _ := strings.Cut(c.args[option].text, "f")
	if file == "-" || file == "" && option+1 < len(c.args) && c.args[option+1].text == "-" {
		return inlineCode("awk")
	}
	return nil
}

// awkEscapes names what in a program starts a program or opens a file, "" when nothing does. Where
// it cannot be told it errs on the side of refusing.
func awkEscapes(program string) string {
	for _, name := range []string{"system", "getline", "ARGV", "|&"} {
		if strings.Contains(program, name) {
			return name
		}
	}
	print := false // within a print statement, where > and | are redirections
	depth := 0
	condition := 0  // the depth of the condition that is open, 0 when none is; -1 when one is to begin
	last := byte(0) // the last character that is no space; 'x' also after ++ and --, which end a value
	for i := 0; i < len(program); i++ {
		switch c := program[i]; {
		case c == '"':
			end := awkSkip(program, i, '"')
			if end < 0 {
				return "unfinished text"
			}
			i = end
		case c == '/' && awkRegexAfter(last):
			end := awkSkip(program, i, '/')
			if end < 0 {
				return "unfinished pattern"
			}
			i, last = end, '"'
			continue
		case c == '#':
			for i+1 < len(program) && program[i+1] != '\n' {
				i++
			}
			continue
		case c == '(':
			if depth++; condition < 0 {
				condition = depth
			}
		case c == ')':
			if depth--; condition > 0 && depth < condition {
				condition, last = 0, ',' // a statement follows, and that may be a pattern
				continue
			}
		case c == '@':
			return "@" // a call by a name that is not known, or another file
		case c == '\\':
			i++ // the next line goes on
			continue
		case c == '\n' && awkContinues(last):
			continue
		case c == ';' || c == '}' || c == '{' || c == '\n':
			print, depth = false, 0
		case c == '|':
			if i+1 < len(program) && program[i+1] == '|' {
				i++
				break
			}
			return "pipe"
		case c == '>' && print && depth <= 0:
			return "redirection"
		case awkLetter(c):
			start := i
			for i+1 < len(program) && awkLetter(program[i+1]) {
				i++
			}
			switch program[start : i+1] {
			case "print", "printf":
				print, depth = true, 0
				last = ','
				continue
			case "if", "while", "for", "switch":
				if condition == 0 {
					condition = -1
				}
			case "return", "in", "else", "do", "exit", "case":
				last = ',' // a pattern may follow, and no division
				continue
			}
		}
		switch c := program[i]; {
		case (c == '+' || c == '-') && i > 0 && program[i-1] == c:
			last = 'x'
		case c != ' ' && c != '\t':
			last = c
		}
	}
	return ""
}

// awkSkip returns where the text or pattern that begins at start ends, -1 when it does not.
func awkSkip(program string, start int, end byte) int {
	class := false
	for i := start + 1; i < len(program); i++ {
		switch c := program[i]; {
		case c == '\\':
			i++
		case c == '\n':
			return -1
		case end == '/' && c == '[':
			class = true
		case end == '/' && c == ']':
			class = false
		case c == end && !class:
			return i
		}
	}
	return -1
}

// awkRegexAfter says that a slash after last begins a pattern and is no division.
func awkRegexAfter(last byte) bool {
	return last == 0 || !awkLetter(last) && strings.IndexByte(`)]$".`, last) < 0
}

// awkContinues says that a statement goes on in the line after one that ends with last.
func awkContinues(last byte) bool { return strings.IndexByte(",&|?:", last) >= 0 }

func awkLetter(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
