package tools

import (
	"bytes"
	"net/http"
	"strings"
	"unicode/utf8"

	"agent-sandboxing/agent"
	"agent-sandboxing/core"
	"agent-sandboxing/core/redact"
)

// sniffed is how much of a file decides whether it is text. Bytes.
const sniffed = 8 << 10

// binary says that data holds a NUL near its beginning, or that three bytes in ten there are no
// UTF-8. Text in Latin-1 has fewer. A character that the sample cuts does not count.
func binary(data []byte) bool {
	sample := data
	if len(sample) > sniffed {
		sample = sample[:sniffed]
		for cut := 0; cut < utf8.UTFMax && len(sample) > 0; cut++ {
			if r, size := utf8.DecodeLastRune(sample); r != utf8.RuneError || size != 1 {
				break
			}
			sample = sample[:len(sample)-1]
		}
	}
	if bytes.IndexByte(sample, 0) >= 0 {
		return true
	}
	bad := 0
	for i := 0; i < len(sample); {
		r, size := utf8.DecodeRune(sample[i:])
		if r == utf8.RuneError && size == 1 {
			bad++
		}
		i += size
	}
	return bad*10 > len(sample)*3
}

// binaryFile is the answer for one: what it seems to be, and what to do instead.
func binaryFile(p string, file core.FileData, advice string) agent.Result {
	kind := http.DetectContentType(file.Data)
	switch {
	case kind == "application/octet-stream":
		kind = "unknown kind"
	case strings.HasPrefix(kind, "text/"):
		kind = "perhaps text in another encoding than UTF-8"
	}
	return agent.Failed("binary_file", "%s is binary (%s, %s). %s", p, kind, redact.Size(file.Size), advice)
}
