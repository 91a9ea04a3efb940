package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"agent-sandboxing/core"
)

// names bound what stands in the headers, in bytes.
const maxName = 100

// payload is the little that we read of any event.
type payload struct {
	Action       string `json:"action"`
	Installation *struct {
		ID int64 `json:"id"`
	} `json:"installation"`
	Repository *struct {
		ID int64 `json:"id"`
	} `json:"repository"`
	Sender *struct {
		ID int64 `json:"id"`
	} `json:"sender"`
	PullRequest *struct {
		Head struct {
			Ref  string `json:"ref"`
			Repo *struct {
				ID int64 `json:"id"`
			} `json:"repo"`
		} `json:"head"`
	} `json:"pull_request"`
	Ref string `json:"ref"` // of a push
}

// read finds out what a delivery is about. An event that is none of ours is recorded and makes
// nothing stale.
func read(q Request, body []byte) (core.Delivery, error) {
	if !named(q.GUID) || !named(q.Event) {
		return core.Delivery{}, errors.New("no usable delivery id or event name")
	}
	var p payload
	if err := json.Unmarshal(body, &p); err != nil {
		return core.Delivery{}, fmt.Errorf("body: %w", err)
	}
	if len(p.Action) > maxName {
		return core.Delivery{}, errors.New("no usable action")
	}
	d := core.Delivery{GUID: q.GUID, Event: q.Event, Action: p.Action}
	if p.Installation != nil {
		d.Installation = core.InstallationID(p.Installation.ID)
	}
	if p.Repository != nil {
		d.Repository = core.RepositoryID(p.Repository.ID)
	}
	d.Stale = p.stale(&d)
	return d, nil
}

// stale is the table of events and their effects.
func (p payload) stale(d *core.Delivery) core.Stale {
	switch d.Event {
	case "installation", "installation_repositories":
		return core.StaleInstallation
	case "installation_target":
		return core.StaleAccount
	case "github_app_authorization":
		if p.Action != "revoked" || p.Sender == nil {
			return core.StaleNothing
		}
		d.Person = core.GitHubUserID(p.Sender.ID)
		return core.StalePerson
	case "repository":
		switch p.Action {
		case "renamed", "transferred", "archived", "unarchived", "deleted", "privatized", "publicized":
			return core.StaleRepository
		}
	case "pull_request":
		if p.PullRequest == nil || p.PullRequest.Head.Repo == nil || p.PullRequest.Head.Repo.ID != int64(d.Repository) {
			return core.StaleNothing // of a fork
		}
		return ofSession(d, p.PullRequest.Head.Ref)
	case "push":
		branch, _ := strings.CutPrefix(p.Ref, "refs/heads/")
		return ofSession(d, branch)
	}
	return core.StaleNothing
}

// ofSession finds the session whose branch it is.
func ofSession(d *core.Delivery, branch string) core.Stale {
	name, ok := strings.CutPrefix(branch, "agent/")
	if !ok {
		return core.StaleNothing
	}
	id, err := core.ParseID[core.SessionID](name)
	if err != nil {
		return core.StaleNothing
	}
	d.Session = id
	return core.StalePullRequest
}

func named(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}
