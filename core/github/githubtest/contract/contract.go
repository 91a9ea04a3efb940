// Package contract holds exchanges between the product and a GitHub to GitHub's own description of its
// REST API: slice.json, the operations that the product uses, cut from npm's @octokit/openapi by
// package generate.
package contract

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

//go:embed slice.json
var slice []byte

// load reads the slice once per process: it takes a tenth of a second and is never changed.
var load = sync.OnceValues(func() (*Contract, error) {
	doc, err := openapi3.NewLoader().LoadFromData(slice)
	if err != nil {
		return nil, fmt.Errorf("read GitHub's description: %w", err)
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		return nil, fmt.Errorf("read GitHub's description: %w", err)
	}
	return &Contract{router: router}, nil
})

// Contract is GitHub's description. It is safe for concurrent use.
type Contract struct{ router routers.Router }

// New reads the description.
func New() (*Contract, error) { return load() }

// Exchange is one request with its answer. The path is below the API's base.
type Exchange struct {
	Method   string
	URL      *url.URL
	Request  http.Header
	Body     []byte
	Status   int
	Response http.Header
	Answer   []byte
}

// byID is the second address of a repository, to which the first one redirects after a rename. The
// description has only the first.
var byID = regexp.MustCompile(`^/repositories/\d+(/|$)`)

// ErrRequest marks what is wrong with the request and not with the answer.
var ErrRequest = errors.New("request")

// Check says how an exchange breaks the description, nil when it does not. A redirect or refusal that
// the description does not list must have the shape of GitHub's errors.
func (c *Contract) Check(x Exchange) error {
	at := *x.URL
	at.Path = byID.ReplaceAllString(at.Path, "/repos/owner/name$1")
	at.RawPath = ""
	request, err := http.NewRequest(x.Method, at.String(), bytes.NewReader(x.Body)) //nolint:noctx // it is never sent
	if err != nil {
		return err
	}
	request.Header = x.Request.Clone()
	route, parameters, err := c.router.FindRoute(request)
	if err != nil {
		return fmt.Errorf("the description has no %s %s", x.Method, x.URL.Path)
	}
	options := &openapi3filter.Options{
		AuthenticationFunc:    openapi3filter.NoopAuthenticationFunc,
		IncludeResponseStatus: true,
	}
	input := &openapi3filter.RequestValidationInput{Request: request, PathParams: parameters, Route: route, Options: options}
	if err := openapi3filter.ValidateRequest(request.Context(), input); err != nil {
		return fmt.Errorf("%w: %w", ErrRequest, err)
	}
	if err := known(route.Operation, at.Query(), x.Body); err != nil {
		return fmt.Errorf("%w: %w", ErrRequest, err)
	}
	if x.Status >= 300 && route.Operation.Responses.Status(x.Status) == nil {
		return refused(x)
	}
	err = openapi3filter.ValidateResponse(request.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: x.Status, Header: x.Response, Body: io.NopCloser(bytes.NewReader(x.Answer)), Options: options,
	})
	if err != nil {
		return fmt.Errorf("answer %d: %w", x.Status, err)
	}
	return nil
}

// refused checks a redirect or an error that the description does not list for this operation.
func refused(x Exchange) error {
	if x.Status < 400 && x.Response.Get("Location") == "" {
		return fmt.Errorf("answer %d: a redirect to nowhere", x.Status)
	}
	var body struct {
		Message          string `json:"message"`
		DocumentationURL string `json:"documentation_url"`
	}
	if err := json.Unmarshal(x.Answer, &body); err != nil {
		return fmt.Errorf("answer %d: %w", x.Status, err)
	}
	if body.Message == "" || body.DocumentationURL == "" {
		return fmt.Errorf("answer %d: no message or no documentation_url", x.Status)
	}
	return nil
}

// known refuses what GitHub would ignore without a word: query parameters and fields of the body that
// the description does not have.
func known(operation *openapi3.Operation, query url.Values, body []byte) error {
	for name := range query {
		if operation.Parameters.GetByInAndName("query", name) == nil {
			return fmt.Errorf("unknown parameter %q", name)
		}
	}
	if len(body) == 0 {
		return nil
	}
	var sent map[string]json.RawMessage
	if err := json.Unmarshal(body, &sent); err != nil {
		return err
	}
	if operation.RequestBody == nil {
		return errors.New("a body where there is none")
	}
	media := operation.RequestBody.Value.Content.Get("application/json")
	for name := range sent {
		if media == nil || !has(media.Schema, name) {
			return fmt.Errorf("unknown field %q", name)
		}
	}
	return nil
}

// has says whether a schema, or one of those it is made of, has a property.
func has(schema *openapi3.SchemaRef, name string) bool {
	if schema == nil {
		return false
	}
	if _, ok := schema.Value.Properties[name]; ok {
		return true
	}
	parts := slices.Concat(schema.Value.AllOf, schema.Value.AnyOf, schema.Value.OneOf)
	return slices.ContainsFunc(parts, func(part *openapi3.SchemaRef) bool { return has(part, name) })
}

// Guard is h with each exchange checked; judge is told of every one and of how it breaks the
// description, and may forgive it. What is not forgiven is answered with status 500 instead, so that it
// cannot go unnoticed. prefix is the path of the API's base.
func (c *Contract) Guard(prefix string, h http.Handler, judge func(Exchange, error) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, "the request's body cannot be read", http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer := recorder{header: http.Header{}, status: http.StatusOK}
		h.ServeHTTP(&answer, r)
		at := *r.URL
		at.Path, at.RawPath = strings.TrimPrefix(r.URL.Path, prefix), ""
		x := Exchange{
			Method: r.Method, URL: &at, Request: r.Header, Body: body,
			Status: answer.status, Response: answer.header, Answer: answer.body.Bytes(),
		}
		if err := judge(x, c.Check(x)); err != nil {
			http.Error(w, "This exchange breaks GitHub's description of its API: "+err.Error(), http.StatusInternalServerError)
			return
		}
		for key, values := range answer.header {
			w.Header()[key] = values
		}
		w.WriteHeader(answer.status)
		_, _ = w.Write(answer.body.Bytes()) // the client has gone away when this fails
	})
}

// recorder keeps an answer until it was checked.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }
