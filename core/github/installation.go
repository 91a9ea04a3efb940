package github

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	gh "github.com/google/go-github/v62/github"

	"agent-sandboxing/core"
)

// installation reads GitHub's answer; false for one of an enterprise, which owns no repository.
func (b Bases) installation(in *gh.Installation) (core.Installation, bool) {
	if in.GetID() <= 0 || !validName(in.GetAccount().GetLogin()) {
		return core.Installation{}, false
	}
	i := core.Installation{
		ID: core.InstallationID(in.GetID()), Account: in.GetAccount().GetLogin(), AccountID: in.GetAccount().GetID(),
		AccountType: in.GetAccount().GetType(), AllRepos: in.GetRepositorySelection() == "all", Suspended: in.SuspendedAt != nil,
		Missing: missing(map[string]string{
			"metadata": in.GetPermissions().GetMetadata(), "contents": in.GetPermissions().GetContents(), "pull_requests": in.GetPermissions().GetPullRequests(),
		}),
	}
	if strings.HasPrefix(in.GetHTMLURL(), b.Web+"/") {
		i.SettingsURL = in.GetHTMLURL()
	}
	return i, true
}

// missing names what sessions need and was not given, as name:level.
func missing(given map[string]string) []string {
	needed, err := permissionsFor(core.TokenPublish)
	if err != nil {
		return nil // a purpose of ours has permissions
	}
	var lacks []string
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		if have := given[name]; have != "write" && have != needed[name] {
			lacks = append(lacks, name+":"+needed[name])
		}
	}
	return lacks
}

// Installation reads one by id, NotFound when the App is not installed there any more.
func (a *App) Installation(ctx context.Context, id core.InstallationID) (core.Installation, error) {
	client, err := a.asApp()
	if err != nil {
		return core.Installation{}, err
	}
	in, _, err := client.Apps.GetInstallation(ctx, int64(id))
	if err != nil {
		return core.Installation{}, classify(ctx, err, byApp, a.now())
	}
	i, ok := a.bases.installation(in)
	if !ok || i.ID != id {
		return core.Installation{}, unavailable().Because(fmt.Errorf("asked for installation %d, got %d", id, in.GetID()))
	}
	return i, nil
}

// Repository reads a repository by its id, with a token of its own that is ended afterwards: its name
// and state now, without anybody's permissions. The codes of a mint.
func (a *App) Repository(ctx context.Context, repo core.Repository) (core.Repository, error) {
	token, err := a.Mint(ctx, repo, core.TokenRead)
	if err != nil {
		return core.Repository{}, err
	}
	defer a.Revoke(ctx, token)
	client, err := newClient(a.http, a.bases, token.Value)
	if err != nil {
		return core.Repository{}, err
	}
	r, _, err := client.Repositories.GetByID(ctx, int64(repo.ID))
	if err != nil {
		return core.Repository{}, classify(ctx, err, byInstallation, a.now())
	}
	now, err := repository(r)
	if err == nil && now.ID != repo.ID {
		err = fmt.Errorf("asked for repository %d, got %d", repo.ID, now.ID)
	}
	if err != nil {
		return core.Repository{}, unavailable().Because(err)
	}
	now.InstallationID, now.CanPull, now.CanPush = repo.InstallationID, false, false
	return now, nil
}

// maxHooks bounds how many attempts to deliver are looked through.
const maxHooks = 2000

// HookDeliveries lists GitHub's attempts to deliver to our webhook since a time, the newest first.
func (a *App) HookDeliveries(ctx context.Context, since time.Time) ([]core.DeliveryAttempt, error) {
	client, err := a.asApp()
	if err != nil {
		return nil, err
	}
	var all []core.DeliveryAttempt
	for cursor := ""; len(all) < maxHooks; {
		list, resp, err := client.Apps.ListHookDeliveries(ctx, &gh.ListCursorOptions{PerPage: pageSize, Cursor: cursor})
		if err != nil {
			return nil, classify(ctx, err, byApp, a.now())
		}
		for _, d := range list {
			at := d.GetDeliveredAt().Time
			if at.Before(since) {
				return all, nil
			}
			code := d.GetStatusCode()
			all = append(all, core.DeliveryAttempt{ID: d.GetID(), GUID: d.GetGUID(), OK: code >= 200 && code < 300, At: at})
		}
		if cursor = resp.Cursor; cursor == "" || len(list) == 0 {
			return all, nil
		}
	}
	return all, nil
}

// Redeliver asks GitHub to deliver once more.
func (a *App) Redeliver(ctx context.Context, id int64) error {
	client, err := a.asApp()
	if err != nil {
		return err
	}
	req, err := client.NewRequest(http.MethodPost, fmt.Sprintf("app/hook/deliveries/%d/attempts", id), nil)
	if err != nil {
		return fmt.Errorf("ask for a delivery: %w", err)
	}
	_, err = client.Do(ctx, req, nil)
	if _, accepted := errors.AsType[*gh.AcceptedError](err); accepted {
		return nil
	}
	return classify(ctx, err, byApp, a.now())
}
