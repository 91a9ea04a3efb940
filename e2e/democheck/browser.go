package main

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"

	"github.com/playwright-community/playwright-go"
)

// waits, in milliseconds.
const (
	pageWait = 15_000.0
	turnWait = 120_000.0
)

// browser is one Chromium for the whole check.
type browser struct {
	pw       *playwright.Playwright
	chromium playwright.Browser
	shots    string

	mu    sync.Mutex
	found []string // what no page may do
}

func openBrowser(shots string) (*browser, error) {
	pw, err := playwright.Run()
	if err != nil {
		return nil, fmt.Errorf("start the browser driver: %w", err)
	}
	chromium, err := pw.Chromium.Launch(playwright.BrowserTypeLaunchOptions{
		ExecutablePath: playwright.String("/usr/bin/chromium"),
		Args:           []string{"--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"},
	})
	if err != nil {
		return nil, fmt.Errorf("start Chromium: %w", errors.Join(err, pw.Stop()))
	}
	return &browser{pw: pw, chromium: chromium, shots: shots}, nil
}

func (b *browser) close() error {
	if err := b.chromium.Close(); err != nil {
		return err
	}
	return b.pw.Stop()
}

// report collects a fault of a page: console errors, script errors, requests to elsewhere.
func (b *browser) report(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.found = append(b.found, fmt.Sprintf(format, args...))
}

// cutOff recognises what Chromium and htmx say when a reload or a restart cuts a stream.
func cutOff(text string) bool {
	for _, known := range []string{"net::ERR_", "Failed to load resource", "htmx:sse:error: Failed to fetch"} {
		if strings.Contains(text, known) {
			return true
		}
	}
	return false
}

// faults returns what was reported and forgets it.
func (b *browser) faults() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.found
	b.found = nil
	return f
}

// person is one browser profile, with or without JavaScript.
func (b *browser) person(javascript bool, width int, scheme *playwright.ColorScheme) (playwright.BrowserContext, error) {
	c, err := b.chromium.NewContext(playwright.BrowserNewContextOptions{
		JavaScriptEnabled: playwright.Bool(javascript), ColorScheme: scheme,
		Viewport: &playwright.Size{Width: width, Height: 900},
	})
	if err != nil {
		return nil, err
	}
	c.SetDefaultTimeout(pageWait)
	c.OnConsole(func(m playwright.ConsoleMessage) {
		if m.Type() == "error" && !cutOff(m.Text()) {
			b.report("console: %s", m.Text())
		}
	})
	c.OnWebError(func(e playwright.WebError) { b.report("script: %v", e.Error()) })
	c.OnRequest(func(r playwright.Request) {
		if u, err := url.Parse(r.URL()); err == nil && u.Hostname() != "127.0.0.1" && u.Scheme != "data" {
			b.report("request to %s", u.Host)
		}
	})
	c.OnResponse(func(r playwright.Response) {
		if r.Status() >= 500 && r.Status() != 503 {
			b.report("%d for %s", r.Status(), r.URL())
		}
	})
	return c, nil
}

// shot keeps a picture of what is in view. Hiding the caret would inject a style, which the page's
// policy rightly reports.
func (b *browser) shot(p playwright.Page, name string) error {
	_, err := p.Screenshot(playwright.PageScreenshotOptions{
		Path: playwright.String(filepath.Join(b.shots, name+".png")), Caret: playwright.ScreenshotCaretInitial,
	})
	return err
}

// expectCount waits until the locator has n matches.
func expectCount(l playwright.Locator, n int, wait float64) error {
	return playwright.NewPlaywrightAssertions(wait).Locator(l).ToHaveCount(n)
}

// expectText waits until the locator's text contains s.
func expectText(l playwright.Locator, s string) error {
	return playwright.NewPlaywrightAssertions(pageWait).Locator(l).ToContainText(s)
}

// expectState waits for the last turn's state.
func expectState(p playwright.Page, state string) error {
	return playwright.NewPlaywrightAssertions(turnWait).Locator(p.GetByTestId("turn").Last()).ToHaveAttribute("data-state", state)
}
