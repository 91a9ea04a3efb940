package markdown_test

import (
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"agent-sandboxing/views/markdown"
)

func TestRender(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, in, want string }{
		{"emphasis and code", "a *b* **c** `d <e>`", "<p>a <em>b</em> <strong>c</strong> <code>d &lt;e&gt;</code></p>\n"},
		{"headings begin below the page's own", "# a\n\n###### b", "<h3>a</h3>\n<h6>b</h6>\n"},
		{"a link shows where it leads", "[the docs](https://a.example/x?b=1&c=2)", `<p><a href="https://a.example/x?b=1&amp;c=2" rel="nofollow noreferrer">the docs</a> (a.example)</p>` + "\n"},
		{"a link that names its host does not repeat it", "https://a.example/x", `<p><a href="https://a.example/x" rel="nofollow noreferrer">https://a.example/x</a></p>` + "\n"},
		{"a name that claims another host", "[github.com](https://evil.example)", `<p><a href="https://evil.example" rel="nofollow noreferrer">github.com</a> (evil.example)</p>` + "\n"},
		{"a script address is text", "[x](javascript:alert(1))", "<p>x</p>\n"},
		{"a path is text: the source does not know this site", "[x](/logout)", "<p>x</p>\n"},
		{"a picture is a link", "![a cat](https://t.example/p.gif)", `<p><a href="https://t.example/p.gif" rel="nofollow noreferrer">Picture: a cat</a> (t.example)</p>` + "\n"},
		{"raw HTML is shown", "a <b onclick=x>c</b>", "<p>a &lt;b onclick=x&gt;c&lt;/b&gt;</p>\n"},
		{"a block of HTML is shown", "<script>\nalert(1)\n</script>", "<pre tabindex=\"0\"><code>&lt;script&gt;\nalert(1)\n&lt;/script&gt;</code></pre>\n"},
		{"task list", "- [x] a\n- [ ] b", "<ul>\n<li>☑ a</li>\n<li>☐ b</li>\n</ul>\n"},
		{"code is coloured", "```go\nreturn 1 // x\n```", `<pre tabindex="0"><code><span class="k">return</span> <span class="mi">1</span> <span class="cm">// x</span></code></pre>` + "\n"},
		{"an unknown language stays plain", "```nothing-such\n<a>\n```", "<pre tabindex=\"0\"><code>&lt;a&gt;</code></pre>\n"},
		{"a table has no styles", "|a|\n|:-:|\n|b|", "<table>\n<thead>\n<tr>\n<th>a</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>b</td>\n</tr>\n</tbody>\n</table>\n"},
		{"hidden characters are shown", "a\u202eb", `<p>a<span class="uc" title="U+202E RIGHT-TO-LEFT OVERRIDE">U+202E</span>b</p>` + "\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := markdown.Render(test.in); got != test.want {
				t.Errorf("Render(%q)\n got %q\nwant %q", test.in, got, test.want)
			}
		})
	}
}

