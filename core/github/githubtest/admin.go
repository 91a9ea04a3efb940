package githubtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Permission is what a person may do with a repository.
type Permission string

const (
	NoPermission Permission = ""
	Pull         Permission = "pull"
	Push         Permission = "push"
	Administer   Permission = "admin"
)

func (p Permission) rank() int {
	return slices.Index([]Permission{NoPermission, Pull, Push, Administer}, p)
}

// Repository describes a repository to add.
type Repository struct {
	Owner, Name   string
	Description   string
	Language      string
	DefaultBranch string // "" means main
	Private       bool
	Archived      bool
	Access        map[string]Permission // by login; the owner, when a person, is an admin
}

// AddUser adds a person who can sign in, and returns their id. An account that is there already keeps its id.
func (s *Server) AddUser(login, name string) (int64, error) {
	return s.addAccount(account{Login: login, Name: name})
}

// AddOrganization adds an account that owns repositories and cannot sign in.
func (s *Server) AddOrganization(login, name string) (int64, error) {
	return s.addAccount(account{Login: login, Name: name, Organization: true})
}

func (s *Server) addAccount(a account) (int64, error) {
	err := s.update(func(st *state) error {
		for _, have := range st.Accounts {
			if strings.EqualFold(have.Login, a.Login) {
				a.ID = have.ID
				return nil
			}
		}
		a.ID = s.nextID()
		st.Accounts = append(st.Accounts, a)
		return nil
	})
	return a.ID, err
}

// AddRepository adds an empty repository and returns its id. A second one of the same name is an error.
func (s *Server) AddRepository(r Repository) (int64, error) {
	if _, ok := s.account(r.Owner); !ok {
		return 0, fmt.Errorf("add repository: no account %q", r.Owner)
	}
	id, err := s.reserveRepository(&r)
	if err != nil {
		return 0, err
	}
	return id, s.register(id, r)
}

// AddRepositoryWith adds a repository with its history. It is there whole or not at all, so a demo
// that was killed while it seeded goes on where it stopped.
func (s *Server) AddRepositoryWith(ctx context.Context, r Repository, commits ...Commit) error {
	if _, ok := s.account(r.Owner); !ok {
		return fmt.Errorf("add repository: no account %q", r.Owner)
	}
	id, err := s.reserveRepository(&r) //nolint:contextcheck // making the folder is not interrupted
	if err != nil {
		return err
	}
	if len(commits) > 0 {
		if err := s.write(ctx, id, r.DefaultBranch, commits); err != nil {
			return err
		}
	}
	return s.register(id, r)
}

// reserveRepository takes an id and makes its bare repository, before anybody can see it.
func (s *Server) reserveRepository(r *Repository) (int64, error) {
	if r.DefaultBranch == "" {
		r.DefaultBranch = "main"
	}
	var id int64
	err := s.update(func(*state) error {
		id = s.nextID()
		return nil
	})
	if err != nil {
		return 0, err
	}
	return id, s.initBare(id, r.DefaultBranch)
}

func (s *Server) register(id int64, r Repository) error {
	return s.update(func(st *state) error {
		if st.named(r.Owner+"/"+r.Name) >= 0 {
			return fmt.Errorf("add repository: %s/%s exists", r.Owner, r.Name)
		}
		access := map[string]Permission{}
		for login, p := range r.Access {
			access[strings.ToLower(login)] = p
		}
		st.Repositories = append(st.Repositories, repository{
			ID: id, Owner: r.Owner, Name: r.Name, Description: r.Description, Language: r.Language,
			DefaultBranch: r.DefaultBranch, Private: r.Private, Archived: r.Archived,
			Access: access, CreatedAt: s.now(), PushedAt: s.now(),
		})
		return nil
	})
}

// HasRepository says whether a repository has that name or had it.
func (s *Server) HasRepository(fullName string) bool {
	_, _, ok := s.repositoryNamed(fullName)
	return ok
}

// HasInstallation says whether the App is installed on an account.
func (s *Server) HasInstallation(account string) bool {
	return slices.ContainsFunc(s.installations(), func(in installation) bool { return strings.EqualFold(in.Account, account) })
}

// SetPermission changes what a person may do with a repository.
func (s *Server) SetPermission(fullName, login string, p Permission) error {
	return s.changeRepository(fullName, func(r *repository) { r.Access[strings.ToLower(login)] = p })
}

// SetPrivate changes who may read a repository.
func (s *Server) SetPrivate(fullName string, private bool) error {
	return s.changeRepository(fullName, func(r *repository) { r.Private = private })
}

