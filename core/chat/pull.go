package chat

import (
	"context"
	"time"

	"agent-sandboxing/core"
)

// pullWait is how long a page waits for GitHub to say how its pull request stands.
const pullWait = 2 * time.Second

// LookAtPull reads the session's pull request with the person's own token, once a minute and when GitHub has
// said that it changed. What cannot be read stays as it was known: the page shows it all the same.
func (s *Service) LookAtPull(ctx context.Context, user core.User, id core.SessionID) error {
	session, _, err := s.Open(ctx, user, id, "session_view")
	if err != nil {
		return err
	}
	known, err := s.store.PullRequest(ctx, id)
	if err != nil || known == nil || session.Repository.IsFixture() {
		return err
	}
	if seen, ok := s.pulls.get(id); ok && !known.StaleAt.After(seen) {
		return nil
	}
	s.pulls.put(id, known.StaleAt)
	asking, done := context.WithTimeout(ctx, pullWait)
	defer done()
	var now core.PullRequest
	err = s.withToken(asking, user.ID, func(t core.UserToken) (err error) {
		now, err = s.github.PullRequest(asking, t, session.Repository, known.Number)
		return err
	})
	if err != nil {
		s.log.WarnContext(ctx, "the pull request was not read", "session_id", id, "code", core.CodeOf(err), "error", err)
		return nil
	}
	now.StaleAt = known.StaleAt
	return s.store.PullRequestRead(ctx, id, now)
}
