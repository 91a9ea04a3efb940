package memory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"mvdan.cc/sh/v3/interp"
)

func ls(_ context.Context, c *command) error {
	if c.has('R') {
		return fmt.Errorf("%w: option -R is not available in this environment", errUsage)
	}
	if len(c.args) == 0 {
		c.args = []string{"."}
	}
	var status error
	for i, name := range c.args {
		info, err := c.jail.stat(c.Dir, name, true)
		if err != nil {
			c.complain(named(err, name))
			status = interp.ExitStatus(2)
			continue
		}
		if !info.IsDir() {
			c.entry(name, info)
			continue
		}
		if len(c.args) > 1 {
			if i > 0 {
				fmt.Fprintln(c.Stdout)
			}
			fmt.Fprintf(c.Stdout, "%s:\n", name)
		}
		entries, err := c.jail.readDir(c.Dir, name)
		if err != nil {
			return named(err, name)
		}
		for _, e := range entries {
			if e.Name()[0] == '.' && !c.has('a') && !c.has('A') {
				continue
			}
			if info, err := e.Info(); err == nil {
				c.entry(e.Name(), info)
			}
		}
	}
	return status
}

func (c *command) entry(name string, info fs.FileInfo) {
	if c.has('l') {
		fmt.Fprintf(c.Stdout, "%s %8d %s\n", info.Mode(), info.Size(), name)
		return
	}
	fmt.Fprintln(c.Stdout, name)
}

func mkdir(_ context.Context, c *command) error {
	for _, name := range c.args {
		root, rel, err := c.jail.at(c.Dir, name)
		if err != nil {
			return err
		}
		if c.has('p') {
			err = root.MkdirAll(rel, 0o755)
		} else {
			err = root.Mkdir(rel, 0o755)
		}
		if err != nil {
			return named(err, name)
		}
	}
	return nil
}

func touch(_ context.Context, c *command) error {
	for _, name := range c.args {
		root, rel, err := c.jail.at(c.Dir, name)
		if err != nil {
			return err
		}
		now := time.Now()
		err = root.Chtimes(rel, now, now)
		if errors.Is(err, fs.ErrNotExist) && !c.has('c') {
			err = root.WriteFile(rel, nil, 0o644)
		}
		if err != nil {
			return named(err, name)
		}
	}
	return nil
}

func rm(_ context.Context, c *command) error {
	recursive, force := c.has('r') || c.has('R'), c.has('f')
	for _, name := range c.args {
		root, rel, err := c.jail.at(c.Dir, name)
		if err != nil {
			return err
		}
		if rel == "." {
			return &fs.PathError{Op: "remove", Path: name, Err: errors.New("refusing to remove the workspace")}
		}
		info, err := root.Lstat(rel)
		switch {
		case errors.Is(err, fs.ErrNotExist) && force:
			continue
		case err != nil:
			return named(err, name)
		case info.IsDir() && !recursive:
			return &fs.PathError{Op: "remove", Path: name, Err: errors.New("is a directory")}
		}
		if err := root.RemoveAll(rel); err != nil {
			return named(err, name)
		}
	}
	return nil
}

// targets splits the operands of cp and mv into sources and the name that each one gets.
func (c *command) targets() (map[string]string, error) {
	if len(c.args) < 2 {
		return nil, fmt.Errorf("%w: %s SOURCE… TARGET", errUsage, c.name)
	}
	sources, target := c.args[:len(c.args)-1], c.args[len(c.args)-1]
	info, err := c.jail.stat(c.Dir, target, true)
	intoDir := err == nil && info.IsDir()
	if len(sources) > 1 && !intoDir {
		return nil, &fs.PathError{Op: "open", Path: target, Err: errors.New("is not a directory")}
	}
	pairs := map[string]string{}
	for _, s := range sources {
		pairs[s] = target
		if intoDir {
			pairs[s] = path.Join(target, path.Base(s))
		}
	}
	return pairs, nil
}

func mv(ctx context.Context, c *command) error {
	pairs, err := c.targets()
	if err != nil {
		return err
	}
	for source, target := range pairs {
		from, old, err := c.jail.at(c.Dir, source)
		if err != nil {
			return err
		}
		to, new, err := c.jail.at(c.Dir, target)
		if err != nil {
			return err
		}
		if from == to {
			if err := from.Rename(old, new); err != nil {
				return err
			}
			continue
		}
		if err := c.copyTree(ctx, source, target); err != nil {
			return err
		}
		if err := from.RemoveAll(old); err != nil {
			return named(err, source)
		}
	}
	return nil
}

func cp(ctx context.Context, c *command) error {
	pairs, err := c.targets()
	if err != nil {
		return err
	}
	for source, target := range pairs {
		info, err := c.jail.stat(c.Dir, source, true)
		if err != nil {
			return named(err, source)
		}
		if info.IsDir() && !c.has('r') && !c.has('R') && !c.has('a') {
			return &fs.PathError{Op: "open", Path: source, Err: errors.New("is a directory (use -r)")}
		}
		if err := c.copyTree(ctx, source, target); err != nil {
			return err
		}
	}
	return nil
}

// copyTree copies a file or a folder. The entries are listed before anything is written, so that a
// folder can be copied into itself once.
func (c *command) copyTree(ctx context.Context, source, target string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	info, err := c.jail.stat(c.Dir, source, true)
	if err != nil {
		return named(err, source)
	}
	if !info.IsDir() {
		return c.copyFile(source, target, info.Mode().Perm())
	}
	entries, err := c.jail.readDir(c.Dir, source)
	if err != nil {
		return named(err, source)
	}
	root, rel, err := c.jail.at(c.Dir, target)
	if err != nil {
		return err
	}
	if err := root.MkdirAll(rel, 0o755); err != nil {
		return named(err, target)
	}
	for _, e := range entries {
		if err := c.copyTree(ctx, path.Join(source, e.Name()), path.Join(target, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (c *command) copyFile(source, target string, perm fs.FileMode) error {
	in, err := c.open(source)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := c.jail.openFile(c.Dir, target, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return named(err, target)
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
