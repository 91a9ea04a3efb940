package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	gh "github.com/google/go-github/v62/github"
	"golang.org/x/sync/errgroup"

	"agent-sandboxing/core"
)

// MaxRepositories and MaxInstallations bound the lists; what lies beyond is left out.
const (
	MaxRepositories  = 10_000
	MaxInstallations = 500
)

// Installations lists those in which the person reaches anything. It proves reach, not ownership.
func (u *User) Installations(ctx context.Context, t core.UserToken) (core.Accounts, error) {
	client, err := u.client(t)
	if err != nil {
		return core.Accounts{}, err
	}
	var all core.Accounts
	err = eachPage(MaxInstallations, func(o gh.ListOptions) (int, *gh.Response, error) {
		list, resp, err := client.Apps.ListUserInstallations(ctx, &o)
		if err != nil {
			return 0, resp, classify(ctx, err, byPerson, u.now())
		}
		for _, in := range list {
			if i, ok := u.bases.installation(in); ok {
				all.Installations = append(all.Installations, i)
			}
		}
		all.Hidden = max(all.Hidden, hidden(resp.Header.Get("X-GitHub-SSO")))
		return len(list), resp, nil
	})
	return all, err
}

// hidden counts the organizations of `partial-results; organizations=1,2`.
func hidden(sso string) int {
	kind, rest, _ := strings.Cut(sso, ";")
	ids, ok := strings.CutPrefix(strings.TrimSpace(rest), "organizations=")
	if strings.TrimSpace(kind) != "partial-results" || !ok || ids == "" {
		return 0
	}
	return strings.Count(ids, ",") + 1
}

// RepositoryPage is one request's worth of what both the installation and the person reach, with the
// person's permissions. Pages count from 1.
func (u *User) RepositoryPage(ctx context.Context, t core.UserToken, id core.InstallationID, page int) (core.RepositoryPage, error) {
	client, err := u.client(t)
	if err != nil {
		return core.RepositoryPage{}, err
	}
	list, resp, err := client.Apps.ListUserRepos(ctx, int64(id), &gh.ListOptions{Page: page, PerPage: pageSize})
	if err != nil {
		return core.RepositoryPage{}, classify(ctx, err, byPerson, u.now())
	}
	if list == nil {
		return core.RepositoryPage{}, unavailable().Because(errors.New("no list of repositories in the answer"))
	}
	// Of the links only the number is believed: their address is never followed.
	p := core.RepositoryPage{Total: list.GetTotalCount(), Last: min(max(page, resp.LastPage, (list.GetTotalCount()+pageSize-1)/pageSize), MaxRepositories/pageSize)}
	for _, r := range list.Repositories {
		repo, err := repository(r)
		if err != nil {
			return core.RepositoryPage{}, unavailable().Because(err)
		}
		repo.InstallationID = id
		p.Repositories = append(p.Repositories, repo)
	}
	return p, nil
}

// Repositories is every page, in order, the first one alone and then several at a time.
func (u *User) Repositories(ctx context.Context, t core.UserToken, id core.InstallationID) ([]core.Repository, error) {
	first, err := u.RepositoryPage(ctx, t, id, 1)
	if err != nil {
		return nil, err
	}
	pages := make([][]core.Repository, first.Last)
	pages[0] = first.Repositories
	err = atOnce(ctx, 2, first.Last, func(ctx context.Context, n int) error {
		p, err := u.RepositoryPage(ctx, t, id, n)
		pages[n-1] = p.Repositories
		return err
	})
	return slices.Concat(pages...), err
}

// atOnce calls get for each number, a few at a time: GitHub takes many requests of one person at once
// for an attack. The first error ends the others.
func atOnce(ctx context.Context, first, last int, get func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(6)
	for n := first; n <= last; n++ {
		group.Go(func() error { return get(ctx, n) })
	}
	return group.Wait()
}

// Repository reads one by id with the person's permissions. GitHub does not say here under which
// installation it is, so InstallationID stays 0 and the caller, who knows it, has to set it; that it
// answers at all does not mean that the App is installed there.
func (u *User) Repository(ctx context.Context, t core.UserToken, id core.RepositoryID) (core.Repository, error) {
	client, err := u.client(t)
	if err != nil {
		return core.Repository{}, err
	}
	r, _, err := client.Repositories.GetByID(ctx, int64(id))
	if err != nil {
		return core.Repository{}, classify(ctx, err, byPerson, u.now())
	}
	repo, err := repository(r)
	if err == nil && repo.ID != id {
		err = fmt.Errorf("asked for repository %d, got %d", id, repo.ID)
	}
	if err != nil {
		return core.Repository{}, unavailable().Because(err)
	}
	return repo, nil
}

// repository believes an answer only when it names one that can exist.
func repository(r *gh.Repository) (core.Repository, error) {
	owner, name := r.GetOwner().GetLogin(), r.GetName()
	if r.GetID() <= 0 || !validName(owner) || !validName(name) {
		return core.Repository{}, errors.New("a repository without id, owner or name")
	}
	may := r.GetPermissions()
	return core.Repository{
		ID: core.RepositoryID(r.GetID()), Owner: owner, Name: name, DefaultBranch: r.GetDefaultBranch(),
		Private: r.GetPrivate(), Archived: r.GetArchived() || r.GetDisabled(), Fork: r.GetFork(),
		Language: r.GetLanguage(), Description: r.GetDescription(), PushedAt: r.GetPushedAt().Time,
		CanPull: may["pull"] || may["push"] || may["admin"], CanPush: may["push"] || may["admin"],
	}, nil
}

// eachPage calls get until GitHub's Link header names no further page or limit rows were seen. Only the
// page number is taken from the link: its address is never followed.
func eachPage(limit int, get func(gh.ListOptions) (int, *gh.Response, error)) error {
	for page, seen := 1, 0; ; {
		n, resp, err := get(gh.ListOptions{Page: page, PerPage: pageSize})
		if err != nil {
			return err
		}
		seen += n
		if seen >= limit || resp == nil || resp.StatusCode != http.StatusOK || resp.NextPage <= page {
			return nil
		}
		page = resp.NextPage
	}
}
