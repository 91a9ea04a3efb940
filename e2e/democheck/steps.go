package main

import (
	"encoding/json"
	"errors"
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
	if j.stack, err = start(j.ctx, j.dir); err != nil {
		return err
	}
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
	for {
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

// pictures opens the main pages light and dark, wide and narrow, for eyes.
func (j *journey) pictures() error {
	state, err := j.person.StorageState()
	if err != nil {
		return err
	}
	for _, v := range []struct {
		name   string
		width  int
		scheme *playwright.ColorScheme
	}{{"light-wide", 1280, playwright.ColorSchemeLight}, {"dark-wide", 1280, playwright.ColorSchemeDark}, {"light-narrow", 390, playwright.ColorSchemeLight}, {"dark-narrow", 390, playwright.ColorSchemeDark}} {
		c, err := j.browser.person(true, v.width, v.scheme)
		if err != nil {
			return err
		}
		var cookies []playwright.OptionalCookie
		for _, k := range state.Cookies {
			cookies = append(cookies, k.ToOptionalCookie())
		}
		p, err := c.NewPage()
		if err != nil {
			return err
		}
		if _, err := p.Goto(j.stack.url + "/login"); err != nil {
			return err
		}
		if err := j.browser.shot(p, "login-"+v.name); err != nil {
			return err
		}
		if err := c.AddCookies(cookies); err != nil {
			return err
		}
		for name, path := range map[string]string{
			"list": "/", "installations": "/installations", "new": "/new", "session": j.session, "network": j.session + "/network", "details": j.session + "?tab=details",
			"diff": j.session + "/diffs/latest", "publish": j.session + "/publish", "missing": "/chat-sessions/none",
		} {
			if _, err := p.Goto(j.stack.url + path); err != nil {
				return err
			}
			if err := j.browser.shot(p, name+"-"+v.name); err != nil {
				return err
			}
			wide, err := p.Evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
			if err != nil {
				return err
			}
			if wide == true {
				return fmt.Errorf("%s scrolls sideways at %d px", path, v.width)
			}
		}
		if err := c.Close(); err != nil {
			return err
		}
	}
	return nil
}

// withoutJavaScript walks from sign-in to publish by forms and reloads alone.
func (j *journey) withoutJavaScript() error {
	c, err := j.browser.person(false, 1280, playwright.ColorSchemeLight)
	if err != nil {
		return err
	}
	defer c.Close()
	p, err := c.NewPage()
	if err != nil {
		return err
	}
	if err := j.signInOn(p); err != nil {
		return err
	}
	if err := j.startOn(p, "Improve the documentation, without scripts.", false); err != nil {
		return err
	}
	session := strings.TrimPrefix(p.URL(), j.stack.url)
	if err := reloadUntil(p, p.Locator("[data-testid=turn][data-state=completed]")); err != nil {
		return err
	}
	if _, err := p.Goto(j.stack.url + session + "/diffs/latest"); err != nil {
		return err
	}
	if err := p.Locator("table tr").First().WaitFor(); err != nil {
		return err
	}
	if err := j.publishOn(p, session); err != nil {
		return err
	}
	if _, err := p.Goto(j.stack.url + session); err != nil {
		return err
	}
	return reloadUntil(p, p.GetByTestId("pr-link").First())
}

// reloadUntil reloads until the locator is there. Each page is looked at for half a second: a person
// who reloads faster than ten times a second is told to wait.
func reloadUntil(p playwright.Page, l playwright.Locator) error {
	deadline := time.Now().Add(2 * time.Minute)
	for time.Now().Before(deadline) {
		err := l.First().WaitFor(playwright.LocatorWaitForOptions{Timeout: playwright.Float(500), State: playwright.WaitForSelectorStateAttached})
		if err == nil {
			return nil
		}
		if !errors.Is(err, playwright.ErrTimeout) {
			return err
		}
		if _, err := p.Reload(); err != nil {
			return err
		}
	}
	return fmt.Errorf("the page did not get there by reloading")
}

type event struct {
	Sequence int64           `json:"sequence"`
	Type     string          `json:"type"`
	Payload  json.RawMessage `json:"payload"`
}

// events reads a session's whole log by the JSON route, with the person's cookies.
func (j *journey) events(p playwright.Page, session string) ([]event, error) {
	var all []event
	for {
		after := int64(0)
		if len(all) > 0 {
			after = all[len(all)-1].Sequence
		}
		resp, err := p.Request().Get(fmt.Sprintf("%s%s/events?after=%d&limit=500", j.stack.url, session, after), playwright.APIRequestContextGetOptions{
			Headers: map[string]string{"Accept": "application/json"},
		})
		if err != nil {
			return nil, err
		}
		body, err := resp.Body()
		if err != nil {
			return nil, err
		}
		var answer struct {
			Events []event `json:"events"`
		}
		if err := json.Unmarshal(body, &answer); err != nil {
			return nil, fmt.Errorf("status %d: %w", resp.Status(), err)
		}
		if len(answer.Events) == 0 {
			return all, nil
		}
		all = append(all, answer.Events...)
	}
}

// audit counts the log's events, its holes and repeats, and repeated ids on the page that followed it live.
func (j *journey) audit() (n, gaps, duplicates int, err error) {
	events, err := j.events(j.page, j.session)
	if err != nil {
		return 0, 0, 0, err
	}
	last := int64(0)
	for _, e := range events {
		switch {
		case e.Sequence <= last:
			duplicates++
		case e.Sequence > last+1:
			gaps++
		}
		last = max(last, e.Sequence)
	}
	repeated, err := j.page.Evaluate(`(() => { const ids = [...document.querySelectorAll('[id]')].map(e => e.id); return ids.length - new Set(ids).size })()`)
	if err != nil {
		return 0, 0, 0, err
	}
	if r, ok := repeated.(int); ok {
		duplicates += r
	} else {
		return 0, 0, 0, fmt.Errorf("the page's ids could not be counted: %v", repeated)
	}
	return len(events), gaps, duplicates, nil
}
