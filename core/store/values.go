package store

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"agent-sandboxing/core"
	"agent-sandboxing/core/redact"
)

// zeroTime scans a nullable timestamp: NULL is the zero time.
type zeroTime struct{ to *time.Time }

// ScanTimestamptz implements pgtype.TimestamptzScanner.
func (z zeroTime) ScanTimestamptz(v pgtype.Timestamptz) error {
	*z.to = v.Time // zero when NULL
	return nil
}

// orNull writes the zero time as NULL.
func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// clean makes text that Postgres takes: valid UTF-8 without NUL. Model and tools may say anything.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// document is v as JSON that jsonb takes: \u0000, which jsonb refuses, becomes U+FFFD.
func document(v any) (string, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	if !bytes.Contains(data, []byte(`\u0000`)) {
		return string(data), nil
	}
	var out strings.Builder
	for i := 0; i < len(data); i++ {
		switch {
		case bytes.HasPrefix(data[i:], []byte(`\u0000`)):
			out.WriteString(`\ufffd`)
			i += len(`\u0000`) - 1
		case data[i] == '\\': // an escape of two characters at least: \\u0000 is text, not an escape
			out.Write(data[i : i+2])
			i++
		default:
			out.WriteByte(data[i])
		}
	}
	return out.String(), nil
}

// snippet is the beginning of a person's text for an event.
func snippet(text string) string { return redact.Cut(clean(text), core.MaxSnippet) }
