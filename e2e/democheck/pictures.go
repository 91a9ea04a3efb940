package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/playwright-community/playwright-go"
)

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
