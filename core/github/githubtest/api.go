package githubtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// object is a JSON object of an answer.
type object = map[string]any

// apiError is a refusal in GitHub's shape.
type apiError struct {
	status  int
	message string
	fields  []object
	accepts string // of X-Accepted-GitHub-Permissions
}

func (e *apiError) Error() string { return e.message }

func fail(status int, message string) *apiError { return &apiError{status: status, message: message} }

// invalid is a 422 about one field.
func invalid(field object) *apiError {
	return &apiError{status: http.StatusUnprocessableEntity, message: "Validation Failed", fields: []object{field}}
}

func notFound() *apiError { return fail(http.StatusNotFound, "Not Found") }

// notAccessible is what a token lacks a permission for.
func notAccessible(permission, level string) *apiError {
	e := fail(http.StatusForbidden, "Resource not accessible by integration")
	e.accepts = permission + "=" + level
	return e
}

// apiHandler answers one route; its error becomes GitHub's JSON.
type apiHandler func(w http.ResponseWriter, r *http.Request, c caller) error

func (s *Server) api(h apiHandler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
		w.Header().Set("X-GitHub-Request-Id", randomText(16))
		c, err := s.authenticate(r)
		if err == nil {
			err = h(w, r, c)
		}
		if err == nil {
			return
		}
		refused, ok := errors.AsType[*apiError](err)
		if !ok {
			s.log.ErrorContext(r.Context(), "stand-in request failed", "path", r.URL.Path, "error", err)
			refused = fail(http.StatusInternalServerError, "Server Error")
		}
		if refused.accepts != "" {
			w.Header().Set("X-Accepted-GitHub-Permissions", refused.accepts)
		}
		body := object{"message": refused.message, "documentation_url": "https://docs.github.com/rest", "status": strconv.Itoa(refused.status)}
		if refused.fields != nil {
			body["errors"] = refused.fields
		}
		_ = reply(w, refused.status, body) // the client has gone away when this fails
	}
}

// asPerson, asApp and asInstallation turn away every other kind of credential.
func (s *Server) asPerson(h apiHandler) http.HandlerFunc {
	return s.api(func(w http.ResponseWriter, r *http.Request, c caller) error {
		switch {
		case c.anonymous():
			return fail(http.StatusUnauthorized, "Requires authentication")
		case !c.person():
			return fail(http.StatusForbidden, "Resource not accessible by integration")
		}
		return h(w, r, c)
	})
}

func (s *Server) asApp(h apiHandler) http.HandlerFunc {
	return s.api(func(w http.ResponseWriter, r *http.Request, c caller) error {
		if !c.app {
			return fail(http.StatusUnauthorized, errJWT.Error())
		}
		return h(w, r, c)
	})
}

func (s *Server) asInstallation(h apiHandler) http.HandlerFunc {
	return s.api(func(w http.ResponseWriter, r *http.Request, c caller) error {
		switch {
		case c.anonymous():
			return fail(http.StatusUnauthorized, "Requires authentication")
		case !c.installation():
			return fail(http.StatusForbidden, "Resource not accessible by personal access token")
		}
		return h(w, r, c)
	})
}

func reply(w http.ResponseWriter, status int, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, err = w.Write(data)
	return err
}

// decodeBody reads a JSON request body.
func decodeBody(r *http.Request, v any) error {
	if err := json.NewDecoder(r.Body).Decode(v); err != nil {
		return fail(http.StatusBadRequest, "Problems parsing JSON")
	}
	return nil
}

// page cuts the asked page out of items and writes the Link header. Links are absolute, as GitHub's.
func page[T any](w http.ResponseWriter, r *http.Request, items []T) []T {
	q := r.URL.Query()
	size := boundedInt(q.Get("per_page"), 30, 100)
	number := boundedInt(q.Get("page"), 1, 1<<20)
	last := max(1, (len(items)+size-1)/size)
	link := ""
	add := func(rel string, n int) {
		next := url.Values{}
		for k, v := range q {
			next[k] = v
		}
		next.Set("page", strconv.Itoa(n))
		if link != "" {
			link += ", "
		}
		link += fmt.Sprintf(`<%s%s?%s>; rel="%s"`, origin(r), r.URL.EscapedPath(), next.Encode(), rel)
	}
	if number > 1 {
		add("prev", min(number-1, last))
		add("first", 1)
	}
	if number < last {
		add("next", number+1)
		add("last", last)
	}
	if link != "" {
		w.Header().Set("Link", link)
	}
	from := min((number-1)*size, len(items))
	return items[from:min(from+size, len(items))]
}

func boundedInt(s string, fallback, most int) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return fallback
	}
	return min(n, most)
}

// origin is where the client reached the stand-in.
func origin(r *http.Request) string { return "http://" + r.Host }
