package handlers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"agent-sandboxing/core"
)

// The sentences that records become. Plain, present tense, with what to do next.

func shortSHA(sha string) string { return sha[:min(7, len(sha))] }

func ordinal(n int) string {
	if n <= 1 {
		return ""
	}
	return "lost " + strconv.Itoa(n) + " times"
}

func retryDetail(p core.ModelRequestRetry) string {
	wait := time.Duration(p.WaitMs) * time.Millisecond
	return fmt.Sprintf("attempt %d after %s, %s", p.Attempt, duration(wait), p.Reason)
}

func captureWarning(p core.CaptureFailed) string {
	what := "The changes of this turn could not be recorded"
	if p.What == "checkpoint" {
		what = "The work tree could not be saved as a checkpoint"
	}
	return what + " (" + p.Code + "). The workspace itself is untouched; the next turn tries again."
}

func partialWarning(missing []string) string {
	return "The saved copy of the work tree leaves out what did not fit: " + nameSome(missing, 3) + "."
}

func restoredText(p core.SandboxRestored) string {
	switch {
	case p.CheckpointID == "" && p.PassedOver > 0:
		return "The sandbox was lost, and no checkpoint could be applied: the workspace is at the base commit again. The diffs of earlier turns stay readable."
	case p.PassedOver > 0:
		return "The sandbox was lost and rebuilt from an older checkpoint: " + plural(p.Files, "file") + ". " +
			plural(p.PassedOver, "newer checkpoint") + " could not be applied; the diffs of those turns stay readable."
	default:
		return "The sandbox was lost and rebuilt from the last checkpoint: " + plural(p.Files, "file") + "."
	}
}

func mergedText(p core.PublicationMerged) string {
	text := "Others had pushed " + plural(p.Commits, "commit") + " to the branch. They were merged with this session's work"
	if p.InWorkspace {
		return text + " and are in the workspace now."
	}
	return text + "; the workspace does not have them yet."
}

// nameSome lists the first few names and counts the rest.
func nameSome(names []string, few int) string {
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:few], ", ") + " and " + strconv.Itoa(len(names)-few) + " more"
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// duration is a length of time for people: 0.4 s, 14 s, 3m 12s, 1h 02m.
func duration(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%dm %02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh %02dm", int(d.Hours()), int(d.Minutes())%60)
}

// usageText is "41.2k in · 3.1k out · $0.12 · model"; unknown parts are left out, never guessed.
func usageText(u core.Usage, model string) string {
	var parts []string
	if u.PromptTokens > 0 || u.CompletionTokens > 0 {
		parts = append(parts, thousands(u.PromptTokens)+" in", thousands(u.CompletionTokens)+" out")
	}
	if u.CostUSD != nil {
		cost := core.Dollars(*u.CostUSD)
		if u.CostSource == core.CostUnknown {
			cost = "about " + cost
		}
		parts = append(parts, cost)
	}
	if len(parts) > 0 && model != "" {
		parts = append(parts, model)
	}
	return strings.Join(parts, " · ")
}

// contextText is "context 34% full", "" when nobody counted.
func contextText(c core.ContextUse) string {
	if c.Tokens <= 0 || c.Window <= 0 {
		return ""
	}
	return fmt.Sprintf("context %d%% full", (c.Tokens*100+c.Window-1)/c.Window)
}

// joined puts a dot between the parts that say something.
func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " · ")
}

func thousands(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10)
	}
	return strconv.FormatFloat(float64(n)/1000, 'f', 1, 64) + "k"
}
