package gallery_test

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// check lists what breaks the content policy or keeps somebody from using a page.
func check(doc *html.Node) []string {
	c := &checker{ids: map[string]int{}, labels: map[string]bool{}}
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == "label" {
			c.labels[attr(n, "for")] = true
		}
	}
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode {
			c.element(n)
		}
	}
	for id, n := range c.ids {
		if n > 1 {
			c.report("id %q stands %d times", id, n)
		}
	}
	for id := range c.labels {
		if c.ids[id] == 0 {
			c.report("label for %q, which is not there", id)
		}
	}
	if c.headings != 1 {
		c.report("%d h1", c.headings)
	}
	if c.mains != 1 {
		c.report("%d main", c.mains)
	}
	return c.problems
}

type checker struct {
	ids      map[string]int
	labels   map[string]bool
	headings int
	mains    int
	problems []string
}

func (c *checker) report(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

func (c *checker) element(n *html.Node) {
	c.attributes(n)
	switch n.Data {
	case "h1":
		c.headings++
	case "main":
		c.mains++
	case "style":
		c.report("a style element")
	case "script":
		if !strings.HasPrefix(attr(n, "src"), "/static/") || n.FirstChild != nil {
			c.report("a script that is not one of ours")
		}
	case "img":
		if !has(n, "alt") || !strings.HasPrefix(attr(n, "src"), "/") {
			c.report("a picture from outside, or without alt")
		}
	case "form":
		c.form(n)
	case "button", "summary":
		if strings.TrimSpace(textOf(n)) == "" && attr(n, "aria-label") == "" {
			c.report("a %s without a name", n.Data)
		}
	case "input", "textarea", "select":
		if attr(n, "type") != "hidden" && !c.labels[attr(n, "id")] && attr(n, "aria-label") == "" {
			c.report("%s %q without a label", n.Data, attr(n, "name"))
		}
	}
}

func (c *checker) attributes(n *html.Node) {
	for _, a := range n.Attr {
		name := strings.ToLower(a.Key)
		value := strings.ToLower(strings.TrimSpace(a.Val))
		switch {
		case name == "id":
			c.ids[a.Val]++
		case name == "style", strings.HasPrefix(name, "on"), strings.HasPrefix(name, "hx-on"):
			c.report("attribute %s on %s", name, n.Data)
		case strings.HasPrefix(name, "hx-") && (strings.HasPrefix(value, "js:") || strings.HasPrefix(value, "javascript:")):
			c.report("%s is evaluated", name)
		case name == "hx-trigger" && strings.Contains(value, "["):
			c.report("hx-trigger has a filter")
		case name == "href" || name == "src" || name == "action":
			if strings.HasPrefix(value, "javascript:") || strings.HasPrefix(value, "data:") || strings.HasPrefix(value, "about:") {
				c.report("%s=%s", name, value)
			}
		}
	}
}

func (c *checker) form(n *html.Node) {
	if !slices.Contains([]string{"get", "post"}, attr(n, "method")) {
		c.report("a form without a method")
	}
	if !strings.HasPrefix(attr(n, "action"), "/") || strings.HasPrefix(attr(n, "action"), "//") {
		c.report("a form that goes elsewhere: %q", attr(n, "action"))
	}
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.Data == "button" && attr(d, "type") != "button" {
			return
		}
	}
	c.report("a form without a button")
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}
