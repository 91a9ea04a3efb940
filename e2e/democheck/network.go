package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/playwright-community/playwright-go"
)

// refusedHost starts a session whose network is a list, sees the registry refused, allows it by the
// button, and looks that the next attempt is let through. Whether the registry then answers is not
// ours to demand.
func (j *journey) refusedHost() error {
	p, err := j.person.NewPage()
	if err != nil {
		return err
	}
	defer p.Close()
	if err := j.chooseOn(p, false); err != nil {
		return err
	}
	if err := p.Locator("#egress-allowlist").Check(); err != nil {
		return err
	}
	if err := p.Locator("textarea[name=text]").Fill("Look at the network."); err != nil {
		return err
	}
	if err := p.GetByTestId("start").Click(); err != nil {
		return err
	}
	if err := p.WaitForURL("**/chat-sessions/*"); err != nil {
		return err
	}
	session := strings.TrimPrefix(p.URL(), j.stack.url)
	if err := expectState(p, "completed"); err != nil {
		return err
	}
	allow := p.Locator("#network").GetByRole("button", playwright.LocatorGetByRoleOptions{Name: regexp.MustCompile("^Allow the host ")})
	if err := expectCount(allow, 1, pageWait); err != nil {
		return fmt.Errorf("the refused host has no button: %w", err)
	}
	if err := expectText(p.Locator("#timeline"), "The network refused "); err != nil {
		return err
	}
	if err := j.browser.shot(p, "network-refused"); err != nil {
		return err
	}
	if err := allow.Click(); err != nil {
		return err
	}
	if err := expectText(p.Locator("#network"), "On the list now"); err != nil {
		return fmt.Errorf("the panel does not follow the button: %w", err)
	}
	if err := j.browser.shot(p, "network-allowed"); err != nil {
		return err
	}
	if err := p.Locator("#message").Fill("Look at the network once more."); err != nil {
		return err
	}
	if err := p.GetByTestId("send").Click(); err != nil {
		return err
	}
	if err := expectCount(p.GetByTestId("turn"), 2, pageWait); err != nil {
		return err
	}
	if err := expectState(p, "completed"); err != nil {
		return err
	}
	return j.letThrough(p, session)
}

// letThrough demands that the registry's newest attempt was not refused for want of an entry.
func (j *journey) letThrough(p playwright.Page, session string) error {
	var answer struct {
		Connections []struct{ Host, Rule string }
	}
	if err := j.ask(p, session+"/network", &answer); err != nil {
		return err
	}
	if len(answer.Connections) == 0 {
		return errors.New("the registry is not on record")
	}
	newest := answer.Connections[0]
	fmt.Printf("demo-check: after the permission the registry is %s\n", newest.Rule)
	if newest.Rule == "host_not_listed" {
		return errors.New("the host is still refused")
	}
	return nil
}
