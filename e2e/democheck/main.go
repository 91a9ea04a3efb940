// Command democheck drives the demo as a person would: sign in, choose a repository, follow a turn,
// queue, cancel, review, publish, restart the server, publish again. It then checks the session's
// log for gaps and duplicates, and walks the journey once more without JavaScript.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/playwright-community/playwright-go"
)

func main() {
	data := flag.String("data", "", "folder for the demo's data")
	shots := flag.String("screenshots", "e2e/screenshots", "folder for the pictures")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := check(ctx, *data, *shots); err != nil {
		fmt.Fprintln(os.Stderr, "demo-check failed:", err)
		os.Exit(1)
	}
}

// journey is the state that the steps share.
type journey struct {
	ctx     context.Context //nolint:containedctx // the steps of one run share it
	dir     string
	stack   *stack
	browser *browser
	person  playwright.BrowserContext
	page    playwright.Page
	session string // its path
	number  string // of the pull request
}

func check(ctx context.Context, dir, shots string) (err error) {
	if err := os.MkdirAll(shots, 0o755); err != nil {
		return err
	}
	b, err := openBrowser(shots)
	if err != nil {
		return err
	}
	defer b.close()
	j := &journey{ctx: ctx, dir: dir, browser: b}
	if j.stack, err = start(ctx, dir); err != nil {
		return err
	}
	defer func() {
		if stopErr := j.stack.stop(); err == nil && stopErr != nil {
			err = fmt.Errorf("stop the demo: %w", stopErr)
		}
	}()
	defer func() {
		if err != nil && j.page != nil {
			_ = b.shot(j.page, "failed")
		}
	}()
	for _, step := range []struct {
		name string
		run  func() error
	}{
		{"sign in", j.signIn},
		{"start a session", j.startSession},
		{"follow the turn", j.followTurn},
		{"queue, edit and remove", j.queue},
		{"cancel", j.cancel},
		{"review the diff", j.reviewDiff},
		{"publish", j.publish},
		{"second tab", j.secondTab},
		{"restart the server", j.restart},
		{"publish again", j.publishAgain},
		{"refused host", j.refusedHost},
		{"look at every page", j.pictures},
		{"journey without JavaScript", j.withoutJavaScript},
	} {
		if err := step.run(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		if faults := b.faults(); len(faults) > 0 {
			return fmt.Errorf("%s: the pages reported: %s", step.name, strings.Join(faults, "; "))
		}
		fmt.Println("demo-check:", step.name, "ok")
	}
	n, gaps, duplicates, err := j.audit()
	if err != nil {
		return err
	}
	fmt.Printf("demo-check: pull request updated, %d events, %d gaps, %d duplicates\n", n, gaps, duplicates)
	if gaps+duplicates > 0 {
		return fmt.Errorf("the log or the page has gaps or duplicates")
	}
	return nil
}
