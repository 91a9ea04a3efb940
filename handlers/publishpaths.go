package handlers

import (
	"strings"
	"unicode"

	"agent-sandboxing/core"
	"agent-sandboxing/views/components"
	"agent-sandboxing/views/link"
	"agent-sandboxing/views/pages"
)

// maxOffered bounds the paths that a form lets a person choose; what is beyond goes by the rules.
const maxOffered = 500

// offerPaths fills the form's list of files: first those that a rule keeps out, then the others, each as it
// was chosen before or as the rules say.
func (v sessionView) offerPaths(p *pages.PublishProps, choices core.PathChoices) {
	var in []core.ChangedFile
	var kept, rest []pages.PublishPathProps
	for i, f := range v.Changed {
		chosen, known := choices[f.Path]
		row := pages.PublishPathProps{Rule: f.Rule, In: f.Rule == "", Fixed: !sendable(f.Path)}
		if known && !row.Fixed {
			row.In = chosen
		}
		if row.In {
			in = append(in, f)
		}
		if isWorkflow(f.Path) || isWorkflow(f.OldPath) {
			row.Note = "The App may not change workflow files."
		}
		row.File = components.FileProps{
			Path: f.Path, OldPath: f.OldPath, Status: f.Status, Additions: f.Additions, Deletions: f.Deletions, Binary: f.Binary,
		}
		if v.Diff != nil {
			row.File.URL = link.DiffFile(v.id(), string(v.Diff.ID), i)
		}
		if f.Rule != "" {
			kept = append(kept, row)
		} else {
			rest = append(rest, row)
		}
	}
	p.Total, p.Included = len(v.Changed), len(in)
	p.Additions, p.Deletions = core.Totals(in)
	p.Kept = kept[:min(len(kept), maxOffered)]
	p.Paths = rest[:min(len(rest), maxOffered-len(p.Kept))]
	p.MoreFiles = p.Total - len(p.Kept) - len(p.Paths)
	p.Warnings = publishWarnings(in)
}

// sendable says that a form brings a path back as it is.
func sendable(path string) bool { return strings.IndexFunc(path, unicode.IsControl) < 0 }

func isWorkflow(path string) bool { return strings.HasPrefix(path, ".github/workflows/") }
