// Command bench prints the product's figures, each beside a baseline that ran in turns with it in the
// same minutes, and beside its budget. A budget is missed by a ratio, seldom by a number of
// milliseconds, so that a busy machine says the same as an idle one; nothing fails by being slow.
//
//	bench [-only REGEXP] [-runtime runc,runsc]   -only selects parts by name; -list names them
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
)

// part is one group of figures.
type part struct {
	name string
	run  func(ctx context.Context, r *report) error
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "bare" {
		_ = http.ListenAndServe(bareAddr, http.NotFoundHandler()) //nolint:gosec // the baseline has no timeouts either
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	only := flag.String("only", "", "a regular expression over the names of the parts")
	runtimes := flag.String("runtime", "", "runtimes to measure, comma separated; default: what the daemon knows of runc and runsc")
	list := flag.Bool("list", false, "name the parts and end")
	flag.Parse()
	chosen, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	names := strings.Split(*runtimes, ",")
	if *runtimes == "" {
		if names, err = knownRuntimes(ctx); err != nil {
			return err
		}
	}
	var parts []part
	for _, name := range names {
		h := &host{name: name}
		defer func() { err = errors.Join(err, h.clean(ctx)) }()
		parts = append(parts, h.parts()...)
	}
	parts = append(parts, goParts()...)
	parts = append(parts, part{"serve", serve})
	r := &report{out: os.Stdout}
	for _, p := range parts {
		switch {
		case !chosen.MatchString(p.name):
		case *list:
			fmt.Println(p.name)
		default:
			if err := p.run(ctx, r); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	if !*list {
		r.end()
	}
	return nil
}
