package mirror

import (
	"context"
	"errors"

	"agent-sandboxing/core"
)

// CodeForbidden is what GitHub's git answers although a token had been minted.
const CodeForbidden = "github_forbidden"

// fetchError turns a git that talked to GitHub into what a person can act on. Anything else, such
// as a cancelled context, is returned as it is.
func fetchError(err error) error {
	failed, ok := errors.AsType[*gitError](err)
	if _, known := errors.AsType[*core.Error](err); known || !ok {
		return err
	}
	switch {
	case failed.says("archived so it is read-only", "archived so is read-only"):
		return core.Fail(core.Conflict, "repository_archived",
			"The repository is archived on GitHub and cannot be changed. Unarchive it there and publish again.").Because(err)
	case errors.Is(failed, errTimeLimit), failed.says("Operation too slow", "Operation timed out"):
		return core.Fail(core.Unavailable, "clone_timeout",
			"GitHub sent the repository too slowly. Try again; if it is very large, ask the operator to lower CLONE_DEPTH.").Because(err)
	case failed.says(noSpace):
		return diskFull(err)
	case failed.says("SSL certificate problem", "certificate verification failed", "SSL: no alternative certificate"):
		return core.Fail(core.Unavailable, "github_untrusted",
			"This server does not trust the certificate that GitHub showed. Ask the operator to put its authority into SANDBOX_CA_FILE.").Because(err)
	case failed.remote("IP allow list"):
		return core.Fail(core.Forbidden, "github_ip_not_allowed",
			"The organization only lets known network addresses in. Its owner has to add this server's address to the IP allow list.").Because(err)
	case failed.says("Authentication failed", "could not read Username", "could not read Password",
		"returned error: 401", "returned error: 403", "Repository not found", "' not found", "returned error: 404"):
		return core.Fail(core.Forbidden, CodeForbidden,
			"GitHub refused the App access to this repository. Check that the App is still installed on it and may read its contents.").Because(err)
	case failed.says("returned error: 301", "returned error: 302", "returned error: 307", "returned error: 308"):
		return core.Fail(core.Conflict, "repository_moved",
			"The repository was renamed or moved on GitHub. Start a new session from its new name; the work tree of this one is kept.").Because(err)
	case failed.says("not our ref", "unadvertised object"):
		return core.Fail(core.Conflict, "base_missing",
			"The commit this session began from is no longer on GitHub. Start a new session.").Because(err)
	case failed.says("fsck error"):
		return core.Fail(core.Conflict, "repository_rejected",
			"The repository holds objects that git refuses as unsafe. Run git fsck on a clone to see which.").Because(err)
	}
	return core.Fail(core.Unavailable, "github_unavailable",
		"GitHub did not answer as expected. Nothing was lost: try again in a minute.").Because(err)
}

// noSpace is how git says that a disk is full.
const noSpace = "No space left on device"

func diskFull(cause error) error {
	return core.Fail(core.Unavailable, "disk_full",
		"The server has no disk space for the repository. Ask the operator to free some, then try again.").Because(cause)
}

// packError turns a git that could not pack a base into what a person can act on.
func packError(err error) error {
	failed, ok := errors.AsType[*gitError](err)
	switch {
	case !ok:
		return err
	case failed.says(noSpace):
		return diskFull(err)
	}
	return core.Fail(core.Internal, "checkout_failed",
		"The repository could not be read from the server's mirror. Try again.").Because(err)
}

// ended says that a failure comes with the end of the caller's context, so it is nobody's.
func ended(ctx context.Context, errs ...error) bool {
	return ctx.Err() != nil && errors.Join(errs...) != nil
}
