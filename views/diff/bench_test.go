package diff_test

import (
	"strings"
	"testing"
	"time"

	"agent-sandboxing/views/diff"
)

// BenchmarkPage parses a patch of 10,000 lines and writes the rows of the first answer.
func BenchmarkPage(b *testing.B) {
	patch := []byte(goPatch(63, 160))
	b.SetBytes(int64(len(patch)))
	for b.Loop() {
		d := diff.Parse(patch, diff.Options{Open: -1})
		var out strings.Builder
		for _, f := range d.Files {
			if err := diff.Table(f).Render(b.Context(), &out); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(out.Len()), "html-bytes")
	}
}

// goPatch is a patch of many Go files with lines that are replaced one for one.
func goPatch(files, lines int) string {
	var b strings.Builder
	for i := range files {
		name := "pkg" + string(rune('a'+i%26)) + "/file" + string(rune('a'+i/26)) + ".go"
		b.WriteString("diff --git a/" + name + " b/" + name + "\nindex 1111111..2222222 100644\n--- a/" + name + "\n+++ b/" + name + "\n")
		b.WriteString("@@ -1,80 +1,80 @@ package pkg\n")
		for range lines / 2 {
			b.WriteString("-\tif err := store.Save(ctx, session.ID, \"old value\"); err != nil {\n")
			b.WriteString("+\tif err := store.Save(ctx, session.ID, \"new value\"); err != nil {\n")
		}
	}
	return b.String()
}

func TestPage_FirstAnswerIsBounded(t *testing.T) {
	t.Parallel()
	d := diff.Parse([]byte(goPatch(63, 160)), diff.Options{Open: -1})
	size := 0
	for _, f := range d.Files {
		var out strings.Builder
		if err := diff.Table(f).Render(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		size += out.Len()
	}
	if size > 300<<10 {
		t.Errorf("the rows of the first answer are %d bytes", size)
	}
}

// A line of a few bytes may be many coloured spans; the page counts what they cost.
func TestParse_FoldsWhatIsDense(t *testing.T) {
	t.Parallel()
	line := "+\tx = " + strings.Repeat("1+", 40) + "1\n"
	patch := "diff --git a/a.go b/a.go\nindex 1111111..2222222 100644\n--- a/a.go\n+++ b/a.go\n@@ -0,0 +1,225 @@\n" + strings.Repeat(line, 225)
	f := diff.Parse([]byte(patch), diff.Options{Open: -1, Colour: time.Hour}).Files[0]
	if f.Folded != "Not loaded" || f.Hunks != nil {
		t.Errorf("%d rows of %d spans each are shown at first", f.Lines, len(f.Hunks[0].Lines[0].Spans))
	}
}