// SetArchived makes a repository read-only, or ends that.
func (s *Server) SetArchived(fullName string, archived bool) error {
	return s.changeRepository(fullName, func(r *repository) { r.Archived = archived })
}

// RejectPushes makes every push to a repository fail with a text on the client's standard error, as
// branch rules do ("error: GH006: Protected branch update failed …"); "" ends that.
func (s *Server) RejectPushes(fullName, text string) error {
	r, _, ok := s.repositoryNamed(fullName)
	if !ok {
		return fmt.Errorf("no repository %q", fullName)
	}
	return os.WriteFile(filepath.Join(s.bareDir(r.ID), "rejection"), []byte(text), 0o600)
}

// RenameRepository gives a repository a new name; the old one redirects.
func (s *Server) RenameRepository(fullName, name string) error {
	return s.changeRepository(fullName, func(r *repository) {
		r.FormerNames = append(r.FormerNames, r.fullName())
		r.Name = name
	})
}

func (s *Server) changeRepository(fullName string, change func(*repository)) error {
	return s.update(func(st *state) error {
		i := st.named(fullName)
		if i < 0 {
			return fmt.Errorf("no repository %q", fullName)
		}
		change(&st.Repositories[i])
		return nil
	})
}

// AddInstallation installs the App on an account, for the named repositories or, with none, for all
// that the account has and will have. It returns the installation's id.
func (s *Server) AddInstallation(account string, fullNames ...string) (int64, error) {
	if _, ok := s.account(account); !ok {
		return 0, fmt.Errorf("add installation: no account %q", account)
	}
	var id int64
	err := s.update(func(st *state) error {
		in := installation{Account: account, All: len(fullNames) == 0, Permissions: st.App.Permissions, CreatedAt: s.now()}
		for _, name := range fullNames {
			i := st.named(name)
			if i < 0 {
				return fmt.Errorf("add installation: no repository %q", name)
			}
			in.Repositories = append(in.Repositories, st.Repositories[i].ID)
		}
		for i, have := range st.Installations {
			if strings.EqualFold(have.Account, account) {
				in.ID = have.ID
				st.Installations[i] = in
				id = in.ID
				return nil
			}
		}
		in.ID = s.nextID()
		id = in.ID
		st.Installations = append(st.Installations, in)
		return nil
	})
	return id, err
}

// SetSuspended suspends an installation, or ends that.
func (s *Server) SetSuspended(id int64, suspended bool) error {
	return s.changeInstallation(id, func(in *installation) { in.Suspended = suspended })
}

// SetInstallationPermissions replaces what the account has granted to the App.
func (s *Server) SetInstallationPermissions(id int64, permissions map[string]string) error {
	return s.changeInstallation(id, func(in *installation) { in.Permissions = permissions })
}

func (s *Server) changeInstallation(id int64, change func(*installation)) error {
	return s.update(func(st *state) error {
		i := slices.IndexFunc(st.Installations, func(in installation) bool { return in.ID == id })
		if i < 0 {
			return fmt.Errorf("no installation %d", id)
		}
		change(&st.Installations[i])
		return nil
	})
}

// SelectRepositories narrows an installation to the named repositories.
func (s *Server) SelectRepositories(id int64, fullNames ...string) error {
	var ids []int64
	for _, name := range fullNames {
		r, _, ok := s.repositoryNamed(name)
		if !ok {
			return fmt.Errorf("no repository %q", name)
		}
		ids = append(ids, r.ID)
	}
	return s.changeInstallation(id, func(in *installation) { in.All, in.Repositories = false, ids })
}

// RemoveInstallation uninstalls the App from an account; its tokens end.
func (s *Server) RemoveInstallation(id int64) error {
	return s.update(func(st *state) error {
		st.Installations = slices.DeleteFunc(st.Installations, func(in installation) bool { return in.ID == id })
		st.Tokens = slices.DeleteFunc(st.Tokens, func(t token) bool { return t.Kind == kindInstallation && t.Installation == id })
		return nil
	})
}

// RevokeUser ends every token that a person gave to the App.
func (s *Server) RevokeUser(login string) error {
	return s.update(func(st *state) error {
		st.Tokens = slices.DeleteFunc(st.Tokens, func(t token) bool {
			return strings.EqualFold(t.Login, login) && (t.Kind == kindUser || t.Kind == kindRefresh)
		})
		return nil
	})
}
