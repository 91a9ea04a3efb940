package tools

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// Whatever is edited, and however it was found: the file differs in the matched lines only, and in
// these only between the first and last change.
func FuzzApply(f *testing.F) {
	f.Add("a\r\nb\nc", "b", "x\ny", false)
	f.Add(utf8BOM+"if x {  \n\ty\n}\n", "if x {\n\ty", "if z {\n\ty", false)
	f.Add("  a\n  b\n", "a\nb\n", "a\nc\n", false)
	f.Add("aaaa", "a", "", true)
	f.Add("“a” – b\t\nc", "\"a\" - b\nc", "d", false)
	f.Add("a\n\n\nb", "\n", "", true)
	f.Fuzz(func(t *testing.T, file, old, new string, all bool) {
		if !utf8.ValidString(file) || !utf8.ValidString(old) || !utf8.ValidString(new) || old == "" {
			return
		}
		edits := []replacement{{old: lf(old), new: lf(new), all: all}}
		got, r := apply("f", file, edits, false)
		if r != nil {
			if r.Code == "" || !strings.HasPrefix(r.Text, "Error (") {
				t.Errorf("refused without a reason: %+v", r)
			}
			return
		}
		if !utf8.ValidString(got.text) {
			t.Errorf("%q is not UTF-8", got.text)
		}
		if strings.HasPrefix(file, utf8BOM) && !strings.HasPrefix(got.text, utf8BOM) {
			t.Errorf("the BOM of %q is gone: %q", file, got.text)
		}
		doc := newDocument(file)
		if all {
			if want := strings.ReplaceAll(doc.text, edits[0].old, edits[0].new); newDocument(got.text).text != lf(strings.TrimPrefix(want, utf8BOM)) && !strings.Contains(want, "\r\n") {
				t.Errorf("replaceAll gave %q, want %q", got.text, want)
			}
			return
		}
		spans, r := locate("f", doc.text, edits[0], false)
		if r != nil || len(spans) != 1 {
			t.Fatalf("%v, %d spans", r, len(spans))
		}
		before, after := file[:doc.offset(spans[0].start)], file[doc.offset(spans[0].end):]
		if !strings.HasPrefix(got.text, before) || !strings.HasSuffix(got.text, after) || len(got.text) < len(before)+len(after) {
			t.Errorf("bytes outside the match changed: %q to %q, match %q", file, got.text, doc.text[spans[0].start:spans[0].end])
		}
	})
}

var editCount = flag.Int("edits", 5_000, "how many random edits are made")

// Random files are edited in random ways, and what each edit may touch is worked out beside it in the
// plainest way there is: bytes outside the match never change. An edit that could mean two places,
// or none, is refused.
func TestEdit_ChangesNothingOutsideTheMatch(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	made, outside := 0, 0
	kinds := map[string]int{}
	for tries := 0; made < *editCount; tries++ {
		if tries > 20**editCount {
			t.Fatalf("only %d of %d edits were applied", made, tries)
		}
		trial := newTrial(random)
		raw, err := json.Marshal(map[string]any{"path": "f", "edits": trial.edits})
		if err != nil {
			t.Fatal(err)
		}
		a := parse(raw)
		edits := a.edits()
		if r := a.failed(); r != nil {
			t.Fatalf("%s: %s", raw, r.Text)
		}
		got, r := apply("f", trial.file, edits, false)
		if problem := trial.judge(edits, got.text, r); problem != "" {
			t.Fatalf("%s\n%s edits of %q\n%s\ngave %q", problem, trial.kind, trial.file, raw, got.text)
		}
		if r != nil {
			kinds[r.Code]++
			continue
		}
		outside += trial.changedOutside(edits, got.text)
		kinds[trial.kind]++
		made += len(edits)
	}
	for _, kind := range []string{"exact", "several", "all", "folded", "indented", "not_unique", "overlap", "not_utf8", "no_change"} {
		if kinds[kind] < *editCount/1000 {
			t.Errorf("only %d of kind %s: %v", kinds[kind], kind, kinds)
		}
	}
	if outside > 0 {
		t.Errorf("%d bytes changed outside the match", outside)
	}
	fmt.Printf("edit: %d edits, %d bytes changed outside the match\n", made, outside)
}

// trial is a file with edits of one kind.
type trial struct {
	kind  string
	file  string
	text  string // of file, without BOM and with LF
	at    []int  // for each byte of text and its end, where it stands in file
	edits []map[string]any
	// where in text an edit was made from that is not there literally, and what must stand there then
	start, end int
	want       string
}

func newTrial(random *rand.Rand) trial {
	t := trial{file: randomFile(random)}
	t.text, t.at = plainText(t.file)
	switch n := random.IntN(20); {
	case n < 7:
		t.kind = "exact"
		t.add(random, false)
	case n < 11:
		t.kind = "several"
		for range 2 + random.IntN(3) {
			t.add(random, false)
		}
	case n < 13:
		t.kind = "all"
		t.add(random, true)
	case n < 16:
		t.folded(random)
	case n < 19:
		t.indented(random)
	default:
		t.kind = "same"
		t.add(random, false)
		t.edits[0]["newText"] = strings.ReplaceAll(t.edits[0]["oldText"].(string), "\n", "\r\n")
	}
	return t
}

func one[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }

