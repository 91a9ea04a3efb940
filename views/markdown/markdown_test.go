package markdown

import "testing"

func TestTry(t *testing.T) {
	r := Render
	for _, s := range []string{"# Hi\n\nText *em* `code <b>` [x](https://a.example/p?q=1&r=2) [y](javascript:alert(1)) ![i](http://t.example/p.gif)\n\n- [x] done\n- [ ] no\n\n```go\nfunc main() { // hi\n\treturn 1 + \"a\"\n}\n```\n\n|a|b|\n|:-|-:|\n|1|2|\n\n<script>x</script> www.example.com a@b.de \u202e &amp; &lt;b&gt; \\*x\\*"} {
		t.Log(r(s))
	}
}
