package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
)

// maxBody bounds a request, in bytes.
const maxBody = 16 << 20

// fails answers with a fault that comes before any chunk. The other faults are the stream's.
func (s *Server) fails(w http.ResponseWriter, r *http.Request, f Fault) bool {
	switch f {
	case Unauthorized:
		writeError(w, http.StatusUnauthorized, "invalid_api_key", "Incorrect API key provided: canary-provider-text")
	case RateLimited:
		w.Header().Set("Retry-After", "1")
		writeError(w, http.StatusTooManyRequests, "rate_limit_exceeded", "canary-provider-text")
	case LongLimit:
		w.Header().Set("Retry-After", "3600")
		writeError(w, http.StatusTooManyRequests, "rate_limit_exceeded", "canary-provider-text")
	case ServerError:
		writeError(w, http.StatusInternalServerError, "server_error", "canary-provider-text")
	case Overloaded:
		writeError(w, http.StatusServiceUnavailable, "overloaded", "canary-provider-text")
	case Rejected:
		writeError(w, http.StatusBadRequest, "invalid_request_error", "canary-provider-text")
	case ContextLength:
		writeError(w, http.StatusBadRequest, "context_length_exceeded", "canary-provider-text")
	case Redirect:
		http.Redirect(w, r, "http://elsewhere.invalid/v1/chat/completions", http.StatusFound)
	case HangSilent:
		<-r.Context().Done()
	case HTML:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<html><body>canary-provider-text</body></html>") // a client that is gone reads nothing
	case JSONError:
		writeError(w, http.StatusOK, "server_error", "canary-provider-text")
	case "", Hang, Comments, Broken, Truncated, ErrorFrame, Garbage:
		return false
	}
	return true
}

func writeError(w http.ResponseWriter, status int, code, message string) {
	writeJSON(w, status, map[string]any{"error": map[string]any{"code": code, "message": message, "type": code}})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A client that is gone reads nothing; there is nobody to tell.
	_ = json.NewEncoder(w).Encode(v)
}

func readBody(r *http.Request) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err == nil && len(raw) > maxBody {
		err = errors.New("the request is too large")
	}
	return raw, err
}

// checkPairs refuses what strict providers refuse: a call without its answer, an answer without its
// call, arguments that are no JSON, a message without content.
func checkPairs(messages []Message) error {
	var open []string
	for i, m := range messages {
		if len(open) > 0 {
			if m.Role != "tool" || m.ToolCallID != open[0] {
				return fmt.Errorf("messages[%d]: tool call %q has no answer", i, open[0])
			}
			open = open[1:]
		} else if m.Role == "tool" {
			return fmt.Errorf("messages[%d]: a tool message without a call", i)
		}
		if m.Role == "system" && i > 0 {
			return fmt.Errorf("messages[%d]: a later system message", i)
		}
		if m.Content == "" && len(m.ToolCalls) == 0 {
			return fmt.Errorf("messages[%d]: no content", i)
		}
		for _, c := range m.ToolCalls {
			if !json.Valid([]byte(c.Function.Arguments)) {
				return fmt.Errorf("messages[%d]: arguments are not valid JSON", i)
			}
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("tool call %q has no answer", open[0])
	}
	return nil
}

// checkForm refuses what strict providers refuse in the form of a message: no content at all, a
// name that is none, a block of reasoning that is not the one that was given.
func checkForm(raw json.RawMessage) error {
	var messages []struct {
		Role      string          `json:"role"`
		Content   json.RawMessage `json:"content"`
		ToolCalls []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tool_calls"`
		Details []struct {
			Text      string `json:"text"`
			Signature string `json:"signature"`
		} `json:"reasoning_details"`
	}
	if err := json.Unmarshal(raw, &messages); err != nil {
		return err
	}
	for i, m := range messages {
		if len(m.Content) == 0 {
			return fmt.Errorf("messages[%d]: no content field", i)
		}
		for _, c := range m.ToolCalls {
			if !toolName.MatchString(c.Function.Name) {
				return fmt.Errorf("messages[%d]: %q is no name of a tool", i, c.Function.Name)
			}
		}
		for _, d := range m.Details {
			if d.Signature != Signature(d.Text) {
				return fmt.Errorf("messages[%d]: a block of reasoning was changed", i)
			}
		}
	}
	return nil
}

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
