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

// MaxRepositories bounds what one search answers, and PageOfRepositories is what GitHub gives at once.
const (
	MaxRepositories    = 30
	PageOfRepositories = 100
)

// Installations lists the accounts on which the person can reach the App, newest answer at most
// 60 s old. With fixtures enabled, the fixture installation is the last.
func (s *Service) Installations(ctx context.Context, user core.User) (core.Accounts, error) {
	all, ok := s.accounts.get(user.ID)
	if !ok {
		err := s.withToken(ctx, user.ID, func(t core.UserToken) (err error) {
			all, err = s.github.Installations(ctx, t)
			return err
		})
		if err != nil {
			return core.Accounts{}, err
		}
		s.accounts.put(user.ID, all)
	}
	if s.fixtures != nil {
		all.Installations = append(slices.Clip(all.Installations), core.Installation{
			ID: core.FixtureInstallation, Account: "fixtures", AccountType: "Fixtures", AllRepos: true,
		})
	}
	return all, nil
}

// Refresh forgets what was remembered of the person's view of GitHub.
func (s *Service) Refresh(user core.User) { s.forgetUser(user.ID) }

// Found is what a search of repositories answers.
type Found struct {
	Repositories []core.Repository // at most MaxRepositories, the best match first
	More         int               // how many more match
	Unread       bool              // the account has more than one page and only the first was looked at
}

// SearchRepositories finds those whose name contains query. A query with a slash is compared with
// owner/name. Without a query only the first page of a long list is read, unless whole: that is one
// request where the list may be twenty.
func (s *Service) SearchRepositories(ctx context.Context, user core.User, id core.InstallationID, query string, whole bool) (Found, error) {
	query = strings.ToLower(strings.TrimSpace(query))
	var found Found
	all, known := s.repositories.get(listKey{user.ID, id})
	switch {
	case known:
	case query == "" && !whole && id != core.FixtureInstallation:
		p, err := s.page(ctx, user.ID, id, 1)
		if err != nil {
			return Found{}, err
		}
		all, found.Unread = p.Repositories, p.Last > 1
		if found.Unread {
			found.More = p.Total - len(all)
		}
	default:
		var err error
		if all, err = s.listNow(ctx, user.ID, id); err != nil {
			return Found{}, err
		}
	}
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
		found.Repositories = append(found.Repositories, h.Repository)
	}
	found.More += len(hits) - len(shown)
	return found, nil
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
	return s.listed(ctx, repositoryKey{listKey{user.ID, id}, repo})
}

// RepositoryNamed is Repository by its full name owner/name, without regard to case.
func (s *Service) RepositoryNamed(ctx context.Context, user core.User, id core.InstallationID, fullName string) (core.Repository, error) {
	list, known := s.repositories.get(listKey{user.ID, id})
	if !known {
		var err error
		if list, err = s.listNow(ctx, user.ID, id); err != nil {
			return core.Repository{}, err
		}
	}
	for _, r := range list {
		if strings.EqualFold(r.FullName(), strings.TrimSpace(fullName)) {
			return r, nil
		}
	}
	return core.Repository{}, core.NotFoundError()
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

// listed is the repository as GitHub lists it for the person under the installation, at most 60 s old.
func (s *Service) listed(ctx context.Context, key repositoryKey) (core.Repository, error) {
	if r, ok := s.located.get(key); ok {
		return r, nil
	}
	if list, ok := s.repositories.get(key.listKey); ok {
		return s.noted(key, list)
	}
	return s.locate(ctx, key)
}

// locate asks GitHub now whether it lists the repository. It looks first on the page where it was the
// last time, so that a long list costs one request and not twenty.
func (s *Service) locate(ctx context.Context, key repositoryKey) (core.Repository, error) {
	if key.installation == core.FixtureInstallation {
		list, err := s.listNow(ctx, key.user, key.installation)
		if err != nil {
			return core.Repository{}, err
		}
		return find(list, key.repository)
	}
	first, ok := s.pages.get(key)
	if !ok {
		first = 1
	}
	p, err := s.page(ctx, key.user, key.installation, first)
	if err != nil {
		return core.Repository{}, err
	}
	r, err := find(p.Repositories, key.repository)
	if err != nil && (first > 1 || p.Last > 1) {
		list, err := s.listNow(ctx, key.user, key.installation)
		if err != nil {
			return core.Repository{}, err
		}
		return s.noted(key, list)
	}
	if err != nil {
		return core.Repository{}, err
	}
	s.located.put(key, r)
	s.pages.put(key, first)
	return r, nil
}

// noted finds a repository in a whole list and remembers on which page it is.
func (s *Service) noted(key repositoryKey, list []core.Repository) (core.Repository, error) {
	i := slices.IndexFunc(list, func(r core.Repository) bool { return r.ID == key.repository })
	if i < 0 {
		return core.Repository{}, core.NotFoundError()
	}
	s.located.put(key, list[i])
	s.pages.put(key, i/PageOfRepositories+1)
	return list[i], nil
}

// page asks for one page of a list; one that is the whole list is remembered as that.
func (s *Service) page(ctx context.Context, user core.UserID, id core.InstallationID, number int) (core.RepositoryPage, error) {
	var p core.RepositoryPage
	err := s.withToken(ctx, user, func(t core.UserToken) (err error) {
		p, err = s.github.RepositoryPage(ctx, t, id, number)
		return err
	})
	if err == nil && number == 1 && p.Last == 1 {
		s.repositories.put(listKey{user, id}, p.Repositories)
	}
	return p, err
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
