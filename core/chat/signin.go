package chat

import (
	"context"
	"fmt"

	"agent-sandboxing/core"
)

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
		if !s.gate.byInstallation(list.Installations) {
			return core.Login{}, s.gate.refusal(person.Login)
		}
	}
	user, err := s.store.UpsertUser(ctx, person)
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
	if s.gate.admin(user.Login) {
		user.Role = core.Admin
	}
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
	if !s.gate.byInstallation(list.Installations) {
		return core.Login{}, core.User{}, s.gate.refusal(user.Login)
	}
	return login, user, nil
}

// SignOut ends one login. The person's GitHub token stays for their other browsers and their
// running turns.
func (s *Service) SignOut(ctx context.Context, login core.LoginID) error {
	return s.store.EndLogin(ctx, login)
}
