package chat

import (
	"context"
	"strings"
	"unicode/utf8"

	"agent-sandboxing/core"
)

// PublishRequest is the publish form.
type PublishRequest struct {
	Title, Body string
	ClientKey   string
}

// Bounds of a pull request's text; GitHub refuses longer ones.
const (
	maxPRTitleRunes = 256
	maxPRBodyRunes  = 65536
)

// RequestPublish stores the wish to open or update the session's pull request; a worker serves it.
// Anyone who may push to the repository may ask, and GitHub is asked now.
func (s *Service) RequestPublish(ctx context.Context, user core.User, id core.SessionID, r PublishRequest) (core.Publication, error) {
	title := strings.Join(strings.Fields(r.Title), " ")
	body := strings.ReplaceAll(strings.TrimSpace(r.Body), "\r\n", "\n")
	switch {
	case title == "" || utf8.RuneCountInString(title) > maxPRTitleRunes || !storable(title):
		return core.Publication{}, core.Fail(core.Invalid, "title_invalid", "Give the pull request a title of 1 to 256 characters.")
	case utf8.RuneCountInString(body) > maxPRBodyRunes || !storable(body):
		return core.Publication{}, core.Fail(core.Invalid, "body_invalid", "The description is longer than GitHub takes (65,536 characters). Shorten it.")
	}
	key, err := clientKey(r.ClientKey)
	if err != nil {
		return core.Publication{}, err
	}
	session, _, err := s.Open(ctx, user, id, "publish")
	if err != nil {
		return core.Publication{}, err
	}
	if session.Repository.IsFixture() {
		return core.Publication{}, core.Fail(core.Conflict, "fixture_not_published",
			"This session works on a local fixture, which has no GitHub repository to open a pull request in.")
	}
	if _, err := s.pushable(ctx, user.ID, session.Repository.InstallationID, session.Repository.ID); err != nil {
		return core.Publication{}, err
	}
	return s.store.RequestPublish(ctx, core.Publication{
		ID: core.NewID[core.PublicationID](), SessionID: id, RequestedBy: user.ID,
		ClientKey: key, Title: title, Body: body, Step: core.PublishRequested,
	})
}

// CancelPublish ends an attempt that waits for GitHub. Whoever may cancel a turn of the session may.
func (s *Service) CancelPublish(ctx context.Context, user core.User, id core.SessionID, pub core.PublicationID) error {
	_, rights, err := s.Open(ctx, user, id, "publish_cancel")
	if err != nil {
		return err
	}
	if !rights.MayCancel() {
		return core.Fail(core.Forbidden, "not_owner", "Only the session's owner can cancel its publish.")
	}
	return s.store.CancelWaitingPublication(ctx, id, pub)
}

// Publication is one attempt of a session that the person may view.
func (s *Service) Publication(ctx context.Context, user core.User, id core.SessionID, pub core.PublicationID) (core.Publication, error) {
	if _, _, err := s.Open(ctx, user, id, "session_view"); err != nil {
		return core.Publication{}, err
	}
	return s.store.Publication(ctx, id, pub)
}

// LastPublished is the attempt whose text the pull request of a session that was opened has now, nil
// when there is none.
func (s *Service) LastPublished(ctx context.Context, t core.Timeline) (*core.Publication, error) {
	if p := t.Publication; p != nil && p.Step == core.PublishDone {
		return p, nil
	}
	return s.store.LastPublished(ctx, t.Session.ID)
}

// storable says that Postgres and GitHub will take s.
func storable(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }
