// Package text makes the small texts of the pages: times, sizes, and untrusted text made visible.
package text

import (
	"fmt"
	"strconv"
	"time"
)

// Ago is how long before now t was, "" for the zero time. Older than a week it is the date in UTC.
func Ago(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	switch d := now.Sub(t); {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min ago"
	case d < 24*time.Hour:
		return strconv.Itoa(int(d.Hours())) + " h ago"
	case d < 48*time.Hour:
		return "yesterday"
	case d < 7*24*time.Hour:
		return strconv.Itoa(int(d.Hours()/24)) + " days ago"
	case t.UTC().Year() == now.UTC().Year():
		return t.UTC().Format("2 Jan")
	default:
		return t.UTC().Format("2 Jan 2006")
	}
}

// Full is the whole time in UTC, for titles.
func Full(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// Machine is the datetime attribute of a time.
func Machine(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Milliseconds since the epoch, as the page's clock reads them.
func Milliseconds(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

// Elapsed is a duration as people say it: 0.4 s, 12 s, 3m 12s, 1h 04m.
func Elapsed(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < 100*time.Millisecond:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(float64(d.Milliseconds()/100)/10, 'f', 1, 64) + " s"
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%dm %02ds", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%dh %02dm", int(d.Hours()), int(d.Minutes())%60)
	}
}

// Ticking is a running duration in whole seconds, in the form that the page counts on with.
func Ticking(d time.Duration) string {
	d = max(d, 0)
	if d < time.Minute {
		return strconv.Itoa(int(d.Seconds())) + " s"
	}
	return Elapsed(d)
}
