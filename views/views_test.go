// Package views_test holds the rules for all pages together.
package views_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTempl_UnescapedTextComesFromTheSanitiserAlone reads the sources: raw output stands in one place,
// and nothing that a browser would evaluate stands anywhere.
func TestTempl_UnescapedTextComesFromTheSanitiserAlone(t *testing.T) {
	t.Parallel()
	raw := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".templ") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text := string(source)
		if strings.Contains(text, "templ.Raw(") {
			raw++
			if path != filepath.Join("components", "answer.templ") {
				t.Errorf("%s prints text that is not escaped", path)
			}
		}
		for _, banned := range []string{"style=", "<style", "hx-on", "js:", "javascript:", "hx-vals", "hx-headers", "templ.JSExpression", "script ("} {
			if strings.Contains(text, banned) {
				t.Errorf("%s has %q", path, banned)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if raw != 1 {
		t.Errorf("%d files print raw text, want the answer alone", raw)
	}
}
