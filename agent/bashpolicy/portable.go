package bashpolicy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// portable rewrites built-in commands on which shells disagree, so that the text prints the same in
// every one of them: echo with options or backslashes becomes printf, and test compares with =.
// A pattern's matches are not known here; echo with one stays as it is.
func (c *command) portable() {
	switch c.name {
	case "test":
		for i, arg := range c.args {
			if arg.text == "==" && len(c.args) == 3 && i == 1 {
				c.args[i] = literal("=")
			}
		}
	case "echo":
		if slices.ContainsFunc(c.args, func(w word) bool { return w.glob }) ||
			!slices.ContainsFunc(c.args, func(w word) bool { return strings.HasPrefix(w.text, "-") || strings.Contains(w.text, `\`) }) {
			return
		}
		c.name, c.args = "printf", echoAsPrintf(c.args)
	}
}

// echoAsPrintf gives printf the arguments that print what echo prints in bash.
func echoAsPrintf(args []word) []word {
	newline, escapes := true, false
	for len(args) > 0 {
		letters, ok := strings.CutPrefix(args[0].text, "-")
		if !ok || letters == "" || strings.Trim(letters, "neE") != "" {
			break
		}
		for _, letter := range letters {
			switch letter {
			case 'n':
				newline = false
			default:
				escapes = letter == 'e'
			}
		}
		args = args[1:]
	}
	texts := make([]string, len(args))
	for i, arg := range args {
		texts[i] = arg.text
	}
	format, text := "%s", strings.Join(texts, " ")
	if escapes {
		format, text = "%b", commonEscapes(text)
	}
	if newline {
		format += `\n`
	}
	return []word{literal(format), literal(text)}
}

// commonEscapes writes the escapes of echo -e with those that every shell's printf %b knows.
func commonEscapes(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			b.WriteString(`\\`)
			break
		}
		switch c := s[i]; c {
		case 'a', 'b', 'c', 'f', 'n', 'r', 't', 'v', '\\':
			b.WriteString(`\` + string(c))
		case 'e', 'E':
			b.WriteString(`\0033`)
		case '0':
			i += code(&b, s[i+1:], 8, 3, octal)
		case 'x':
			i += codeOr(&b, s[i+1:], c, 2, octal)
		case 'u':
			i += codeOr(&b, s[i+1:], c, 4, utf8Octal)
		case 'U':
			i += codeOr(&b, s[i+1:], c, 8, utf8Octal)
		default:
			b.WriteString(`\\` + string([]byte{c}))
		}
	}
	return b.String()
}

// code reads up to most digits and writes the character they name. It returns how many there were.
func code(b *strings.Builder, s string, base, most int, write func(uint64) string) int {
	n := 0
	for n < len(s) && n < most {
		if _, err := strconv.ParseUint(s[n:n+1], base, 8); err != nil {
			break
		}
		n++
	}
	value, _ := strconv.ParseUint("0"+s[:n], base, 64) // n digits of that base
	b.WriteString(write(value))
	return n
}

// codeOr is code in base 16; without any digit the escape stands for itself.
func codeOr(b *strings.Builder, s string, letter byte, most int, write func(uint64) string) int {
	if s == "" || !strings.ContainsAny(s[:1], "0123456789abcdefABCDEF") {
		b.WriteString(`\\` + string(letter))
		return 0
	}
	return code(b, s, 16, most, write)
}

func octal(value uint64) string { return fmt.Sprintf(`\0%03o`, value&0xff) }

func utf8Octal(value uint64) string {
	var b strings.Builder
	for _, c := range utf8.AppendRune(nil, rune(value&0x1fffff)) {
		b.WriteString(octal(uint64(c)))
	}
	return b.String()
}
