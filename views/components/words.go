package components

// stateWord is a state as people read it.
func stateWord(state string) string {
	switch state {
	case "queued":
		return "Queued"
	case "preparing":
		return "Preparing"
	case "working":
		return "Working"
	case "cancelling":
		return "Cancelling"
	case "publishing":
		return "Publishing"
	case "review":
		return "Needs review"
	case "completed":
		return "Done"
	case "failed":
		return "Failed"
	case "cancelled":
		return "Cancelled"
	case "creating":
		return "Creating"
	case "ready":
		return "Ready"
	case "stopping":
		return "Stopping"
	case "stopped":
		return "Stopped"
	case "idle", "":
		return "Idle"
	default:
		return state
	}
}

func chipTone(state string) string {
	switch state {
	case "working", "preparing", "publishing", "creating":
		return "chip-accent"
	case "completed", "ready":
		return "chip-good"
	case "review", "cancelling":
		return "chip-warn"
	case "failed":
		return "chip-bad"
	default:
		return ""
	}
}

func dotTone(state string) string {
	switch state {
	case "working", "preparing", "publishing", "cancelling":
		return "dot-accent dot-live"
	case "completed":
		return "dot-good"
	case "review":
		return "dot-warn"
	case "failed":
		return "dot-bad"
	default:
		return ""
	}
}

func pullTone(state string) string {
	switch state {
	case "open":
		return "chip-good"
	case "merged":
		return "chip-accent"
	case "closed":
		return "chip-bad"
	default:
		return ""
	}
}

func statusLetter(status string) string {
	switch status {
	case "added":
		return "A"
	case "deleted":
		return "D"
	case "renamed":
		return "R"
	case "copied":
		return "C"
	case "mode", "type":
		return "T"
	default:
		return "M"
	}
}

func statusTone(status string) string {
	switch status {
	case "added":
		return "text-good"
	case "deleted":
		return "text-bad"
	case "renamed", "copied":
		return "text-accent"
	default:
		return "text-warn"
	}
}

func noteTone(tone string) (icon, class string) {
	switch tone {
	case "success":
		return "check", "row-good"
	case "warning":
		return "alert", "row-warn"
	case "danger":
		return "alert", "row-bad"
	default:
		return "info", ""
	}
}
