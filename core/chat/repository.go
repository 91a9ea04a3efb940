package chat

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"agent-sandboxing/core"
)

// Fixtures are folders of this machine that stand in for repositories, for tests and the demo.
// Their installation is core.FixtureInstallation and they have one branch.
type Fixtures interface {
	Repositories(ctx context.Context) ([]core.Repository, error)
	Branch(ctx context.Context, repo core.Repository) (core.Branch, error)
}

// Bounds of what one search answers.
const (
	MaxRepositories = 30
	MaxBranches     = 30
)

// Installations lists the accounts on which the person can reach the App, newest answer at most
// 60 s old. With fixtures enabled, the fixture installation is the last.
func (s *Service) Installations(ctx context.Context, user core.User) ([]core.Installation, error) {
	list, ok := s.installations.get(user.ID)
	if !ok {
		err := s.withToken(ctx, user.ID, func(t core.UserToken) (err error) {
			list, err = s.github.Installations(ctx, t)
			return err
		})
		if err != nil {
			return nil, err
		}
		s.installations.put(user.ID, list)
	}
	if s.fixtures != nil {
		list = append(slices.Clip(list), core.Installation{
			ID: core.FixtureInstallation, Account: "fixtures", AccountType: "Fixtures", AllRepos: true,
		})
	}
	return list, nil
}

// Refresh forgets what was remembered of the person's view of GitHub.
func (s *Service) Refresh(user core.User) { s.forgetUser(user.ID) }

// SearchRepositories returns at most MaxRepositories whose name contains query, the best match
// first, and how many more there are. A query with a slash is compared with owner/name.
func (s *Service) SearchRepositories(ctx context.Context, user core.User, id core.InstallationID, query string) (found []core.Repository, more int, err error) {
	all, err := s.listed(ctx, user.ID, id)
	if err != nil {
		return nil, 0, err
	}
	query = strings.ToLower(strings.TrimSpace(query))
	type ranked struct {
		core.Repository
		rank int
	}
	var hits []ranked
	for _, r := range all {
		if rank := matchRank(r, query); rank >= 0 {
			hits = append(hits, ranked{r, rank})
		}
	}
	slices.SortStableFunc(hits, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), b.PushedAt.Compare(a.PushedAt), cmp.Compare(a.Name, b.Name))
	})
	shown := hits[:min(len(hits), MaxRepositories)]
	for _, h := range shown {
		found = append(found, h.Repository)
	}
	return found, len(hits) - len(shown), nil
}

// matchRank is 0 for the exact name, 1 for a prefix, 2 for a part, -1 for no match. Archived ones
// come after all others.
func matchRank(r core.Repository, query string) int {
	name := strings.ToLower(r.Name)
	if strings.Contains(query, "/") {
		name = strings.ToLower(r.FullName())
	}
	rank := -1
	switch {
	case query == "" || name == query:
		rank = 0
	case strings.HasPrefix(name, query):
		rank = 1
	case strings.Contains(name, query):
		rank = 2
	}
	if rank >= 0 && r.Archived {
		rank += 3
	}
	return rank
}

// Repository returns one repository that the person sees under the installation. NotFound else.
func (s *Service) Repository(ctx context.Context, user core.User, id core.InstallationID, repo core.RepositoryID) (core.Repository, error) {
	list, err := s.listed(ctx, user.ID, id)
	if err != nil {
		return core.Repository{}, err
	}
	return find(list, repo)
}

// RepositoryNamed is Repository by its full name owner/name, without regard to case.
func (s *Service) RepositoryNamed(ctx context.Context, user core.User, id core.InstallationID, fullName string) (core.Repository, error) {
	list, err := s.listed(ctx, user.ID, id)
	if err != nil {
		return core.Repository{}, err
	}
	for _, r := range list {
		if strings.EqualFold(r.FullName(), strings.TrimSpace(fullName)) {
			return r, nil
		}
	}
	return core.Repository{}, core.NotFoundError()
}

// Branches returns at most MaxBranches of a repository that the person sees, the default first.
func (s *Service) Branches(ctx context.Context, user core.User, repo core.Repository, query string) ([]core.Branch, error) {
	if repo.IsFixture() {
		b, err := s.fixtureBranch(ctx, repo)
		if err != nil {
			return nil, err
		}
		return []core.Branch{b}, nil
	}
	var list []core.Branch
	err := s.withToken(ctx, user.ID, func(t core.UserToken) (err error) {
		list, err = s.github.Branches(ctx, t, repo, query, MaxBranches)
		return err
	})
	return list, err
}

// ResolveBranch reads the commit that a branch points to now. Invalid branch_not_found, Conflict
// empty_repository.
func (s *Service) ResolveBranch(ctx context.Context, user core.User, repo core.Repository, name string) (core.Branch, error) {
	if repo.IsFixture() {
		return s.fixtureBranch(ctx, repo)
	}
	var branch core.Branch
	err := s.withToken(ctx, user.ID, func(t core.UserToken) (err error) {
		branch, err = s.github.Branch(ctx, t, repo, name)
		return err
	})
	if core.KindOf(err) == core.NotFound {
		return core.Branch{}, core.Fail(core.Invalid, "branch_not_found",
			"The branch "+name+" does not exist in "+repo.FullName()+". Choose another one.").Because(err)
	}
	return branch, err
}

func (s *Service) fixtureBranch(ctx context.Context, repo core.Repository) (core.Branch, error) {
	if s.fixtures == nil {
		return core.Branch{}, core.NotFoundError()
	}
	return s.fixtures.Branch(ctx, repo)
}

// listed is what GitHub lists for the person under the installation, at most 60 s old.
func (s *Service) listed(ctx context.Context, user core.UserID, id core.InstallationID) ([]core.Repository, error) {
	key := listKey{user, id}
	if list, ok := s.repositories.get(key); ok {
		return list, nil
	}
	return s.listNow(ctx, user, id)
}

// listNow asks without the memory and refreshes it.
func (s *Service) listNow(ctx context.Context, user core.UserID, id core.InstallationID) ([]core.Repository, error) {
	if id == core.FixtureInstallation {
		if s.fixtures == nil {
			return nil, core.NotFoundError()
		}
		return s.fixtures.Repositories(ctx)
	}
	var list []core.Repository
	err := s.withToken(ctx, user, func(t core.UserToken) (err error) {
		list, err = s.github.Repositories(ctx, t, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.repositories.put(listKey{user, id}, list)
	return list, nil
}

func find(list []core.Repository, id core.RepositoryID) (core.Repository, error) {
	for _, r := range list {
		if r.ID == id {
			return r, nil
		}
	}
	return core.Repository{}, core.NotFoundError()
}

// notListed says that GitHub's answer means "this person does not see it", and not a failure.
func notListed(err error) bool {
	return core.KindOf(err) == core.NotFound || core.CodeOf(err) == "github_forbidden"
}
