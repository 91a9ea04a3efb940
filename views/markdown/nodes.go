package markdown

import (
	"bytes"
	"html"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"

	"agent-sandboxing/views/highlight"
	"agent-sandboxing/views/text"
)

// classes are those of highlight.Token and of a hidden character.
func classes() *regexp.Regexp { return regexp.MustCompile(`^(k|s|cm|mi|nf|uc)$`) }

// nodes renders what differs from goldmark's own: text with hidden characters made visible, code with
// colours, links that show their host, pictures as links, boxes of task lists as characters.
type nodes struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (n *nodes) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindText, n.text)
	reg.Register(ast.KindCodeSpan, n.codeSpan)
	reg.Register(ast.KindFencedCodeBlock, n.codeBlock)
	reg.Register(ast.KindCodeBlock, n.codeBlock)
	reg.Register(ast.KindLink, n.link)
	reg.Register(ast.KindAutoLink, n.autoLink)
	reg.Register(ast.KindImage, n.image)
	reg.Register(extast.KindTaskCheckBox, n.checkBox)
	reg.Register(ast.KindHeading, n.heading)
	reg.Register(ast.KindHTMLBlock, n.htmlBlock)
	reg.Register(ast.KindRawHTML, n.rawHTML)
}

func (n *nodes) text(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	t := node.(*ast.Text)
	value := t.Segment.Value(source)
	if !t.IsRaw() {
		value = util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(value)))
	}
	write(w, string(value))
	switch {
	case t.HardLineBreak():
		_, _ = w.WriteString("<br>\n")
	case t.SoftLineBreak():
		_ = w.WriteByte('\n')
	}
	return ast.WalkContinue, nil
}

func (n *nodes) codeSpan(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString("<code>")
	for c := node.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			write(w, string(bytes.ReplaceAll(t.Segment.Value(source), []byte{'\n'}, []byte{' '})))
		}
	}
	_, _ = w.WriteString("</code>")
	return ast.WalkSkipChildren, nil
}

func (n *nodes) codeBlock(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	lexer := highlight.Lexer{}
	if fenced, ok := node.(*ast.FencedCodeBlock); ok {
		lexer = highlight.ForLanguage(string(fenced.Language(source)), time.Now().Add(maxColour))
	}
	var code strings.Builder
	for i := range node.Lines().Len() {
		line := node.Lines().At(i)
		code.Write(line.Value(source))
	}
	_, _ = w.WriteString(`<pre tabindex="0"><code>`)
	for i, line := range lexer.Lines(strings.TrimSuffix(code.String(), "\n")) {
		if i > 0 {
			_ = w.WriteByte('\n')
		}
		for _, token := range line {
			if token.Class == "" {
				write(w, token.Text)
				continue
			}
			_, _ = w.WriteString(`<span class="` + token.Class + `">`)
			write(w, token.Text)
			_, _ = w.WriteString("</span>")
		}
	}
	_, _ = w.WriteString("</code></pre>\n")
	return ast.WalkSkipChildren, nil
}

func (n *nodes) link(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	l := node.(*ast.Link)
	target := string(l.Destination)
	host := outside(target)
	switch {
	case entering && host != "":
		openLink(w, target)
	case !entering && host != "":
		_, _ = w.WriteString("</a>")
		if label := string(plainText(node, source)); !strings.Contains(strings.ToLower(label), strings.ToLower(host)) {
			write(w, " ("+host+")")
		}
	}
	return ast.WalkContinue, nil
}

func (n *nodes) autoLink(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	l := node.(*ast.AutoLink)
	target := string(l.URL(source))
	if l.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(target, "mailto:") {
		target = "mailto:" + target
	}
	if outside(target) == "" {
		write(w, string(l.Label(source)))
		return ast.WalkContinue, nil
	}
	openLink(w, target)
	write(w, string(l.Label(source)))
	_, _ = w.WriteString("</a>")
	return ast.WalkContinue, nil
}

// image is a link: a picture from elsewhere would tell its host who reads this, and when.
func (n *nodes) image(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	i := node.(*ast.Image)
	label := string(plainText(node, source))
	if label == "" {
		label = "picture"
	}
	host := outside(string(i.Destination))
	if host == "" {
		write(w, label)
		return ast.WalkSkipChildren, nil
	}
	openLink(w, string(i.Destination))
	write(w, "Picture: "+label)
	_, _ = w.WriteString("</a>")
	write(w, " ("+host+")")
	return ast.WalkSkipChildren, nil
}

// heading starts at h3: the page has the levels above.
func (n *nodes) heading(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	tag := "h" + strconv.Itoa(min(node.(*ast.Heading).Level+2, 6)) + ">"
	if entering {
		_, _ = w.WriteString("<" + tag)
	} else {
		_, _ = w.WriteString("</" + tag + "\n")
	}
	return ast.WalkContinue, nil
}

// htmlBlock shows HTML as the text that it is.
func (n *nodes) htmlBlock(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString(`<pre tabindex="0"><code>`)
	for i := range node.Lines().Len() {
		line := node.Lines().At(i)
		write(w, string(line.Value(source)))
	}
	if block := node.(*ast.HTMLBlock); block.HasClosure() {
		write(w, string(block.ClosureLine.Value(source)))
	}
	_, _ = w.WriteString("</code></pre>\n")
	return ast.WalkSkipChildren, nil
}

func (n *nodes) rawHTML(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	segments := node.(*ast.RawHTML).Segments
	for i := range segments.Len() {
		segment := segments.At(i)
		write(w, string(segment.Value(source)))
	}
	return ast.WalkSkipChildren, nil
}

func (n *nodes) checkBox(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		box := "☐ "
		if node.(*extast.TaskCheckBox).IsChecked {
			box = "☑ "
		}
		_, _ = w.WriteString(box)
	}
	return ast.WalkContinue, nil
}

// outside is the host that a link leads to, or the address of a mailto. Empty for every other
// target: a path would lead into this site, and the source does not know it.
func outside(target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return ""
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		return u.Hostname()
	case "mailto":
		return u.Opaque
	default:
		return ""
	}
}

func openLink(w util.BufWriter, target string) {
	_, _ = w.WriteString(`<a href="` + html.EscapeString(target) + `">`)
}

// write writes untrusted text.
func write(w util.BufWriter, s string) {
	for _, p := range text.Visible(s) {
		if p.Code == "" {
			_, _ = w.WriteString(html.EscapeString(p.Text))
			continue
		}
		_, _ = w.WriteString(`<span class="uc" title="` + p.Code + " " + p.Name + `">` + p.Code + "</span>")
	}
}

// plainText is the text under a node.
func plainText(node ast.Node, source []byte) []byte {
	var b bytes.Buffer
	for c := node.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Segment.Value(source))
			continue
		}
		b.Write(plainText(c, source))
	}
	return b.Bytes()
}
