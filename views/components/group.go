package components

import (
	"slices"
	"strconv"
	"strings"

	"agent-sandboxing/views/text"
)

// minGroup is how many explorations in a row fold into one line.
const minGroup = 3

// run is what one line of a turn's log stands for: a single item, or explorations in a row.
type run struct {
	item  Item
	group []ToolProps
}

// ownedBy gives every call the message that it belongs to.
func ownedBy(messageID string, items []Item) []Item {
	out := slices.Clone(items)
	for i, item := range out {
		if item.Tool != nil {
			t := *item.Tool
			t.MessageID = messageID
			out[i].Tool = &t
		}
	}
	return out
}

// runs folds explorations in a row.
func runs(items []Item) []run {
	var out []run
	for i := 0; i < len(items); {
		n := 0
		for i+n < len(items) && explores(items[i+n]) {
			n++
		}
		if n < minGroup {
			n = max(n, 1)
			for _, item := range items[i : i+n] {
				out = append(out, run{item: item})
			}
			i += n
			continue
		}
		group := make([]ToolProps, 0, n)
		for _, item := range items[i : i+n] {
			group = append(group, *item.Tool)
		}
		out = append(out, run{group: group})
		i += n
	}
	return out
}

// explores is true of calls that only look; one that went wrong keeps its own line.
func explores(item Item) bool {
	if item.Tool == nil || (item.Tool.State != "ok" && item.Tool.State != "running") {
		return false
	}
	switch item.Tool.Tool {
	case "read", "grep", "find", "ls":
		return true
	}
	return false
}

// groupLabel counts what a group looked at: "7 files, 2 searches".
func groupLabel(group []ToolProps) string {
	files := make(map[string]bool)
	searches, folders := 0, 0
	for _, t := range group {
		switch t.Tool {
		case "read":
			path, _, _ := strings.Cut(t.Object, ":")
			files[path] = true
		case "ls":
			folders++
		default:
			searches++
		}
	}
	var parts []string
	if len(files) > 0 {
		parts = append(parts, text.Count(len(files), "file"))
	}
	if folders > 0 {
		parts = append(parts, text.Count(folders, "folder"))
	}
	switch {
	case searches == 1:
		parts = append(parts, "1 search")
	case searches > 1:
		parts = append(parts, strconv.Itoa(searches)+" searches")
	}
	return strings.Join(parts, ", ")
}

// groupRunning is the call of a group that runs now, nil when all are done.
func groupRunning(group []ToolProps) *ToolProps {
	last := &group[len(group)-1]
	if last.State == "running" {
		return last
	}
	return nil
}

func actions(items []Item) int {
	n := 0
	for _, item := range items {
		if item.Tool != nil {
			n++
		}
	}
	return n
}
