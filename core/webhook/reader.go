package webhook

import (
	"context"
	"log/slog"
	"time"

	"agent-sandboxing/core"
)

// Records are what deliveries are about.
type Records interface {
	Stale(ctx context.Context) (core.StaleRows, error)
	Repository(ctx context.Context, id core.RepositoryID) (core.Repository, error)
	SaveInstallation(ctx context.Context, i core.Installation, stale time.Time) error
	InstallationRemoved(ctx context.Context, id core.InstallationID, stale time.Time) error
	SaveRepository(ctx context.Context, r core.Repository, stale time.Time) error
	RepositoryRead(ctx context.Context, id core.RepositoryID, stale time.Time) error
	TokenConfirmed(ctx context.Context, id core.UserID, stale time.Time) error
}

// App asks GitHub as the App.
type App interface {
	// Installation is NotFound when the App is not installed there any more.
	Installation(ctx context.Context, id core.InstallationID) (core.Installation, error)
	// Repository reads one by id, whatever it is called now.
	Repository(ctx context.Context, repo core.Repository) (core.Repository, error)
}

// People knows whose access ended.
type People interface {
	// Confirm asks GitHub whether the person's token works, and signs them out everywhere when it
	// does not.
	Confirm(ctx context.Context, id core.UserID) error
}

// Times of a Reader.
const (
	lookEvery = 2 * time.Second
	restAfter = time.Minute // a failure
)

// Reader asks GitHub about what is stale.
type Reader struct {
	Records Records
	App     App
	People  People
	Log     *slog.Logger
}

// Run reads what is stale until ctx ends. What GitHub does not answer about stays stale.
func (r Reader) Run(ctx context.Context) {
	for {
		wait := lookEvery
		if err := r.Read(ctx); err != nil && ctx.Err() == nil {
			wait = restAfter
			r.Log.LogAttrs(ctx, slog.LevelWarn, "stale_not_read", slog.String("code", core.CodeOf(err)), slog.String("error", err.Error()))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// Read asks once about everything that is stale now; the error is the last of several.
func (r Reader) Read(ctx context.Context) error {
	all, err := r.Records.Stale(ctx)
	if err != nil {
		return err
	}
	note := func(e error) {
		if e != nil {
			err = e
		}
	}
	for id, at := range all.People {
		note(r.person(ctx, id, at))
	}
	for id, at := range all.Installations {
		note(r.installation(ctx, id, at))
	}
	for id, at := range all.Repositories {
		note(r.repository(ctx, id, at))
	}
	return err
}

func (r Reader) person(ctx context.Context, id core.UserID, at time.Time) error {
	if err := r.People.Confirm(ctx, id); err != nil {
		return err
	}
	return r.Records.TokenConfirmed(ctx, id, at)
}

func (r Reader) installation(ctx context.Context, id core.InstallationID, at time.Time) error {
	now, err := r.App.Installation(ctx, id)
	switch {
	case core.KindOf(err) == core.NotFound:
		return r.Records.InstallationRemoved(ctx, id, at)
	case err != nil:
		return err
	}
	return r.Records.SaveInstallation(ctx, now, at)
}

// repository follows a name by its id. One that the App cannot read keeps what was last known: who
// asks about it hears why from GitHub.
func (r Reader) repository(ctx context.Context, id core.RepositoryID, at time.Time) error {
	known, err := r.Records.Repository(ctx, id)
	if err != nil {
		return err
	}
	now, err := r.App.Repository(ctx, known)
	switch kind := core.KindOf(err); {
	case err == nil:
	case kind == core.NotFound, kind == core.Conflict, kind == core.Forbidden:
		return r.Records.RepositoryRead(ctx, id, at)
	default:
		return err
	}
	return r.Records.SaveRepository(ctx, now, at)
}
