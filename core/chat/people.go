package chat

import (
	"context"
	"strings"

	"agent-sandboxing/core"
)

// MaxPeople is how many the list of people shows.
const MaxPeople = 200

// peopleActions are what the page of people shows of the audit log.
var peopleActions = []string{"user_role", "sign_out_everywhere", "github_disconnected"}

// maxAudit is how many entries the page of people shows.
const maxAudit = 20

// Person is somebody who has signed in.
type Person struct {
	core.UserRow
	Configured bool // an administrator by ADMIN_LOGINS, which no page changes
}

// People is the list of who has signed in and what was done to their access. Administrators only;
// everybody else is NotFound.
func (s *Service) People(ctx context.Context, user core.User, query string) ([]Person, []core.AuditRow, error) {
	if user.Role != core.Admin {
		return nil, nil, core.NotFoundError()
	}
	rows, err := s.store.People(ctx, strings.TrimPrefix(strings.TrimSpace(query), "@"), MaxPeople)
	if err != nil {
		return nil, nil, err
	}
	var people []Person
	for _, r := range rows {
		p := Person{UserRow: r, Configured: s.gate.admin(r.User.Login)}
		if p.Configured {
			p.User.Role = core.Admin
		}
		people = append(people, p)
	}
	audit, err := s.store.AuditOf(ctx, peopleActions, maxAudit)
	return people, audit, err
}

// SetRole makes somebody an administrator or a member. Administrators only. Nobody takes the role from
// themselves, so that one is always left. Conflict role_configured, role_own.
func (s *Service) SetRole(ctx context.Context, user core.User, id core.UserID, role core.UserRole) error {
	whose, err := s.other(ctx, user, id)
	switch {
	case err != nil:
		return err
	case role != core.Admin && role != core.Member:
		return core.Fail(core.Invalid, "role_invalid", "Choose administrator or member.")
	case s.gate.admin(whose.Login):
		return core.Fail(core.Conflict, "role_configured", "@"+whose.Login+" is an administrator by ADMIN_LOGINS. Change that setting and restart the server.")
	case whose.ID == user.ID:
		return core.Fail(core.Conflict, "role_own", "You cannot take the role from yourself. Another administrator can.")
	}
	return s.store.SetRole(ctx, id, role, user.ID, s.gate.admin(user.Login))
}

// SignOutPerson ends every login of somebody. Administrators only.
func (s *Service) SignOutPerson(ctx context.Context, user core.User, id core.UserID) error {
	if _, err := s.other(ctx, user, id); err != nil {
		return err
	}
	_, err := s.store.EndLogins(ctx, id, user.ID)
	return err
}

// other reads who an administrator acts on.
func (s *Service) other(ctx context.Context, user core.User, id core.UserID) (core.User, error) {
	if user.Role != core.Admin {
		return core.User{}, core.NotFoundError()
	}
	return s.store.User(ctx, id)
}

// SignOutEverywhere ends every login of the person.
func (s *Service) SignOutEverywhere(ctx context.Context, user core.User) error {
	_, err := s.store.EndLogins(ctx, user.ID, user.ID)
	return err
}

// Browsers counts where the person is signed in.
func (s *Service) Browsers(ctx context.Context, user core.User) (int, error) {
	return s.store.Browsers(ctx, user.ID)
}
