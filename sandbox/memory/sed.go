package memory

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// sed knows ADDRESS[,ADDRESS]p, d and q, and s/RE/TEXT/[g], separated by semicolons. Addresses are
// line numbers or $.
func sed(ctx context.Context, c *command) error {
	script, given := c.flags['e']
	if !given {
		if len(c.args) == 0 {
			return fmt.Errorf("%w: sed SCRIPT [FILE]", errUsage)
		}
		script, c.args = c.args[0], c.args[1:]
	}
	var steps []sedStep
	for part := range strings.SplitSeq(script, ";") {
		step, err := parseSed(strings.TrimSpace(part), c.has('E') || c.has('r'))
		if err != nil {
			return err
		}
		steps = append(steps, step)
	}
	return c.inputs(func(_ string, r *bufio.Reader) error {
		number := 0
		return eachLine(ctx, r, func(line string) (bool, error) {
			number++
			_, err := r.Peek(1)
			return c.edit(steps, line, number, err != nil)
		})
	})
}

// edit runs the steps on one line; false ends the input.
func (c *command) edit(steps []sedStep, line string, number int, last bool) (bool, error) {
	text, newline := strings.CutSuffix(line, "\n")
	write := func() error {
		out := text
		if newline {
			out += "\n"
		}
		_, err := io.WriteString(c.Stdout, out)
		return err
	}
	for _, s := range steps {
		if !s.selects(number, last) {
			continue
		}
		switch s.do {
		case 'p':
			if err := write(); err != nil {
				return false, err
			}
		case 'd':
			return true, nil
		case 'q':
			if c.has('n') {
				return false, nil
			}
			return false, write()
		case 's':
			text = s.substitute(text)
		}
	}
	if c.has('n') {
		return true, nil
	}
	return true, write()
}

// sedStep is one command of a script.
type sedStep struct {
	from, to int // 0: every line; -1: the last
	do       byte
	pattern  *regexp.Regexp
	text     string
	all      bool
}

func (s sedStep) selects(number int, last bool) bool {
	switch {
	case s.from == 0:
		return true
	case s.to == s.from:
		return number == s.from || s.from < 0 && last
	default:
		return s.from > 0 && number >= s.from && (s.to < 0 || number <= s.to)
	}
}

func (s sedStep) substitute(text string) string {
	done := false
	return s.pattern.ReplaceAllStringFunc(text, func(match string) string {
		if done && !s.all {
			return match
		}
		done = true
		return s.pattern.ReplaceAllString(match, s.text)
	})
}

var (
	sedAddress = regexp.MustCompile(`^(\d+|\$)?(?:,(\d+|\$))?(.*)$`)
	sedGroup   = regexp.MustCompile(`\\(\d)`)
)

func parseSed(text string, extended bool) (sedStep, error) {
	unknown := fmt.Errorf("%w: %q is not available in this environment", errUsage, text)
	m := sedAddress.FindStringSubmatch(text)
	if m == nil {
		return sedStep{}, unknown
	}
	var s sedStep
	s.from = sedLine(m[1])
	if s.to = s.from; m[2] != "" {
		s.to = sedLine(m[2])
	}
	switch {
	case m[3] == "p", m[3] == "d", m[3] == "q":
		s.do = m[3][0]
		return s, nil
	case len(m[3]) < 4 || m[3][0] != 's':
		return sedStep{}, unknown
	}
	parts := strings.Split(m[3][2:], m[3][1:2])
	if len(parts) != 3 || strings.Trim(parts[2], "g") != "" {
		return sedStep{}, unknown
	}
	expr := parts[0]
	if !extended {
		expr = basicToRE2(expr)
	}
	pattern, err := regexp.Compile(expr)
	if err != nil {
		return sedStep{}, err
	}
	text = strings.ReplaceAll(parts[1], "$", "$$")
	text = strings.ReplaceAll(text, "&", "${0}")
	s.do, s.pattern, s.all = 's', pattern, parts[2] != ""
	s.text = sedGroup.ReplaceAllString(text, "$${${1}}")
	return s, nil
}

func sedLine(text string) int {
	if text == "$" {
		return -1
	}
	n, _ := strconv.Atoi(text) // digits, or nothing: every line
	return n
}
