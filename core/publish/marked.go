package publish

import (
	"context"
	"errors"

	"agent-sandboxing/core"
	"agent-sandboxing/core/mirror"
)

// Marked is a mirror whose diffs say of each path which rule keeps it out of a publish, so that the form
// can ask a person about it.
type Marked struct{ *mirror.Mirror }

// Capture is the mirror's, with the rules.
func (m Marked) Capture(ctx context.Context, s core.ChatSession, ws core.PlatformWorkspace) (core.Diff, error) {
	q, err := m.Import(ctx, s, ws)
	if err != nil {
		return core.Diff{}, err
	}
	diff, err := marked(ctx, q)
	return diff, errors.Join(err, q.Close())
}

func marked(ctx context.Context, q *mirror.Quarantine) (core.Diff, error) {
	diff, err := q.Diff(ctx, q.Base, q.Tree)
	if err != nil || len(diff.Files) == 0 {
		return diff, err
	}
	changes, err := q.Changes(ctx, q.Base, q.Tree)
	if err != nil {
		return core.Diff{}, err
	}
	sizes, err := sizesOf(ctx, q, changes)
	if err != nil {
		return core.Diff{}, err
	}
	rules, err := judge(ctx, q, changes, sizes)
	if err != nil {
		return core.Diff{}, err
	}
	for i := range diff.Files {
		diff.Files[i].Rule = rules[i]
	}
	return diff, nil
}
