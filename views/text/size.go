package text

import "strconv"

// Bytes is a size in steps of 1024: 812 B, 12 KB, 3.4 MB.
func Bytes(n int64) string {
	switch {
	case n < 1<<10:
		return strconv.FormatInt(n, 10) + " B"
	case n < 1<<20:
		return strconv.FormatInt((n+512)>>10, 10) + " KB"
	default:
		return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) + " MB"
	}
}

// Count is a number with its noun: 1 file, 3 files.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// ShortSHA is the first 7 digits of a commit.
func ShortSHA(sha string) string { return sha[:min(len(sha), 7)] }

// ShortID is the last 8 characters of an id: the first are the clock.
func ShortID(id string) string { return id[max(0, len(id)-8):] }

// SplitPath parts a path after its last slash, so that a page can shorten the folder first.
func SplitPath(p string) (dir, base string) {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i] == '/' {
			return p[:i+1], p[i+1:]
		}
	}
	return "", p
}
