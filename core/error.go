package core

import (
	"errors"
	"time"
)

// Kind says what sort of failure an Error is; web maps each to one HTTP status and page.
type Kind string

const (
	Internal        Kind = "internal"        // 500
	Invalid         Kind = "invalid"         // 422: the input is wrong, nothing was changed
	BadRequest      Kind = "bad_request"     // 400: the request cannot be read at all
	Unauthenticated Kind = "unauthenticated" // 401: sign in (again)
	Forbidden       Kind = "forbidden"       // 403
	NotFound        Kind = "not_found"       // 404: absent, or not yours
	Conflict        Kind = "conflict"        // 409: the state does not allow it now
	TooLarge        Kind = "too_large"       // 413
	RateLimited     Kind = "rate_limited"    // 429
	Unavailable     Kind = "unavailable"     // 503: something we depend on does not answer
)

// Error is every failure that a person may see. Code is stable bare snake_case and listed in
// OPERATIONS.md; Message is safe to show and says what to do next; Err is the cause, for logs only.
type Error struct {
	Kind    Kind
	Code    string
	Message string
	RetryAt time.Time // of RateLimited: not before then; zero when unknown
	Link    string    // a page of GitHub's where what Message says can be done, "" for none
	Err     error
}

func (e *Error) Error() string {
	if e.Err != nil {
		return e.Code + ": " + e.Message + ": " + e.Err.Error()
	}
	return e.Code + ": " + e.Message
}

func (e *Error) Unwrap() error { return e.Err }

// Fail makes an Error without a cause.
func Fail(kind Kind, code, message string) *Error {
	return &Error{Kind: kind, Code: code, Message: message}
}

// Because returns a copy of e that carries cause for the log.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.Err = cause
	return &c
}

// KindOf is the Kind of the first Error in err's chain, Internal when there is none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// CodeOf is the Code of the first Error in err's chain, "internal" when there is none.
func CodeOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return "internal"
}

// MessageOf is what a person may read about err; a cause without an Error stays hidden.
func MessageOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Message
	}
	return "Something failed on our side. The details are in the server log."
}

// NotFoundError is the one answer for what is absent and for what belongs to somebody else.
func NotFoundError() *Error {
	return Fail(NotFound, "not_found", "There is nothing here, or you may not see it.")
}

// Causes of a cancelled turn, read back with context.Cause to decide its terminal state.
var (
	ErrCancelledByUser = errors.New("cancelled by a person")
	ErrLeaseLost       = errors.New("the session's lease was lost")
	ErrShutdown        = errors.New("the worker is shutting down")
	// ErrNoWork is what a claim answers when no session is free and waiting.
	ErrNoWork = errors.New("no session is waiting for work")
)
