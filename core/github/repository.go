package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	gh "github.com/google/go-github/v62/github"

	"agent-sandboxing/core"
)

// MaxRepositories and MaxInstallations bound the lists; what lies beyond is left out.
const (
	MaxRepositories  = 5000
	MaxInstallations = 500
)

// Installations lists those in which the person reaches anything. It proves reach, not ownership.
func (u *User) Installations(ctx context.Context, t core.UserToken) ([]core.Installation, error) {
	client, err := u.client(t)
	if err != nil {
		return nil, err
	}
	var all []core.Installation
	err = eachPage(MaxInstallations, func(o gh.ListOptions) (int, *gh.Response, error) {
		list, resp, err := client.Apps.ListUserInstallations(ctx, &o)
		if err != nil {
			return 0, resp, classify(ctx, err, byPerson, u.now())
		}
		for _, in := range list {
			if in.GetID() <= 0 || !validName(in.GetAccount().GetLogin()) {
				continue // of an enterprise, which owns no repository
			}
			all = append(all, core.Installation{
				ID: core.InstallationID(in.GetID()), Account: in.GetAccount().GetLogin(), AccountID: in.GetAccount().GetID(),
				AccountType: in.GetAccount().GetType(), AllRepos: in.GetRepositorySelection() == "all", Suspended: in.SuspendedAt != nil,
			})
		}
		return len(list), resp, nil
	})
	return all, err
}

// Repositories lists what both the installation and the person reach, with the person's permissions.
func (u *User) Repositories(ctx context.Context, t core.UserToken, id core.InstallationID) ([]core.Repository, error) {
	client, err := u.client(t)
	if err != nil {
		return nil, err
	}
	var all []core.Repository
	err = eachPage(MaxRepositories, func(o gh.ListOptions) (int, *gh.Response, error) {
		list, resp, err := client.Apps.ListUserRepos(ctx, int64(id), &o)
		if err != nil {
			return 0, resp, classify(ctx, err, byPerson, u.now())
		}
		if list == nil {
			return 0, resp, unavailable().Because(errors.New("no list of repositories in the answer"))
		}
		for _, r := range list.Repositories {
			repo, err := repository(r)
			if err != nil {
				return 0, resp, unavailable().Because(err)
			}
			repo.InstallationID = id
			all = append(all, repo)
		}
		return len(list.Repositories), resp, nil
	})
	return all, err
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
