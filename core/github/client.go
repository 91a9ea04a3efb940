package github

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
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

// newHTTPClient bounds each request in time (0: 20 s) and size and follows redirects only on the host
// that was asked, with the method that was used: a renamed repository redirects so. It trusts roots,
// nil being the system's.
func newHTTPClient(timeout time.Duration, roots *x509.CertPool) *http.Client {
	next := http.DefaultTransport
	if roots != nil {
		own := http.DefaultTransport.(*http.Transport).Clone()
		own.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
		next = own
	}
	return &http.Client{
		Transport: bounded{next, cmp.Or(timeout, requestTimeout)},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) > 3 || req.URL.Host != via[0].URL.Host || req.URL.Scheme != via[0].URL.Scheme || req.Method != via[0].Method {
				return errCrossRedirect
			}
			return nil
		},
	}
}

// bounded ends a request after a time and the reading of its answer past maxBody; go-github reads
// bodies without a limit.
type bounded struct {
	next    http.RoundTripper
	timeout time.Duration
}

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), b.timeout)
	resp, err := b.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &boundedBody{body: resp.Body, left: maxBody, cancel: cancel}
	return resp, nil
}

type boundedBody struct {
	body   io.ReadCloser
	left   int64
	cancel context.CancelFunc
}

// Read closes the body at its end too: go-github does not close that of a refusal.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errors.Join(errBodyTooLarge, b.Close())
	}
	n, err := b.body.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err != nil {
		_ = b.Close() // err says more
	}
	return n, err
}

func (b *boundedBody) Close() error {
	b.cancel()
	return b.body.Close()
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

// basic is authorized for the App's client id and secret.
type basic struct {
	next                 http.RoundTripper
	host, name, password string
}

func (b basic) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host != b.host {
		return nil, errCrossRedirect
	}
	req = req.Clone(req.Context())
	req.SetBasicAuth(b.name, b.password)
	return b.next.RoundTrip(req)
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
