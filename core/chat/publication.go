package chat

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"agent-sandboxing/core"
)

// PublishRequest is the publish form.
type PublishRequest struct {
	Title, Body string
	Draft       bool
	Base        string           // "" is the branch that the pull request has, or the session's
	Paths       core.PathChoices // of each path that was offered, whether it goes in; nil changes no choice
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
	session, err := s.publishable(ctx, user, id)
	if err != nil {
		return core.Publication{}, err
	}
	base, err := s.newBase(ctx, user, session, strings.TrimSpace(r.Base))
	if err != nil {
		return core.Publication{}, err
	}
	paths, err := s.chosenPaths(ctx, id, r.Paths)
	if err != nil {
		return core.Publication{}, err
	}
	return s.request(ctx, core.Publication{
		SessionID: id, RequestedBy: user.ID, ClientKey: r.ClientKey, Title: title, Body: body, Draft: r.Draft, Base: base,
	}, paths)
}

// PublishAgain repeats an attempt that ended with a question, with the person's answer to it.
func (s *Service) PublishAgain(ctx context.Context, user core.User, id core.SessionID, publication core.PublicationID, choice core.PublishChoice) (core.Publication, error) {
	if _, err := s.publishable(ctx, user, id); err != nil {
		return core.Publication{}, err
	}
	p, err := s.store.Publication(ctx, id, publication)
	if err != nil {
		return core.Publication{}, err
	}
	if !slices.Contains(p.Choices(), choice) {
		return core.Publication{}, core.Fail(core.Conflict, "choice_not_offered", "This publish did not end with that question. Publish again.")
	}
	return s.request(ctx, core.Publication{
		SessionID: id, RequestedBy: user.ID, ClientKey: "again " + string(choice) + " " + string(publication),
		Title: p.Title, Body: p.Body, Draft: p.Draft, Base: p.Base, Choice: choice,
	}, nil)
}

// publishable is the session, when the person may publish it as GitHub says now.
func (s *Service) publishable(ctx context.Context, user core.User, id core.SessionID) (core.ChatSession, error) {
	session, _, err := s.Open(ctx, user, id, "publish")
	if err != nil {
		return core.ChatSession{}, err
	}
	if session.Repository.IsFixture() {
		return core.ChatSession{}, core.Fail(core.Conflict, "fixture_not_published",
			"This session works on a local fixture, which has no GitHub repository to open a pull request in.")
	}
	session.Repository, err = s.pushable(ctx, user.ID, session.Repository.InstallationID, session.Repository.ID)
	return session, err
}

func (s *Service) request(ctx context.Context, p core.Publication, paths core.PathChoices) (core.Publication, error) {
	var err error
	if p.ClientKey, err = clientKey(p.ClientKey); err != nil {
		return core.Publication{}, err
	}
	p.ID, p.Step = core.NewID[core.PublicationID](), core.PublishRequested
	return s.store.RequestPublish(ctx, p, paths)
}

// newBase is the branch that was chosen to merge into, "" when it is the one that it is anyway. Invalid
// base_invalid when there is none of the name.
func (s *Service) newBase(ctx context.Context, user core.User, session core.ChatSession, name string) (string, error) {
	pr, err := s.store.PullRequest(ctx, session.ID)
	if err != nil {
		return "", err
	}
	current := session.BaseBranch
	if pr != nil && pr.Base != "" {
		current = pr.Base
	}
	if name == "" || name == current {
		return "", nil
	}
	_, err = s.ResolveBranch(ctx, user, session.Repository, name)
	if core.KindOf(err) == core.Invalid || name == session.Branch {
		return "", core.Fail(core.Invalid, "base_invalid", "No pull request can go into "+name+": choose a branch of "+session.Repository.FullName()+".").Because(err)
	}
	return name, err
}

// chosenPaths are all choices of the session after offered was decided: those that agree with the rules
// are none.
func (s *Service) chosenPaths(ctx context.Context, id core.SessionID, offered core.PathChoices) (core.PathChoices, error) {
	if offered == nil {
		return nil, nil
	}
	diff, err := s.store.LatestDiffID(ctx, id)
	if err != nil || diff == "" {
		return nil, err
	}
	files, err := s.store.DiffIndex(ctx, id, diff)
	if err != nil {
		return nil, err
	}
	choices, err := s.store.PathChoices(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		switch in, ok := offered[f.Path]; {
		case ok && in == (f.Rule == ""):
			delete(choices, f.Path)
		case ok:
			choices[f.Path] = in
		}
	}
	return choices, nil
}

// PathChoices are what was chosen for the paths of a session that the person may view.
func (s *Service) PathChoices(ctx context.Context, id core.SessionID) (core.PathChoices, error) {
	return s.store.PathChoices(ctx, id)
}

// CancelPublish ends an attempt before anything of it was sent, or while it waits for GitHub. Who asked for
// it may, and whoever may cancel a turn of the session, an administrator on the record.
func (s *Service) CancelPublish(ctx context.Context, user core.User, id core.SessionID, pub core.PublicationID) error {
	err := s.mayCancel(ctx, user, id, "publish_cancel")
	if core.CodeOf(err) == codeNotOwner {
		err = s.mayCancelOwn(ctx, user, id, pub)
	}
	if err != nil {
		return err
	}
	return s.store.CancelPublication(ctx, id, pub)
}

func (s *Service) mayCancelOwn(ctx context.Context, user core.User, id core.SessionID, pub core.PublicationID) error {
	p, err := s.store.Publication(ctx, id, pub)
	if err == nil && p.RequestedBy != user.ID {
		err = core.Fail(core.Forbidden, codeNotOwner, "Only the session's owner and who asked for the publish can cancel it.")
	}
	return err
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
