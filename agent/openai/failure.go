package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"agent-sandboxing/core"
)

// failure is why one request came to nothing. err is what the turn ends with; retry says that
// another attempt may go better; reason is what people see of a retry.
type failure struct {
	err    *core.Error
	retry  bool
	reason string
	after  time.Duration
}

func (f *failure) Error() string { return f.err.Error() }

func fail(code, message string) *failure {
	return &failure{err: core.Fail(core.Unavailable, code, message)}
}

func tooSlow() *failure {
	return fail(core.CodeModelTimeout, "The model did not answer in time. Send the message again, or use another model.")
}

func streamError(message string) *failure {
	return fail(core.CodeModelStreamError, message+" Nothing of the broken answer was carried out. Send the message again.")
}

// streamBroken is a connection that ended in the middle of an answer.
func streamBroken(cause error) *failure {
	f := streamError("The model's answer broke off.")
	f.err = f.err.Because(cause)
	return f
}

// unreachable is a request that never got an answer: no name, no connection, no TLS.
func unreachable(cause error) *failure {
	f := fail(core.CodeModelUnavailable, "The model provider cannot be reached. Try again later; an operator may have to check MODEL_BASE_URL.")
	f.err = f.err.Because(cause)
	f.retry, f.reason = true, "the provider could not be reached"
	return f
}

// statusFailure maps an HTTP status. The body is only matched, never kept.
func statusFailure(status int, body []byte, after time.Duration) *failure {
	f := codeFailure(status, body)
	if after > maxRetryAfter && (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) {
		f = fail(core.CodeModelRateLimited, "The model provider asks to be left alone for "+patience(after)+". Send the message again after that.")
	}
	f.err = f.err.Because(fmt.Errorf("status %d", status))
	f.after = after
	switch status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		f.retry, f.reason = true, fmt.Sprintf("the provider answered with status %d", status)
	}
	return f
}

// patience is a time in words, never shorter than it is.
func patience(d time.Duration) string {
	if d > time.Hour {
		return fmt.Sprintf("%d hours", (d+time.Hour-1)/time.Hour)
	}
	if d > time.Minute {
		return fmt.Sprintf("%d minutes", (d+time.Minute-1)/time.Minute)
	}
	return fmt.Sprintf("%d seconds", (d+time.Second-1)/time.Second)
}

func codeFailure(status int, body []byte) *failure {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fail(core.CodeModelUnauthorized, "The model provider refuses the key. An operator has to check OPENROUTER_API_KEY.")
	case status == http.StatusPaymentRequired:
		return fail(core.CodeModelUnauthorized, "The model provider's account has no credit left. An operator has to add some.")
	case status == http.StatusTooManyRequests:
		return fail(core.CodeModelRateLimited, "The model provider gets too many requests. Send the message again in a few minutes.")
	case status == http.StatusRequestTimeout || status == http.StatusGatewayTimeout:
		return tooSlow()
	case status >= 500:
		return fail(core.CodeModelUnavailable, "The model provider has a failure of its own. Send the message again in a few minutes.")
	case status == http.StatusRequestEntityTooLarge || overflow.Match(body):
		return fail(core.CodeContextOverflow, "The conversation has become longer than the model takes. Start a new session, or ask for a smaller piece of work.")
	case status >= 300 && status < 400:
		return fail(core.CodeModelRejected, "The model endpoint redirects elsewhere. An operator has to put its final address into MODEL_BASE_URL.")
	case status == http.StatusNotFound:
		return fail(core.CodeModelRejected, "The model provider knows no such model or address. An operator has to check AGENT_MODEL and MODEL_BASE_URL.")
	}
	return fail(core.CodeModelRejected, "The model provider does not take the request. An operator has to check AGENT_MODEL and MODEL_BASE_URL.")
}

// overflow finds the words with which providers say that a request is too long.
var overflow = regexp.MustCompile(`(?i)context_length_exceeded|context (?:length|window)|maximum context|prompt is too long|too many (?:input )?tokens`)

// notAStream is a 200 that is no event stream: an error as JSON, or a page of a proxy.
func notAStream(body []byte) *failure {
	if f := errorFrame(body); f != nil {
		return f
	}
	return streamError("The model endpoint did not answer with a stream.")
}

// errorFrame reads a JSON text that is an error in one of the forms in use, nil when it is none.
func errorFrame(raw []byte) *failure {
	var frame struct {
		Error  json.RawMessage `json:"error"`
		Object string          `json:"object"`
		Code   json.RawMessage `json:"code"`
	}
	if json.Unmarshal(raw, &frame) != nil {
		return nil
	}
	code := frame.Code
	switch {
	case len(frame.Error) > 0 && string(frame.Error) != "null":
		var inner struct {
			Code json.RawMessage `json:"code"`
		}
		if json.Unmarshal(frame.Error, &inner) == nil {
			code = inner.Code
		}
	case frame.Object != "error":
		return nil
	}
	var status int
	if json.Unmarshal(code, &status) == nil {
		switch status {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusPaymentRequired, http.StatusTooManyRequests:
			return codeFailure(status, nil)
		}
	}
	if overflow.Match(raw) {
		return codeFailure(http.StatusRequestEntityTooLarge, nil)
	}
	f := streamError("The model provider reported a failure in the middle of its answer.")
	f.err = f.err.Because(errors.New("error frame"))
	return f
}