// attacks are tried on the sanitiser, each as it is and inside other markdown.
func attacks() []string {
	return []string{
		`<img src=x onerror=alert(1)>`,
		`<svg/onload=alert(1)>`,
		`<iframe src="javascript:alert(1)">`,
		`<a href="jAvAsCrIpT:alert(1)">x</a>`,
		`[x](javascript&colon;alert(1))`,
		`[x](&#106;avascript:alert(1))`,
		`[x](data:text/html;base64,PHNjcmlwdD4=)`,
		`[x](vbscript:x)`,
		"[x](java\tscript:alert(1))",
		`[x](<javascript:alert(1)>)`,
		`<javascript:alert(1)>`,
		`![x](javascript:alert(1))`,
		`![x](https://t.example/x.gif" onerror="alert(1))`,
		`[x](https://a.example/" onmouseover="alert(1))`,
		`[x](https://a.example 'title" onclick="alert(1)')`,
		`<div id="status" hx-get="/x" hx-trigger="load">x</div>`,
		`<hx-partial hx-target="#status">x</hx-partial>`,
		`<template hx type="partial"><script>alert(1)</script></template>`,
		`<form action="/logout" method=post><button>x</button></form>`,
		`<style>*{display:none}</style>`,
		`<base href="https://evil.example/">`,
		`<meta http-equiv=refresh content="0;url=https://evil.example">`,
		`<p style="position:fixed" class="toast" id="composer">x</p>`,
		"```\"><script>alert(1)</script>\nx\n```",
		"```go\n</code></pre><script>alert(1)</script>\n```",
		"`</code><script>alert(1)</script>`",
		"| <script>alert(1)</script> |\n|-|\n| `<b>` |",
		"[a]: javascript:alert(1)\n\n[a]",
		"<!-- x --><script>alert(1)</script>",
		"<![CDATA[<script>alert(1)</script>]]>",
		"<?php alert(1) ?>",
		"x\x00<scr\x00ipt>alert(1)</script>",
		"\xff\xfe<script>alert(1)</script>",
		"<math><mtext><table><mglyph><style><!--</style><img src=x onerror=alert(1)>",
		"http://a.example/<script>alert(1)</script>",
		"a@b.example\"><script>alert(1)</script>",
	}
}

func TestRender_Attacks(t *testing.T) {
	t.Parallel()
	for _, a := range attacks() {
		for _, in := range []string{a, "> " + a, "- " + a, "**" + a + "**", "[" + a + "](https://a.example)", "# " + a, "| " + a + " |\n|-|\n"} {
			if problem := unsafe(markdown.Render(in)); problem != "" {
				t.Errorf("Render(%q): %s in %q", in, problem, markdown.Render(in))
			}
		}
	}
}

func TestRender_HugeTextIsPlain(t *testing.T) {
	t.Parallel()
	got := markdown.Render(strings.Repeat("*a* <b>", 60_000))
	if !strings.HasPrefix(got, "<pre tabindex=\"0\">*a* &lt;b&gt;") {
		t.Errorf("a text over the limit was parsed: %.60q", got)
	}
}

func FuzzRender(f *testing.F) {
	for _, a := range attacks() {
		f.Add(a)
	}
	f.Fuzz(func(t *testing.T, in string) {
		if problem := unsafe(markdown.Render(in)); problem != "" {
			t.Errorf("%s in %q", problem, markdown.Render(in))
		}
	})
}

// unsafe reads HTML as a browser would and names the first thing that a page must not hold.
func unsafe(out string) string {
	nodes, err := html.ParseFragment(strings.NewReader(out), &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div})
	if err != nil {
		return "unreadable HTML"
	}
	allowed := map[string]string{
		"p": "", "br": "", "hr": "", "em": "", "strong": "", "del": "", "code": "", "pre": "tabindex", "blockquote": "", "ul": "", "li": "",
		"h3": "", "h4": "", "h5": "", "h6": "", "table": "", "thead": "", "tbody": "", "tr": "", "th": "", "td": "",
		"ol": "start", "span": "class title", "a": "href rel",
	}
	for _, root := range nodes {
		for n := range root.Descendants() {
			if problem := unsafeNode(n, allowed); problem != "" {
				return problem
			}
		}
		if problem := unsafeNode(root, allowed); problem != "" {
			return problem
		}
	}
	return ""
}

func unsafeNode(n *html.Node, allowed map[string]string) string {
	if n.Type != html.ElementNode {
		return ""
	}
	attributes, ok := allowed[n.Data]
	if !ok {
		return "element " + n.Data
	}
	for _, a := range n.Attr {
		if !strings.Contains(" "+attributes+" ", " "+a.Key+" ") {
			return "attribute " + a.Key + " on " + n.Data
		}
		if scheme, _, _ := strings.Cut(strings.ToLower(a.Val), ":"); a.Key == "href" && scheme != "http" && scheme != "https" && scheme != "mailto" {
			return "href " + a.Val
		}
	}
	return ""
}
