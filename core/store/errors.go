package store

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"agent-sandboxing/core"
)

// byConstraint says what a violated constraint means to the person whose request broke it.
func byConstraint(name string) *core.Error {
	switch name {
	case "one_working_message":
		return core.Fail(core.Conflict, "session_busy", "This session already works on a message. Wait for it, or cancel it.")
	case "one_live_sandbox":
		return core.Fail(core.Conflict, "sandbox_exists", "This session already has a sandbox.")
	case "one_unfinished_publication":
		return core.Fail(core.Conflict, "publish_pending", "A publish of this session is still under way. Wait for it to finish.")
	case "messages_size":
		return core.Fail(core.TooLarge, "message_too_large", "The message is longer than 48 KiB. Shorten it, or put the text in a file of the repository.")
	case "messages_terminal":
		return core.Fail(core.Conflict, "message_finished", "This message has already ended.")
	case "chat_sessions_client_key", "messages_client_key", "publications_client_key":
		return core.Fail(core.Conflict, "duplicate_submit", "This was already submitted. Reload the page.")
	}
	return nil
}

// mapError turns what Postgres and the network say into core.Errors where a person can act on it.
// Everything else passes through, with its cause for the log.
func mapError(err error) error {
	if err == nil {
		return nil
	}
	if _, ours := errors.AsType[*core.Error](err); ours {
		return err
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		if known := byConstraint(pg.ConstraintName); known != nil {
			return known.Because(err)
		}
		switch pg.Code {
		case "22P02": // invalid_text_representation: an id that is no uuid names nothing
			return core.NotFoundError().Because(err)
		case "57P01", "57P02", "57P03": // admin_shutdown, crash_shutdown, cannot_connect_now
			return unavailable(err)
		}
		return err
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return core.NotFoundError().Because(err)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if broken(err) {
		return unavailable(err)
	}
	return err
}

// broken says that the connection is the trouble.
func broken(err error) bool {
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	_, network := errors.AsType[net.Error](err)
	return connecting || network || errors.Is(err, pgconn.ErrConnClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

func unavailable(cause error) error {
	return core.Fail(core.Unavailable, "database_unavailable", "The database does not answer. Try again in a moment; what was saved is safe.").Because(cause)
}
