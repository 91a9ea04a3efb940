package gallery_test

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"agent-sandboxing/views/gallery"
)

func TestPages_MarkupRules(t *testing.T) {
	t.Parallel()
	for _, theme := range []string{"", "dark"} {
		for _, s := range gallery.Samples(time.Date(2026, 5, 2, 14, 2, 11, 0, time.UTC), theme) {
			t.Run(s.Name+theme, func(t *testing.T) {
				t.Parallel()
				var b strings.Builder
				if err := s.Page.Render(t.Context(), &b); err != nil {
					t.Fatal(err)
				}
				doc, err := html.Parse(strings.NewReader(b.String()))
				if err != nil {
					t.Fatal(err)
				}
				for _, problem := range check(doc) {
					t.Error(problem)
				}
			})
		}
	}
}

func TestCheck_SeesEachFault(t *testing.T) {
	t.Parallel()
	frame := func(body string) string {
		return `<!DOCTYPE html><html lang="en"><head><title>x</title></head><body><main><h1>x</h1>` + body + `</main></body></html>`
	}
	if problems := checkText(t, frame(`<p id="a">fine</p>`)); len(problems) != 0 {
		t.Fatalf("a clean page has problems: %v", problems)
	}
	for name, body := range map[string]string{
		"style attribute":      `<p style="color:red">x</p>`,
		"style element":        `<style>p{}</style>`,
		"inline script":        `<script>x()</script>`,
		"event attribute":      `<p onclick="x()">x</p>`,
		"htmx event attribute": `<p hx-on:click="x()">x</p>`,
		"evaluated value":      `<p hx-vals="js:{a:1}">x</p>`,
		"trigger filter":       `<p hx-trigger="click[ctrlKey]">x</p>`,
		"repeated id":          `<p id="a"></p><p id="a"></p>`,
		"form without method":  `<form action="/x"><button>x</button></form>`,
		"form without button":  `<form action="/x" method="post"></form>`,
		"form elsewhere":       `<form action="https://elsewhere.example/" method="post"><button>x</button></form>`,
		"input without label":  `<input name="a"/>`,
		"picture from outside": `<img src="https://elsewhere.example/a.png" alt=""/>`,
		"script address":       `<a href="javascript:x()">x</a>`,
		"button without name":  `<button></button>`,
		"label of nothing":     `<label for="nothing">x</label>`,
		"second h1":            `<h1>y</h1>`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if len(checkText(t, frame(body))) == 0 {
				t.Errorf("check found nothing wrong with %s", body)
			}
		})
	}
}

func checkText(t *testing.T, page string) []string {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	return check(doc)
}
