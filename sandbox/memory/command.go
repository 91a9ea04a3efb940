package memory

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"mvdan.cc/sh/v3/interp"
)

// command is one call of a program of the table.
type command struct {
	interp.HandlerContext
	jail  *jail
	name  string
	flags map[byte]string // single letters, with their value
	args  []string
}

// program is one of the table: its flags, those with a value followed by a colon as in getopts.
type program struct {
	flags string
	run   func(ctx context.Context, c *command) error
}

// table is every program that there is beside the shell's builtins (cd, echo, printf, pwd, test,
// true, false and so on).
var table = map[string]program{
	"cat":   {"n", cat},
	"cp":    {"rRaf", cp},
	"grep":  {"EFHhiclLnoqrRsvwe:A:B:C:m:", grep},
	"head":  {"n:c:", head},
	"ls":    {"a1lAhR", ls},
	"mkdir": {"pv", mkdir},
	"mv":    {"fn", mv},
	"rm":    {"rRfv", rm},
	"sed":   {"nEre:", sed},
	"sleep": {"", sleep},
	"sort":  {"runk:t:", sortLines},
	"tail":  {"n:c:", tail},
	"touch": {"c", touch},
	"wc":    {"lwc", wc},
}

// errUsage is a call that the table's programs do not understand.
var errUsage = errors.New("usage")

// execute is the interpreter's handler for everything that is no builtin.
func (s *shell) execute(ctx context.Context, args []string) error {
	hc := interp.HandlerCtx(ctx)
	p, ok := table[args[0]]
	if !ok {
		fmt.Fprintf(hc.Stderr, "bash: %s: not available in this environment\n", args[0])
		return interp.ExitStatus(127)
	}
	c := &command{HandlerContext: hc, jail: s.jail, name: args[0]}
	if err := c.parse(p.flags, args[1:]); err != nil {
		return c.fail(err, 2)
	}
	err := p.run(ctx, c)
	if _, isStatus := errors.AsType[interp.ExitStatus](err); err == nil || isStatus {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, io.ErrClosedPipe) {
		return interp.ExitStatus(141) // the reader of our output has gone
	}
	return c.fail(err, 1)
}

// parse splits flags from operands. -12 is -n 12 for the programs that take it.
func (c *command) parse(known string, args []string) error {
	c.flags = map[byte]string{}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		switch {
		case arg == "--":
			c.args = append(c.args, args...)
			return nil
		case len(arg) < 2 || arg[0] != '-':
			c.args = append(c.args, arg)
			continue
		case strings.HasPrefix(arg, "--"):
			return fmt.Errorf("%w: option %s is not available in this environment", errUsage, arg)
		case arg[1] >= '0' && arg[1] <= '9' && strings.Contains(known, "n:"):
			c.flags['n'] = arg[1:]
			continue
		}
		for i := 1; i < len(arg); i++ {
			at := strings.IndexByte(known, arg[i])
			if at < 0 || arg[i] == ':' {
				return fmt.Errorf("%w: option -%c is not available in this environment", errUsage, arg[i])
			}
			if at+1 == len(known) || known[at+1] != ':' {
				c.flags[arg[i]] = ""
				continue
			}
			value := arg[i+1:]
			if value == "" {
				if len(args) == 0 {
					return fmt.Errorf("%w: option -%c needs a value", errUsage, arg[i])
				}
				value, args = args[0], args[1:]
			}
			c.flags[arg[i]] = value
			break
		}
	}
	return nil
}

func (c *command) has(flag byte) bool {
	_, ok := c.flags[flag]
	return ok
}

// fail says err as the program would and gives its exit status.
func (c *command) fail(err error, status uint8) error {
	c.complain(err)
	return interp.ExitStatus(status)
}

// complain writes err to standard error without paths of this machine.
func (c *command) complain(err error) {
	text := err.Error()
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		text = p.Path + ": " + p.Err.Error()
	}
	if l, ok := errors.AsType[*os.LinkError](err); ok {
		text = l.Old + ": " + l.Err.Error()
	}
	fmt.Fprintf(c.Stderr, "%s: %s\n", c.name, text)
}

// open opens an operand; "-" is standard input.
func (c *command) open(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(c.Stdin), nil
	}
	info, err := c.jail.stat(c.Dir, name, true)
	if err == nil && !info.Mode().IsRegular() && name != os.DevNull {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("is not a regular file")}
	}
	f, err := c.jail.openFile(c.Dir, name, os.O_RDONLY, 0)
	if err != nil {
		return nil, named(err, name)
	}
	return f, nil
}

// named puts the operand's own text into an error of a root, which knows another path.
func named(err error, name string) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: p.Op, Path: name, Err: p.Err}
	}
	return err
}

// inputs calls each with every operand, or with standard input when there is none. A file that cannot
// be read is complained about and makes the status 1.
func (c *command) inputs(each func(name string, r *bufio.Reader) error) error {
	names := c.args
	if len(names) == 0 {
		names = []string{"-"}
	}
	var status error
	for _, name := range names {
		f, err := c.open(name)
		if err != nil {
			c.complain(err)
			status = interp.ExitStatus(1)
			continue
		}
		err = each(name, bufio.NewReader(f))
		_ = f.Close()
		if err != nil {
			return err
		}
	}
	return status
}

func sleep(ctx context.Context, c *command) error {
	if len(c.args) != 1 {
		return fmt.Errorf("%w: sleep SECONDS", errUsage)
	}
	d, err := time.ParseDuration(strings.TrimSuffix(c.args[0], "s") + "s")
	if err != nil {
		return fmt.Errorf("invalid time %q", c.args[0])
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
