// Command faults makes everything around the built product go wrong, one thing after the other, and
// checks how each ends: in a terminal state with a code and a sentence, without a container or a
// process left over, with the work kept, and with a session that takes the next message.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"
)

const patience = time.Hour

// row is one fault. do makes it and returns the code with which it was refused or ended.
type row struct {
	name string
	do   func(ctx context.Context, b *bench) (code string, err error)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

func command(ctx context.Context) error {
	repeat := flag.Int("repeat", 1, "how often to go through them, each time on a new Docker daemon")
	sandboxes := flag.Bool("sandbox", false, "only the thirty faults of sandboxes, with the tests of packages that belong to them")
	storm := flag.Bool("chaos", false, "kill at random, instead of one fault after the other")
	kills := flag.Int("kills", 200, "how many")
	long := flag.Duration("duration", 5*time.Minute, "over how long they are spread")
	flag.Parse()
	if *storm {
		return runChaos(ctx, *kills, *long)
	}
	for round := range *repeat {
		if *repeat > 1 {
			fmt.Printf("round %d of %d\n", round+1, *repeat)
		}
		chosen := rows()
		if *sandboxes {
			chosen = sandboxRows()
		}
		if err := run(ctx, chosen, flag.Arg(0), *sandboxes); err != nil {
			return err
		}
	}
	return nil
}

// run goes through the rows whose name matches only, a regular expression.
func run(ctx context.Context, all []row, only string, sandboxes bool) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	chosen, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	b, err := open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = b.end(ctx, err) }()
	total, good := 0, map[string]bool{}
	for _, r := range all {
		if !chosen.MatchString(r.name) {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		total++
		if b.try(ctx, r) {
			good[r.name] = true
		}
	}
	if sandboxes && only == "" {
		if err := b.test(ctx, good); err != nil {
			return err
		}
		return tell(good)
	}
	fmt.Printf("faults: %d of %d\n", len(good), total)
	if len(good) != total {
		return errors.New("not every fault ended well")
	}
	return nil
}

// try makes one fault and says whether it ended well.
func (b *bench) try(ctx context.Context, r row) bool {
	began := time.Now()
	code, err := r.do(ctx, b)
	if err == nil {
		err = b.tidy(ctx)
	}
	b.heal(ctx)
	verdict := "ok  "
	if err != nil {
		verdict = "FAIL"
	}
	fmt.Printf("%s  %-58s %-26s %5.1f s\n", verdict, r.name, code, time.Since(began).Seconds())
	if err != nil {
		fmt.Println("      " + strings.ReplaceAll(err.Error(), "\n", "\n      "))
	}
	return err == nil
}

func rows() []row {
	var all []row
	for _, group := range [][]row{startRows(), requestRows(), githubRows(), publishRows(), modelRows(), dockerRows(), hostRows(), containerRows(), poolRows(), pointRows(), planeRows(), clockRows(), crashRows(), hostileRows(), raceRows(), secretRows(), singleRows()} {
		all = append(all, group...)
	}
	return all
}
