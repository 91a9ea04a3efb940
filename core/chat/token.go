package chat

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"agent-sandboxing/core"
)

// refreshAhead is how long before its end an access token is renewed.
const refreshAhead = 5 * time.Minute

const (
	// maxRenewals is how many people's tokens are renewed at once: each holds a connection of the
	// database until GitHub has answered.
	maxRenewals = 4
	// renewalWait is how long a renewal waits for its turn.
	renewalWait = 5 * time.Second
)

// renewals is the renewals under way: one for all who ask for the same token, and few in all.
type renewals struct {
	flights singleflight.Group
	slots   chan struct{}
}

const codeReauth = "reauth_required"

// rotated holds pairs that GitHub gave out and the database did not take: the old ones have ended, so
// these are the only ones that work.
type rotated struct {
	mu    sync.Mutex
	pairs map[core.UserID]pair
}

// pair is a token and the version that it replaces.
type pair struct {
	replaces int64
	token    core.UserToken
}

func (r *rotated) keep(id core.UserID, p pair) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pairs[id] = p
}

// of is the pair that replaces a version.
func (r *rotated) of(id core.UserID, version int64) (core.UserToken, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.pairs[id]
	return p.token, ok && p.replaces == version
}

func (r *rotated) drop(id core.UserID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pairs, id)
}

// withToken calls use with the person's token, renewing it when it is about to end, and once more
// when GitHub refuses it. Unauthenticated reauth_required when nothing helps.
func (s *Service) withToken(ctx context.Context, user core.UserID, use func(core.UserToken) error) error {
	token, err := s.store.UserToken(ctx, user)
	if err != nil {
		return err
	}
	_, unsaved := s.rotated.of(user, token.Version)
	if unsaved || !token.ExpiresAt.IsZero() && time.Until(token.ExpiresAt) < refreshAhead {
		if token, err = s.refresh(ctx, user, token); err != nil {
			return err
		}
	}
	err = use(token)
	if core.CodeOf(err) != codeReauth {
		return err
	}
	if token, err = s.refresh(ctx, user, token); err != nil {
		return err
	}
	return use(token)
}

// refresh renews a token, once for all who ask. Unavailable github_unavailable when too many others
// wait for GitHub.
func (s *Service) refresh(ctx context.Context, user core.UserID, token core.UserToken) (core.UserToken, error) {
	fresh, err, _ := s.renewals.flights.Do(fmt.Sprintf("%s %d", user, token.Version), func() (any, error) {
		select {
		case s.renewals.slots <- struct{}{}:
			defer func() { <-s.renewals.slots }()
		case <-time.After(renewalWait):
			return core.UserToken{}, core.Fail(core.Unavailable, "github_unavailable",
				"GitHub is slow to renew sign-ins. Nothing was lost: try again in a minute.")
		}
		return s.renew(ctx, user, token)
	})
	return fresh.(core.UserToken), err
}

// renew renews a token. One that GitHub renews no more is forgotten, so that it is not asked again.
func (s *Service) renew(ctx context.Context, user core.UserID, token core.UserToken) (core.UserToken, error) {
	// A rotated pair must reach the table even when this request is cut: GitHub has already ended
	// the old one.
	keep, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	if token.Refresh == "" {
		return core.UserToken{}, errors.Join(core.Fail(core.Unauthenticated, codeReauth,
			"Your GitHub sign-in has ended. Sign in again to go on."), s.store.DropUserToken(keep, user, token.Version))
	}
	var fresh core.UserToken
	stored, err := s.store.RefreshUserToken(keep, user, token.Version, func(t core.UserToken) (core.UserToken, error) {
		if kept, ok := s.rotated.of(user, t.Version); ok {
			return kept, nil
		}
		var err error
		fresh, err = s.github.Refresh(keep, t)
		return fresh, err
	})
	switch {
	case err == nil:
		s.rotated.drop(user)
		return stored, nil
	case fresh.Access != "":
		// GitHub has rotated and the table does not know: the next request tries to write it again.
		s.rotated.keep(user, pair{replaces: token.Version, token: fresh})
	case core.CodeOf(err) == codeReauth:
		err = errors.Join(err, s.store.DropUserToken(keep, user, token.Version))
	}
	return core.UserToken{}, fmt.Errorf("refresh user token: %w", err)
}

// Confirm asks GitHub whether the person's token works. When it does not, it is forgotten and the
// person signed out everywhere: they took their access back on GitHub.
func (s *Service) Confirm(ctx context.Context, user core.UserID) error {
	err := s.withToken(ctx, user, func(t core.UserToken) error {
		_, err := s.github.Person(ctx, t)
		return err
	})
	if core.CodeOf(err) != codeReauth {
		return err
	}
	s.forgetUser(user)
	return s.store.Disconnected(ctx, user, "")
}

// Disconnect takes back on GitHub what the person gave to the App, forgets the token and signs them
// out everywhere. When GitHub does not answer, nothing is changed.
func (s *Service) Disconnect(ctx context.Context, user core.User) error {
	err := s.withToken(ctx, user.ID, func(t core.UserToken) error { return s.github.Disconnect(ctx, t) })
	if err != nil && core.CodeOf(err) != codeReauth { // without a token there is nothing to take back
		return err
	}
	s.forgetUser(user.ID)
	return s.store.Disconnected(ctx, user.ID, user.ID)
}

// forgetUser drops what was remembered of the person's view of GitHub, and of an older sign-in.
func (s *Service) forgetUser(id core.UserID) {
	s.rotated.drop(id)
	s.accounts.forget(func(k core.UserID) bool { return k == id })
	s.repositories.forget(func(k listKey) bool { return k.user == id })
	s.located.forget(func(k repositoryKey) bool { return k.user == id })
	s.branches.forget(func(k repositoryKey) bool { return k.user == id })
}

// AccessChanged drops what was remembered of everybody's view of an installation, 0 for all: GitHub
// said that something has changed there.
func (s *Service) AccessChanged(id core.InstallationID) {
	s.accounts.forget(func(core.UserID) bool { return true })
	s.repositories.forget(func(k listKey) bool { return id == 0 || k.installation == id })
	s.located.forget(func(k repositoryKey) bool { return id == 0 || k.installation == id })
}
