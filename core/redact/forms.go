package redact

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
)

// minLine is the length in bytes from which one line of a many-line secret counts as secret
// itself. Tools print files line by line, with a prefix, so a key must also be known by its lines.
const minLine = 24

// forms lists the spellings in which secret may appear in text: itself, its long lines, base64
// (padded, unpadded, URL alphabet, and as part of a longer encoded text), URL and JSON escapes.
func forms(secret string) []string {
	if len(secret) < minSecret {
		return nil
	}
	list := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), jsonEscape(secret)}
	for line := range strings.Lines(secret) {
		if line = strings.TrimSpace(line); len(line) >= minLine {
			list = append(list, line)
		}
	}
	return append(list, base64Forms(secret)...)
}

// base64Forms encodes secret whole, and as it looks inside a longer text at each of the three
// alignments: only the characters that the neighbours cannot change.
func base64Forms(secret string) []string {
	var list []string
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		list = append(list, encoding.EncodeToString([]byte(secret)))
		for shift := range 3 {
			encoded := encoding.EncodeToString(append(make([]byte, shift), secret...))
			first := (shift*8 + 5) / 6
			last := (shift + len(secret)) * 8 / 6
			if last-first >= minSecret {
				list = append(list, encoded[first:last])
			}
		}
	}
	return list
}

func jsonEscape(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return s
	}
	return string(b[1 : len(b)-1])
}
