package gallery

import (
	"time"

	"agent-sandboxing/views/diff"
	"agent-sandboxing/views/layout"
	"agent-sandboxing/views/pages"
)

func diffPage(l layout.Props, patch string, open int) pages.DiffProps {
	return pages.DiffProps{
		Layout: l, SessionID: id(1), DiffID: id(8), Title: "Fix the rounding of half cents in split postings", Repository: "octo-org/ledger",
		BaseBranch: "main", BaseSHA: "3f2c1ab9d04e77c1b2a3948576aa0011bbcc2233", CapturedAt: l.Now.Add(-time.Minute), Latest: true,
		Diff: diff.Parse([]byte(patch), diff.Options{Open: open}), ArtifactID: id(8), CanPublish: patch != "", PullNumber: 41,
	}
}

const samplePatch = `diff --git a/internal/posting/split.go b/internal/posting/split.go
index 1111111111111111111111111111111111111111..2222222222222222222222222222222222222222 100644
--- a/internal/posting/split.go
+++ b/internal/posting/split.go
@@ -1,12 +1,19 @@ package posting
 package posting
 
-import "math"
+import "errors"
 
-// Split divides an amount.
-func Split(amount int64, parts int) []int64 {
+// ErrParts is what Split answers when there is nothing to divide among.
+var ErrParts = errors.New("posting: parts must be positive")
+
+// Split divides an amount so that the parts add up to it again.
+func Split(amount int64, parts int) ([]int64, error) {
+	if parts < 1 {
+		return nil, ErrParts
+	}
 	out := make([]int64, parts)
 	for i := range out {
-		out[i] = int64(math.Ceil(float64(amount) / float64(parts)))
+		out[i] = amount / int64(parts)
 	}
-	return out
+	out[parts-1] += amount % int64(parts) /* the rest goes last */
+	return out, nil
 }
@@ -40,4 +47,4 @@ func Sum(parts []int64) int64 {
 	for _, p := range parts {
-		total = total + p
+		total += p
 	}
 	return total
diff --git a/internal/posting/split_table_test.go b/internal/posting/split_table_test.go
new file mode 100644
index 0000000000000000000000000000000000000000..3333333333333333333333333333333333333333
--- /dev/null
+++ b/internal/posting/split_table_test.go
@@ -0,0 +1,9 @@
+package posting
+
+import "testing"
+
+func TestSplit_AddsUp(t *testing.T) {
+	if got, _ := Split(1001, 2); Sum(got) != 1001 {
+		t.Errorf("Split(1001, 2) = %v, which is not 1001", got)
+	}
+}
\ No newline at end of file
diff --git a/docs/round.md b/docs/rounding.md
similarity index 92%
rename from docs/round.md
rename to docs/rounding.md
index 4444444444444444444444444444444444444444..5555555555555555555555555555555555555555 100644
--- a/docs/round.md
+++ b/docs/rounding.md
@@ -3,3 +3,3 @@
 
-Every part is rounded up.
+The last part takes what is left.
 
diff --git a/scripts/check b/scripts/check
old mode 100644
new mode 100755
diff --git a/docs/flow.png b/docs/flow.png
new file mode 100644
index 0000000000000000000000000000000000000000..6666666666666666666666666666666666666666
Binary files /dev/null and b/docs/flow.png differ
diff --git a/latest b/latest
new file mode 120000
index 0000000000000000000000000000000000000000..7777777777777777777777777777777777777777
--- /dev/null
+++ b/latest
@@ -0,0 +1,1 @@
+internal/posting
\ No newline at end of file
diff --git a/package-lock.json b/package-lock.json
index 8888888888888888888888888888888888888888..9999999999999999999999999999999999999999 100644
--- a/package-lock.json
+++ b/package-lock.json
@@ -1,3 +1,3 @@
 {
-  "version": "1.0.0"
+  "version": "1.0.1"
 }
diff --git a/old/unused.go b/old/unused.go
deleted file mode 100644
index aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..0000000000000000000000000000000000000000
--- a/old/unused.go
+++ /dev/null
@@ -1,3 +0,0 @@
-package old
-
-func unused() {}
`

// hostilePatch is what a repository that attacks the reviewer would send.
const hostilePatch = "diff --git a/<img src=x onerror=alert(1)>.js b/<img src=x onerror=alert(1)>.js\n" +
	"index 1111111111111111111111111111111111111111..2222222222222222222222222222222222222222 100644\n" +
	"--- a/<img src=x onerror=alert(1)>.js\n" +
	"+++ b/<img src=x onerror=alert(1)>.js\n" +
	"@@ -1,3 +1,4 @@ </td><script>alert(2)</script>\n" +
	" const a = \"</td></tr></table><script>alert(3)</script>\";\n" +
	"-if (level != \"user\") {\n" +
	"+if (level != \"user\u202e \u2066// admins only\u2069 \u2066\") {\n" +
	"+  <hx-partial hx-target=\"#status\">gone</hx-partial>\x1b[2J\x00\r\n" +
	" }\n" +
	"diff --git a/broken b/broken\n" +
	"--- a/broken\n+++ b/broken\n@@ -1,9 +1,1 @@\n <script>alert(4)</script>\n+x\n"
