package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/playwright-community/playwright-go"
)

// The stand-in's person who may push, and the repository to work on.
const (
	owner          = "demo-owner"
	repositoryName = "mdlinks"
)

func (j *journey) signIn() (err error) {
	if j.person, err = j.browser.person(true, 1280, playwright.ColorSchemeLight); err != nil {
		return err
	}
	if j.page, err = j.person.NewPage(); err != nil {
		return err
	}
	return j.signInOn(j.page)
}

// signInOn walks from the start page over GitHub's page back to the product.
func (j *journey) signInOn(p playwright.Page) error {
	if _, err := p.Goto(j.stack.url + "/"); err != nil {
		return err
	}
	if err := p.GetByTestId("sign-in").Click(); err != nil {
		return err
	}
	if err := p.GetByTestId("sign-in-" + owner).Click(); err != nil {
		return err
	}
	return expectCount(p.GetByTestId("sign-in"), 0, pageWait)
}

func (j *journey) startSession() error {
	return j.startOn(j.page, "Improve the documentation and tidy one source file.", true)
}

// startOn chooses the repository, takes its default branch, writes the message and lands in the session.
func (j *journey) startOn(p playwright.Page, text string, search bool) error {
	if err := j.chooseOn(p, search); err != nil {
		return err
	}
	if err := p.Locator("textarea[name=text]").Fill(text); err != nil {
		return err
	}
	if err := p.GetByTestId("start").Click(); err != nil {
		return err
	}
	return p.WaitForURL("**/chat-sessions/*")
}

// chooseOn opens the form of a new session with the repository and its default branch chosen.
func (j *journey) chooseOn(p playwright.Page, search bool) error {
	if _, err := p.Goto(j.stack.url + "/installations"); err != nil {
		return err
	}
	if installations := p.GetByTestId("installations").GetByRole("link"); strings.Contains(p.URL(), "/installations") {
		if err := installations.First().Click(); err != nil {
			return err
		}
	}
	repository := p.GetByTestId("repositories").GetByRole("link", playwright.LocatorGetByRoleOptions{Name: repositoryName})
	if search {
		if err := p.GetByLabel("Search repositories").Fill(repositoryName); err != nil {
			return err
		}
		if err := expectCount(p.GetByTestId("repositories").Locator("li"), 1, pageWait); err != nil {
			return err
		}
	}
	if err := repository.Click(); err != nil {
		return err
	}
	return expectText(p.GetByTestId("base"), "@")
}

func (j *journey) followTurn() error {
	j.session = strings.TrimPrefix(j.page.URL(), j.stack.url)
	if err := expectCount(j.page.GetByTestId("turn"), 1, pageWait); err != nil {
		return err
	}
	if err := j.page.GetByTestId("tool").First().WaitFor(playwright.LocatorWaitForOptions{Timeout: playwright.Float(turnWait), State: playwright.WaitForSelectorStateAttached}); err != nil {
		return fmt.Errorf("no tool call appeared: %w", err)
	}
	if err := j.browser.shot(j.page, "session-working"); err != nil {
		return err
	}
	if err := expectState(j.page, "completed"); err != nil {
		return err
	}
	for _, id := range []string{"answer", "records"} {
		if err := expectCount(j.page.GetByTestId("turn").First().GetByTestId(id), 1, pageWait); err != nil {
			return err
		}
	}
	return j.browser.shot(j.page, "session-done")
}

// send posts a message from the composer without a reload.
func (j *journey) send(text string) error {
	if err := j.page.Locator("#message").Fill(text); err != nil {
		return err
	}
	return j.page.GetByTestId("send").Click()
}

func (j *journey) queue() error {
	if err := j.send("Take it slow this time."); err != nil {
		return err
	}
	if err := expectState(j.page, "working"); err != nil {
		return err
	}
	for _, text := range []string{"Queued one", "Queued two"} {
		before, err := j.page.GetByTestId("turn").Count()
		if err != nil {
			return err
		}
		if err := j.send(text); err != nil {
			return err
		}
		if err := expectCount(j.page.GetByTestId("turn"), before+1, pageWait); err != nil {
			return err
		}
	}
	last := j.page.GetByTestId("turn").Last()
	if err := last.GetByText("Edit", playwright.LocatorGetByTextOptions{Exact: playwright.Bool(true)}).Click(); err != nil {
		return err
	}
	if err := last.Locator("textarea").Fill("Queued two, edited"); err != nil {
		return err
	}
	if err := last.GetByText("Save").Click(); err != nil {
		return err
	}
	if err := expectText(last.GetByTestId("ask"), "edited"); err != nil {
		return err
	}
	if err := j.browser.shot(j.page, "session-queued"); err != nil {
		return err
	}
	for _, text := range []string{"Queued two, edited", "Queued one"} {
		turn := j.page.GetByTestId("turn").Filter(playwright.LocatorFilterOptions{HasText: text})
		if err := turn.GetByText("Remove", playwright.LocatorGetByTextOptions{Exact: playwright.Bool(true)}).Click(); err != nil {
			return err
		}
		if err := playwright.NewPlaywrightAssertions(pageWait).Locator(turn).ToHaveAttribute("data-state", "cancelled"); err != nil {
			return err
		}
	}
	return nil
}