func randomFile(random *rand.Rand) string {
	var b strings.Builder
	if random.IntN(4) == 0 {
		b.WriteString(utf8BOM)
	}
	endings := one(random, []string{"\n"}, []string{"\r\n"}, []string{"\n", "\r\n"})
	for n := 1 + random.IntN(15); n > 0; n-- {
		b.WriteString(one(random, "", "", "\t", "\t\t", "  ", "    "))
		b.WriteString(one(random, "", "}", "return", "if x {", "a\rb", "“q” – r", "say \"hi\" - now", "é日本🙂", "call(", "\x00"))
		b.WriteString(one(random, "", fmt.Sprint(random.IntN(40))))
		b.WriteString(one(random, "", "", "", " ", "\t", "  \t"))
		if random.IntN(150) == 0 {
			b.WriteString("caf\xe9")
		}
		if n > 1 || random.IntN(3) > 0 {
			b.WriteString(one(random, endings...))
		}
	}
	return b.String()
}

// plainText walks file byte by byte, so that it shares no code with what it checks.
func plainText(file string) (text string, at []int) {
	i := 0
	if strings.HasPrefix(file, utf8BOM) {
		i = 3
	}
	var b strings.Builder
	for ; i < len(file); i++ {
		at = append(at, i)
		if file[i] == '\r' && i+1 < len(file) && file[i+1] == '\n' {
			i++
		}
		b.WriteByte(file[i])
	}
	return b.String(), append(at, len(file))
}

// add makes an edit of a random piece of the text, of whole lines as often as not.
func (t *trial) add(random *rand.Rand, all bool) {
	if t.text == "" {
		t.edits = append(t.edits, map[string]any{"oldText": "x", "newText": "y"})
		return
	}
	start := random.IntN(len(t.text))
	end := start + 1 + random.IntN(min(len(t.text)-start, one(random, 3, 20, 200)))
	if random.IntN(2) == 0 {
		start = strings.LastIndexByte(t.text[:start], '\n') + 1
		if i := strings.IndexByte(t.text[end:], '\n'); i >= 0 {
			end += i + 1
		}
	}
	for start > 0 && !utf8.RuneStart(t.text[start]) {
		start--
	}
	for end < len(t.text) && !utf8.RuneStart(t.text[end]) {
		end++
	}
	edit := map[string]any{"oldText": t.text[start:end], "newText": randomNew(random, t.text[start:end])}
	if random.IntN(4) == 0 {
		edit["oldText"] = strings.ReplaceAll(t.text[start:end], "\n", "\r\n")
	}
	if all {
		edit["replaceAll"] = one[any](random, true, "true")
	}
	t.edits = append(t.edits, edit)
}

// randomNew is the old text with lines changed in it, or something else.
func randomNew(random *rand.Rand, old string) string {
	lines := strings.Split(old, "\n")
	switch random.IntN(5) {
	case 0:
		return ""
	case 1:
		return one(random, "N", "N\n", "N\nN", "\n", "\r\nN\r\n", "é", "$1 $& \\1 $$")
	case 2:
		lines[random.IntN(len(lines))] += "+"
	case 3:
		lines = append(lines, "added", "")
	default:
		i := random.IntN(len(lines))
		lines = append(lines[:i:i], lines[i+1:]...)
	}
	return strings.Join(lines, "\n")
}

// lines picks some whole lines, the first and last of which hold something; false when there are none.
func (t *trial) lines(random *rand.Rand) (lines []string, ok bool) {
	all := strings.Split(t.text, "\n")
	from := random.IntN(len(all))
	to := from + 1 + random.IntN(min(4, len(all)-from))
	if strings.TrimSpace(all[from]) == "" || strings.TrimSpace(all[to-1]) == "" {
		return nil, false
	}
	for _, l := range all[:from] {
		t.start += len(l) + 1
	}
	t.end = t.start + len(strings.Join(all[from:to], "\n"))
	return append([]string(nil), all[from:to]...), true
}

// folded asks for lines with other spaces at their ends and other quotes and dashes.
func (t *trial) folded(random *rand.Rand) {
	t.kind = "folded"
	lines, ok := t.lines(random)
	if !ok {
		t.add(random, false)
		return
	}
	other := one(random, strings.NewReplacer("“", `"`, "”", `"`, "–", "-"), strings.NewReplacer(`"`, "“", "-", "—"))
	for i, l := range lines {
		lines[i] = other.Replace(strings.TrimRight(l, " \t")) + one(random, "", "", " ", "\t ")
	}
	old := strings.Join(lines, "\n")
	t.end -= len(t.text[t.start:t.end]) - len(strings.TrimRight(t.text[t.start:t.end], " \t"))
	lines[random.IntN(len(lines))] = one(random, "N", "", "N\nN")
	t.want = strings.Join(lines, "\n")
	t.edits = append(t.edits, map[string]any{"oldText": old, "newText": t.want})
}

// indented asks for lines with more or less before them.
func (t *trial) indented(random *rand.Rand) {
	t.kind = "indented"
	lines, ok := t.lines(random)
	if !ok {
		t.add(random, false)
		return
	}
	more, less := one(random, "  ", "\t"), ""
	if random.IntN(2) == 0 {
		more, less = "", lines[0][:len(lines[0])-len(strings.TrimLeft(lines[0], " \t"))]
	}
	for i, l := range lines {
		l = strings.TrimRight(l, " \t")
		if !strings.HasPrefix(l, less) && l != "" {
			t.add(random, false)
			return
		}
		if lines[i] = strings.TrimPrefix(l, less); l != "" {
			lines[i] = more + lines[i]
		}
	}
	old := strings.Join(lines, "\n")
	if strings.Contains(foldLine(t.text), foldLine(old)) { // then that is what it means
		t.add(random, false)
		return
	}
	lines[random.IntN(len(lines))] = more + "N"
	want := make([]string, len(lines))
	for i, l := range lines {
		if want[i] = l; strings.TrimSpace(l) != "" {
			want[i] = less + strings.TrimPrefix(l, more)
		}
	}
	t.want = strings.Join(want, "\n")
	t.edits = append(t.edits, map[string]any{"oldText": old, "newText": strings.Join(lines, "\n")})
}
