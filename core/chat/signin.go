package chat

import (
	"context"
	"fmt"
	"time"

	"agent-sandboxing/core"
)

// refreshAhead is how long before its end an access token is renewed.
const refreshAhead = 5 * time.Minute

// SignInURL is where a person is sent to prove who they are. State and verifier belong to one
// attempt, which the caller keeps in the browser's pre-login session.
func (s *Service) SignInURL(state, verifier string) string {
	return s.github.SignInURL(state, verifier)
}

// SignIn turns the code that GitHub sent back into a login. Forbidden access_denied or
// access_not_configured when the person may not be here; nothing is kept of them then.
func (s *Service) SignIn(ctx context.Context, code, verifier string) (core.Login, error) {
	token, err := s.github.Exchange(ctx, code, verifier)
	if err != nil {
		return core.Login{}, fmt.Errorf("exchange sign-in code: %w", err)
	}
	person, err := s.github.Person(ctx, token)
	if err != nil {
		return core.Login{}, fmt.Errorf("read who signed in: %w", err)
	}
	if !s.gate.byLogin(person.Login) {
		if len(s.gate.AllowedOrgs) == 0 {
			return core.Login{}, s.gate.refusal(person.Login)
		}
		list, err := s.github.Installations(ctx, token)
		if err != nil {
			return core.Login{}, fmt.Errorf("list installations of who signed in: %w", err)
		}
		if !s.gate.byInstallation(list) {
			return core.Login{}, s.gate.refusal(person.Login)
		}
	}
	user, err := s.store.UpsertUser(ctx, person, s.gate.role(person.Login))
	if err != nil {
		return core.Login{}, err
	}
	if err := s.store.SaveUserToken(ctx, user.ID, token); err != nil {
		return core.Login{}, err
	}
	s.forgetUser(user.ID)
	return s.store.CreateLogin(ctx, user.ID)
}

// Login returns the person behind a live login, and whether they still may be here.
// Unauthenticated signed_out when the login has ended.
func (s *Service) Login(ctx context.Context, id core.LoginID) (core.Login, core.User, error) {
	login, user, err := s.store.Login(ctx, id)
	if err != nil {
		return core.Login{}, core.User{}, err
	}
	user.Role = s.gate.role(user.Login)
	if s.gate.byLogin(user.Login) {
		return login, user, nil
	}
	if len(s.gate.AllowedOrgs) == 0 {
		return core.Login{}, core.User{}, s.gate.refusal(user.Login)
	}
	list, err := s.Installations(ctx, user)
	if err != nil {
		return core.Login{}, core.User{}, err
	}
	if !s.gate.byInstallation(list) {
		return core.Login{}, core.User{}, s.gate.refusal(user.Login)
	}
	return login, user, nil
}

// SignOut ends one login. The person's GitHub token stays for their other browsers and their
// running turns.
func (s *Service) SignOut(ctx context.Context, login core.LoginID) error {
	return s.store.EndLogin(ctx, login)
}

// withToken calls use with the person's token, renewing it when it is about to end, and once more
// when GitHub refuses it. Unauthenticated reauth_required when nothing helps.
func (s *Service) withToken(ctx context.Context, user core.UserID, use func(core.UserToken) error) error {
	token, err := s.store.UserToken(ctx, user)
	if err != nil {
		return err
	}
	if !token.ExpiresAt.IsZero() && time.Until(token.ExpiresAt) < refreshAhead {
		if token, err = s.refresh(ctx, user, token); err != nil {
			return err
		}
	}
	err = use(token)
	if core.CodeOf(err) != codeReauth || token.Refresh == "" {
		return err
	}
	if token, err = s.refresh(ctx, user, token); err != nil {
		return err
	}
	return use(token)
}

const codeReauth = "reauth_required"

func (s *Service) refresh(ctx context.Context, user core.UserID, token core.UserToken) (core.UserToken, error) {
	if token.Refresh == "" {
		return core.UserToken{}, core.Fail(core.Unauthenticated, codeReauth,
			"Your GitHub sign-in has ended. Sign in again to go on.")
	}
	// A rotated pair must reach the table even when this request is cut: GitHub has already ended
	// the old one.
	keep, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	fresh, err := s.store.RefreshUserToken(keep, user, token.Version, func(t core.UserToken) (core.UserToken, error) {
		return s.github.Refresh(keep, t)
	})
	if err != nil {
		return core.UserToken{}, fmt.Errorf("refresh user token: %w", err)
	}
	return fresh, nil
}

// forgetUser drops what was remembered of the person's view of GitHub.
func (s *Service) forgetUser(id core.UserID) {
	s.installations.forget(func(k core.UserID) bool { return k == id })
	s.repositories.forget(func(k listKey) bool { return k.user == id })
}
