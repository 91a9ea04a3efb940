package chat

import (
	"context"
	"time"

	"agent-sandboxing/core"
)

// Rights is what one person may do with one session.
type Rights struct {
	Person core.UserID
	Owner  bool
	Admin  bool
	Push   bool // as of at most 60 s ago; Publish asks again
}

// MayCancel says whether the person may cancel a turn and stop the sandbox.
func (r Rights) MayCancel() bool { return r.Owner || r.Admin }

// MayCancelPublish says whether the person may cancel an attempt: who asked for it may, too.
func (r Rights) MayCancelPublish(p core.Publication) bool {
	return r.MayCancel() || p.RequestedBy != "" && p.RequestedBy == r.Person
}

// MayPublish says whether to offer the publish button.
func (r Rights) MayPublish() bool { return r.Push }

// Open is the access rule: it returns the session when the person may view it. Anyone for whom
// GitHub lists the repository under the installation may, and so may an administrator, whose look
// is written down under action, as long as GitHub knows them. Everyone else gets the answer of a session that does not exist;
// only its owner, who knows it anyway, is told that GitHub has taken the access away.
func (s *Service) Open(ctx context.Context, user core.User, id core.SessionID, action string) (core.ChatSession, Rights, error) {
	session, err := s.store.Session(ctx, id)
	if err != nil {
		return core.ChatSession{}, Rights{}, err
	}
	rights := Rights{Person: user.ID, Owner: session.OwnerID == user.ID, Admin: user.Role == core.Admin}
	repo, err := s.seen(ctx, user, session)
	if err == nil {
		rights.Push = mayPush(repo) == nil
		err = s.renamed(ctx, &session, repo)
		return session, rights, err
	}
	if rights.Admin && core.CodeOf(err) != codeReauth {
		if err := s.audit(ctx, user, id, action); err != nil {
			return core.ChatSession{}, Rights{}, err
		}
		return session, rights, nil
	}
	if !notListed(err) {
		return core.ChatSession{}, Rights{}, err
	}
	if rights.Owner {
		return core.ChatSession{}, Rights{}, s.lost(ctx, user.ID, session.Repository, err)
	}
	return core.ChatSession{}, Rights{}, core.NotFoundError()
}

// renamed keeps the name that GitHub lists a session's repository under now.
func (s *Service) renamed(ctx context.Context, session *core.ChatSession, listed core.Repository) error {
	if session.Repository.FullName() == listed.FullName() {
		return nil
	}
	session.Repository = listed
	return s.store.SaveRepository(ctx, listed, time.Time{})
}

// seen is the session's repository as GitHub lists it for the person.
func (s *Service) seen(ctx context.Context, user core.User, session core.ChatSession) (core.Repository, error) {
	if session.Repository.IsFixture() {
		// A fixture has no people of its own: it is its owner's.
		if session.OwnerID != user.ID || s.fixtures == nil {
			return core.Repository{}, core.NotFoundError()
		}
		return session.Repository, nil
	}
	return s.listed(ctx, repositoryKey{listKey{user.ID, session.Repository.InstallationID}, session.Repository.ID})
}

// lost says to its owner why GitHub does not list a session's repository any more. The session is kept.
func (s *Service) lost(ctx context.Context, user core.UserID, repo core.Repository, cause error) error {
	known, err := s.store.Installation(ctx, repo.InstallationID)
	if err == nil && known.Removed {
		return core.Fail(core.Forbidden, "installation_removed",
			"The GitHub App is no longer installed on "+known.Account+". The session is kept; when its owner has installed it again, start a new session there.").Because(cause)
	}
	seen, err := s.permissions(ctx, user, repo)
	switch {
	case err == nil && seen.CanPull:
		return core.Fail(core.Forbidden, "repository_not_selected",
			"The GitHub App may not reach "+seen.FullName()+" any more. The session is kept; ask the owner of "+seen.Owner+" to add the repository to the installation, then open it again.").Because(cause)
	case err == nil, notListed(err):
		return core.Fail(core.Forbidden, "repository_access_lost",
			"You do not have access to "+repo.FullName()+" on GitHub any more. The session is kept; ask for access and open it again.").Because(cause)
	}
	return err
}

// own is Open for what only the owner may do. Somebody who may view the session is told so.
func (s *Service) own(ctx context.Context, user core.User, id core.SessionID) (core.ChatSession, Rights, error) {
	session, rights, err := s.Open(ctx, user, id, "session_write_refused")
	if err != nil {
		return core.ChatSession{}, Rights{}, err
	}
	if !rights.Owner {
		return core.ChatSession{}, Rights{}, notOwner()
	}
	return session, rights, nil
}

// codeNotOwner is of what only the session's owner may do.
const codeNotOwner = "not_owner"

func notOwner() error {
	return core.Fail(core.Forbidden, codeNotOwner, "Only the person who started this session may do that. If you may push to its repository, start a session of your own to go on from here.")
}

// MayPush asks GitHub now, with the person's own token, whether they may push to the repository and
// whether it is still under its installation, and returns it as it is named now. Forbidden push_required,
// repository_access_lost, repository_not_selected or installation_removed, or Conflict repository_archived.
func (s *Service) MayPush(ctx context.Context, user core.UserID, repo core.Repository) (core.Repository, error) {
	now, err := s.pushable(ctx, user, repo.InstallationID, repo.ID)
	if notListed(err) {
		return core.Repository{}, s.lost(ctx, user, repo, err)
	}
	return now, err
}

func (s *Service) pushable(ctx context.Context, user core.UserID, installation core.InstallationID, id core.RepositoryID) (core.Repository, error) {
	repo, err := s.locate(ctx, repositoryKey{listKey{user, installation}, id})
	if err != nil {
		return core.Repository{}, err
	}
	if !repo.IsFixture() {
		if repo, err = s.permissions(ctx, user, repo); err != nil {
			return core.Repository{}, err
		}
	}
	return repo, mayPush(repo)
}

// permissions reads the repository alone: the list may be a little behind, this answer is not.
func (s *Service) permissions(ctx context.Context, user core.UserID, listed core.Repository) (core.Repository, error) {
	var repo core.Repository
	err := s.withToken(ctx, user, func(t core.UserToken) (err error) {
		repo, err = s.github.Repository(ctx, t, listed.ID)
		return err
	})
	if err != nil {
		return core.Repository{}, err
	}
	repo.InstallationID = listed.InstallationID
	return repo, nil
}

func mayPush(repo core.Repository) error {
	switch {
	case repo.Archived:
		return core.Fail(core.Conflict, "repository_archived",
			repo.FullName()+" is archived on GitHub and cannot be changed. Unarchive it or choose another repository.")
	case !repo.CanPush:
		return core.Fail(core.Forbidden, "push_required",
			"You may read "+repo.FullName()+" but not push to it. Ask for write access on GitHub.")
	}
	return nil
}

// audit writes an administrator's look down, once a minute for each session and action.
func (s *Service) audit(ctx context.Context, user core.User, id core.SessionID, action string) error {
	key := auditKey{user.ID, id, action}
	if _, ok := s.audited.get(key); ok {
		return nil
	}
	if err := s.store.Audit(ctx, core.AuditEntry{UserID: user.ID, Action: action, Session: id}); err != nil {
		return err
	}
	s.audited.put(key, true)
	return nil
}
