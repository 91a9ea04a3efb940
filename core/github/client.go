package github

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	gh "github.com/google/go-github/v62/github"
)

const (
	// requestTimeout bounds one request, its body included.
	requestTimeout = 20 * time.Second
	// maxBody bounds one answer, in bytes; a page of 100 repositories is about 600 KiB.
	maxBody = 16 << 20
	// pageSize is the most that GitHub gives at once.
	pageSize = 100
)

var (
	errBodyTooLarge  = errors.New("the answer is larger than 16 MiB")
	errCrossRedirect = errors.New("redirect to another host or method refused")
)

// newHTTPClient bounds base (nil: the default one) in time and size and follows redirects only on
// the host that was asked, with the method that was used: a renamed repository redirects so.
func newHTTPClient(base *http.Client) *http.Client {
	c := &http.Client{Transport: http.DefaultTransport, Timeout: requestTimeout}
	if base != nil {
		*c = *base
		if c.Transport == nil {
			c.Transport = http.DefaultTransport
		}
		if c.Timeout == 0 {
			c.Timeout = requestTimeout
		}
	}
	c.Transport = bounded{c.Transport}
	c.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if len(via) > 3 || req.URL.Host != via[0].URL.Host || req.URL.Scheme != via[0].URL.Scheme || req.Method != via[0].Method {
			return errCrossRedirect
		}
		return nil
	}
	return c
}

// bounded fails the reading of an answer past maxBody; go-github reads bodies without a limit.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = &boundedBody{ReadCloser: resp.Body, left: maxBody}
	return resp, nil
}

type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errBodyTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// authorized adds one credential, and only on the way to the API's own host.
type authorized struct {
	next       http.RoundTripper
	host       string
	credential string
}

func (a authorized) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host != a.host {
		return nil, errCrossRedirect
	}
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+a.credential)
	return a.next.RoundTrip(req)
}

// newClient makes a go-github client for one credential ("" asks anonymously). go-github keeps the
// rate limit it saw in the client, so none is shared between credentials.
func newClient(base *http.Client, b Bases, credential string) (*gh.Client, error) {
	api, err := url.Parse(strings.TrimSuffix(b.API, "/") + "/")
	if err != nil {
		return nil, fmt.Errorf("GitHub API address: %w", err)
	}
	c := *base
	if credential != "" {
		c.Transport = authorized{next: base.Transport, host: api.Host, credential: credential}
	}
	client := gh.NewClient(&c)
	client.BaseURL = api
	client.UserAgent = "agent-sandboxing"
	return client, nil
}
