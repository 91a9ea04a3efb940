// Package markdown turns untrusted markdown into the only HTML that pages print unescaped. Two walls
// stand: the renderer writes no raw HTML of its source, and a strict policy lets through a short list
// of elements and attributes whatever the renderer wrote.
package markdown

import (
	"html"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// maxBytes bounds what is parsed, because parsing some texts takes time that grows with the square of
// their length; beyond it the text is shown as it is.
const maxBytes = 64 << 10

// maxColour is how long the code of one block may take to be coloured.
const maxColour = time.Second

// Render returns safe HTML: no raw HTML of the source, no ids, no styles, no forms, no pictures
// (each becomes a link), links to http, https and mailto only.
func Render(source string) string {
	if len(source) > maxBytes {
		return plain(source)
	}
	w := walls()
	var b strings.Builder
	if err := w.markdown.Convert([]byte(source), &b); err != nil {
		return plain(source)
	}
	return w.policy.Sanitize(b.String())
}

type pair struct {
	markdown goldmark.Markdown
	policy   *bluemonday.Policy
}

// walls builds both once; neither changes afterwards and both are safe for concurrent use.
var walls = sync.OnceValue(func() pair {
	return pair{
		markdown: goldmark.New(
			goldmark.WithExtensions(
				extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignNone)),
				extension.Strikethrough,
				extension.Linkify,
				extension.TaskList,
			),
			goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(&nodes{}, 100))),
		),
		policy: policy(),
	}
})

func plain(source string) string {
	return `<pre tabindex="0">` + html.EscapeString(strings.ToValidUTF8(source, "\uFFFD")) + "</pre>"
}

// policy is the second wall.
func policy() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "em", "strong", "del", "code", "pre", "blockquote",
		"ul", "li", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowElements("ol")
	p.AllowAttrs("tabindex").Matching(regexp.MustCompile(`^0$`)).OnElements("pre")
	p.AllowAttrs("class").Matching(classes()).OnElements("span")
	p.AllowAttrs("title").OnElements("span")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("http", "https", "mailto")
	p.AllowRelativeURLs(false)
	p.RequireParseableURLs(true)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	return p
}
