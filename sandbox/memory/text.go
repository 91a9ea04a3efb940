package memory

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// maxSortLines bounds what sort and tail hold. Lines.
const maxSortLines = 1_000_000

// eachLine calls do with every line, its newline kept; false stops.
func eachLine(ctx context.Context, r *bufio.Reader, do func(line string) (bool, error)) error {
	for n := 0; ; n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line, err := r.ReadString('\n')
		if line != "" {
			more, doErr := do(line)
			if doErr != nil || !more {
				return doErr
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func cat(ctx context.Context, c *command) error {
	n := 0
	return c.inputs(func(_ string, r *bufio.Reader) error {
		if !c.has('n') {
			_, err := io.Copy(c.Stdout, r)
			return err
		}
		return eachLine(ctx, r, func(line string) (bool, error) {
			n++
			_, err := fmt.Fprintf(c.Stdout, "%6d\t%s", n, line)
			return true, err
		})
	})
}

// count reads the value of -n or -c; sign is what stood before it.
func (c *command) count(flag byte, standard int) (n int, sign byte, err error) {
	text, ok := c.flags[flag]
	if !ok {
		return standard, 0, nil
	}
	if text != "" && (text[0] == '-' || text[0] == '+') {
		sign = text[0]
	}
	n, err = strconv.Atoi(strings.TrimLeft(text, "+-"))
	if err != nil || n < 0 {
		return 0, 0, fmt.Errorf("invalid number %q", text)
	}
	return n, sign, nil
}

// title is the line that head and tail print above each of several files.
func (c *command) title(name string, first bool) {
	if len(c.args) < 2 {
		return
	}
	if !first {
		fmt.Fprintln(c.Stdout)
	}
	fmt.Fprintf(c.Stdout, "==> %s <==\n", name)
}

func head(ctx context.Context, c *command) error {
	lines, sign, err := c.count('n', 10)
	if err != nil {
		return err
	}
	size, _, err := c.count('c', 0)
	if err != nil {
		return err
	}
	if sign == '-' {
		return fmt.Errorf("%w: a negative number is not available in this environment", errUsage)
	}
	first := true
	return c.inputs(func(name string, r *bufio.Reader) error {
		c.title(name, first)
		first = false
		if c.has('c') {
			_, err := io.CopyN(c.Stdout, r, int64(size))
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		}
		if lines == 0 {
			return nil
		}
		left := lines
		return eachLine(ctx, r, func(line string) (bool, error) {
			left--
			_, err := io.WriteString(c.Stdout, line)
			return left > 0, err
		})
	})
}

func tail(ctx context.Context, c *command) error {
	lines, sign, err := c.count('n', 10)
	if err != nil {
		return err
	}
	size, _, err := c.count('c', 0)
	if err != nil {
		return err
	}
	first := true
	return c.inputs(func(name string, r *bufio.Reader) error {
		c.title(name, first)
		first = false
		if c.has('c') {
			text, err := io.ReadAll(r)
			if err != nil {
				return err
			}
			_, err = c.Stdout.Write(text[max(0, len(text)-size):])
			return err
		}
		var kept []string
		number := 0
		err := eachLine(ctx, r, func(line string) (bool, error) {
			number++
			if sign == '+' {
				if number >= lines {
					_, err := io.WriteString(c.Stdout, line)
					return true, err
				}
				return true, nil
			}
			if kept = append(kept, line); len(kept) > lines {
				kept = kept[1:]
			}
			return true, nil
		})
		if err == nil {
			_, err = io.WriteString(c.Stdout, strings.Join(kept, ""))
		}
		return err
	})
}

func wc(_ context.Context, c *command) error {
	var total [3]int
	print := func(n [3]int, name string) error {
		var columns []string
		for i, flag := range []byte("lwc") {
			if len(c.flags) == 0 || c.has(flag) {
				columns = append(columns, strconv.Itoa(n[i]))
			}
		}
		if name != "-" {
			columns = append(columns, name)
		}
		_, err := fmt.Fprintln(c.Stdout, strings.Join(columns, " "))
		return err
	}
	err := c.inputs(func(name string, r *bufio.Reader) error {
		text, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		n := [3]int{strings.Count(string(text), "\n"), len(strings.Fields(string(text))), len(text)}
		for i := range n {
			total[i] += n[i]
		}
		return print(n, name)
	})
	if len(c.args) > 1 {
		err = errors.Join(err, print(total, "total"))
	}
	return err
}

func sortLines(ctx context.Context, c *command) error {
	if c.has('k') || c.has('t') {
		return fmt.Errorf("%w: keys are not available in this environment", errUsage)
	}
	var lines []string
	err := c.inputs(func(_ string, r *bufio.Reader) error {
		return eachLine(ctx, r, func(line string) (bool, error) {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
			return len(lines) < maxSortLines, nil
		})
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(lines, func(a, b string) int {
		order := strings.Compare(a, b)
		if c.has('n') {
			if x, y := leadingNumber(a), leadingNumber(b); x != y {
				order = -1
				if x > y {
					order = 1
				}
			}
		}
		if c.has('r') {
			order = -order
		}
		return order
	})
	if c.has('u') {
		lines = slices.Compact(lines)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(c.Stdout, line); err != nil {
			return err
		}
	}
	return nil
}

func leadingNumber(line string) float64 {
	line = strings.TrimLeft(line, " \t")
	end := 0
	for end < len(line) && strings.IndexByte("-.0123456789", line[end]) >= 0 {
		end++
	}
	n, err := strconv.ParseFloat(line[:end], 64)
	if err != nil {
		return 0
	}
	return n
}