func (j *journey) cancel() error {
	working := j.page.Locator("[data-testid=turn][data-state=working]")
	if err := expectCount(working, 1, pageWait); err != nil {
		return err
	}
	asked := time.Now()
	if err := j.page.GetByTestId("cancel").Click(); err != nil {
		return err
	}
	if err := expectCount(working, 0, 10_000); err != nil {
		return err
	}
	fmt.Printf("demo-check: cancelled on the page after %.1f s\n", time.Since(asked).Seconds())
	return expectCount(j.page.Locator("[data-testid=turn][data-state=cancelled]"), 3, pageWait)
}

func (j *journey) reviewDiff() error {
	if _, err := j.page.Goto(j.stack.url + j.session + "/diffs/latest"); err != nil {
		return err
	}
	if err := j.page.Locator("table tr").First().WaitFor(); err != nil {
		return fmt.Errorf("the diff shows no lines: %w", err)
	}
	return j.browser.shot(j.page, "diff")
}

func (j *journey) publish() error {
	if err := j.publishOn(j.page, j.session); err != nil {
		return err
	}
	return j.pullRequest(j.page)
}

func (j *journey) publishOn(p playwright.Page, session string) error {
	if _, err := p.Goto(j.stack.url + session + "/publish"); err != nil {
		return err
	}
	if err := p.Locator("input[name=title]").Fill("Improve documentation"); err != nil {
		return err
	}
	if err := j.browser.shot(p, "publish"); err != nil {
		return err
	}
	return p.GetByTestId("publish-submit").Click()
}

// pullRequest opens the session and waits for the link; its number must never change.
func (j *journey) pullRequest(p playwright.Page) error {
	if _, err := p.Goto(j.stack.url + j.session); err != nil {
		return err
	}
	link := p.GetByTestId("pr-link").First()
	if err := link.WaitFor(playwright.LocatorWaitForOptions{Timeout: playwright.Float(60_000)}); err != nil {
		return err
	}
	href, err := link.GetAttribute("href")
	if err != nil {
		return err
	}
	number := href[strings.LastIndexByte(href, '/')+1:]
	if j.number != "" && j.number != number {
		return fmt.Errorf("the pull request was #%s and is #%s", j.number, number)
	}
	j.number = number
	return nil
}

// secondTab follows the same session beside the first.
func (j *journey) secondTab() error {
	other, err := j.person.NewPage()
	if err != nil {
		return err
	}
	if _, err := other.Goto(j.stack.url + j.session); err != nil {
		return err
	}
	before, err := other.GetByTestId("turn").Count()
	if err != nil {
		return err
	}
	if err := j.send("One more small improvement, please."); err != nil {
		return err
	}
	for _, p := range []playwright.Page{j.page, other} {
		if err := p.BringToFront(); err != nil {
			return err
		}
		if err := expectCount(p.GetByTestId("turn"), before+1, pageWait); err != nil {
			return err
		}
		if err := expectState(p, "completed"); err != nil {
			return err
		}
	}
	return other.Close()
}

// restart stops everything and starts it again under the open page, which must heal by itself.
func (j *journey) restart() error {
	if err := j.page.BringToFront(); err != nil {
		return err
	}
	turns, err := j.page.GetByTestId("turn").Count()
	if err != nil {
		return err
	}
	if err := j.stack.stop(); err != nil {
		return err
	}
	if j.stack.answers(j.ctx) {
		return fmt.Errorf("something still answers after the demo has stopped")
	}
	began := time.Now()
	again, err := start(j.ctx, j.dir)
	if err != nil {
		return err
	}
	j.stack = again
	fmt.Printf("demo-check: second start took %.1f s\n", time.Since(began).Seconds())
	if err := j.send("And a last one after the restart."); err != nil {
		return err
	}
	if err := expectCount(j.page.GetByTestId("turn"), turns+1, turnWait); err != nil {
		return err
	}
	return expectState(j.page, "completed")
}

func (j *journey) publishAgain() error {
	if err := j.publishOn(j.page, j.session); err != nil {
		return err
	}
	if err := j.pullRequest(j.page); err != nil {
		return err
	}
	deadline := time.Now().Add(time.Minute)
	look := time.NewTicker(500 * time.Millisecond) // who asks faster than ten times a second is told to wait
	defer look.Stop()
	for {
		<-look.C
		events, err := j.events(j.page, j.session)
		if err != nil {
			return err
		}
		for _, e := range events {
			if e.Type == "pull_request_updated" {
				return nil
			}
			if e.Type == "publication_failed" {
				return fmt.Errorf("the publish failed: %s", e.Payload)
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no pull_request_updated in the log")
		}
	}
}
