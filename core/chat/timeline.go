package chat

import (
	"context"

	"agent-sandboxing/core"
)

// View is a session as one person sees it, read in one snapshot.
type View struct {
	core.Timeline
	Rights Rights
	// Policy is what the sandbox may reach now.
	Policy core.EgressPolicy
}

// Timeline reads what a session page shows: the last limit events (0: all) before sequence before
// (0: the newest).
func (s *Service) Timeline(ctx context.Context, user core.User, id core.SessionID, before int64, limit int) (View, error) {
	_, rights, err := s.Open(ctx, user, id, "session_view")
	if err != nil {
		return View{}, err
	}
	t, err := s.store.Timeline(ctx, id, before, limit)
	if err != nil {
		return View{}, err
	}
	return View{Timeline: t, Rights: rights, Policy: s.egressPolicy(t)}, nil
}

// Reread is Timeline for a stream that has opened the session and asks again at intervals.
func (s *Service) Reread(ctx context.Context, id core.SessionID, rights Rights, limit int) (View, error) {
	t, err := s.store.Timeline(ctx, id, 0, limit)
	if err != nil {
		return View{}, err
	}
	return View{Timeline: t, Rights: rights, Policy: s.egressPolicy(t)}, nil
}

// Growing reads a message for a stream that has opened the session, while its answer grows.
func (s *Service) Growing(ctx context.Context, id core.SessionID, message core.MessageID) (core.Message, error) {
	return s.store.Message(ctx, id, message)
}

// Events lists the session's log after a sequence, oldest first. last is the session's newest
// sequence when the reading began.
func (s *Service) Events(ctx context.Context, user core.User, id core.SessionID, after int64, limit int) (events []core.Event, last int64, err error) {
	session, _, err := s.Open(ctx, user, id, "events_view")
	if err != nil {
		return nil, 0, err
	}
	events, err = s.store.EventsSince(ctx, id, after, limit)
	return events, session.LastSequence, err
}

// Session is the session alone, for pages that only name it.
func (s *Service) Session(ctx context.Context, user core.User, id core.SessionID) (core.ChatSession, error) {
	session, _, err := s.Open(ctx, user, id, "session_view")
	return session, err
}

// Artifact is kept bytes of a session that the person may view.
func (s *Service) Artifact(ctx context.Context, user core.User, id core.SessionID, artifact core.ArtifactID) (core.Artifact, error) {
	if _, _, err := s.Open(ctx, user, id, "artifact_view"); err != nil {
		return core.Artifact{}, err
	}
	return s.store.Artifact(ctx, id, artifact)
}

// Diff is a captured difference with its file index and the session that it belongs to.
type Diff struct {
	Session  core.ChatSession
	Rights   Rights
	Artifact core.Artifact // with data
	Files    []core.ChangedFile
	Latest   core.ArtifactID
	// PullNumber is of the session's pull request, 0 when there is none.
	PullNumber int
}

// Diff reads one diff; "" is the newest. NotFound when there is none, or the artifact is no diff.
func (s *Service) Diff(ctx context.Context, user core.User, id core.SessionID, diff core.ArtifactID) (Diff, error) {
	session, rights, err := s.Open(ctx, user, id, "diff_view")
	if err != nil {
		return Diff{}, err
	}
	latest, err := s.store.LatestDiffID(ctx, id)
	if err != nil {
		return Diff{}, err
	}
	if diff == "" {
		diff = latest
	}
	if diff == "" {
		return Diff{}, core.Fail(core.NotFound, "no_diff", "Nothing has been changed in this session yet.")
	}
	a, err := s.store.Artifact(ctx, id, diff)
	if err != nil {
		return Diff{}, err
	}
	if a.Kind != core.ArtifactDiff {
		return Diff{}, core.NotFoundError()
	}
	files, err := s.store.DiffIndex(ctx, id, diff)
	if err != nil {
		return Diff{}, err
	}
	d := Diff{Session: session, Rights: rights, Artifact: a, Files: files, Latest: latest}
	pull, err := s.store.PullRequest(ctx, id)
	if pull != nil {
		d.PullNumber = pull.Number
	}
	return d, err
}
