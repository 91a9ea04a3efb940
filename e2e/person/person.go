// Package person is a signed-in client of a running product, for the checks that drive it without a
// browser: it goes through GitHub's sign-in page and then speaks JSON.
package person

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/PuerkitoBio/goquery"
)

// Person is safe for concurrent use.
type Person struct {
	http    *http.Client
	product string
}

// SignIn waits until the product at the address is ready and signs login in by the stand-in at
// github. Both are addresses as http://host:port.
func SignIn(ctx context.Context, product, github, login string) (*Person, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	p := &Person{http: &http.Client{Jar: jar, Timeout: time.Minute}, product: product}
	if err := p.WaitReady(ctx); err != nil {
		return nil, err
	}
	page, err := p.page(ctx, "/auth/github")
	if err != nil {
		return nil, err
	}
	form := url.Values{"login": {login}}
	page.Find("input[type=hidden]").Each(func(_ int, s *goquery.Selection) { form.Set(s.AttrOr("name", ""), s.AttrOr("value", "")) })
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, github+"/login/oauth/authorize", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	back, err := p.http.Do(req)
	if err != nil {
		return nil, err
	}
	if err := back.Body.Close(); err != nil {
		return nil, err
	}
	if back.StatusCode != http.StatusOK || strings.HasPrefix(back.Request.URL.Path, "/login") {
		return nil, fmt.Errorf("sign-in of %s ended at %s with %d", login, back.Request.URL.Path, back.StatusCode)
	}
	return p, nil
}

// WaitReady waits until the product can serve.
func (p *Person) WaitReady(ctx context.Context) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if a, err := p.Do(ctx, http.MethodGet, "/readyz", nil, nil); err == nil && a.Status == http.StatusOK {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// Answer is a response that was read to its end.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do sends one request to a path of the product.
func (p *Person) Do(ctx context.Context, method, path string, header http.Header, body []byte) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, p.product+path, bytes.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	resp, err := p.http.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	return Answer{Status: resp.StatusCode, Header: resp.Header, Body: all}, err
}

// Request is a request that the person has not sent yet.
func (p *Person) Request(ctx context.Context, method, path string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, p.product+path, nil)
	if err != nil {
		return nil, err
	}
	for _, c := range p.http.Jar.Cookies(req.URL) {
		req.AddCookie(c)
	}
	return req, nil
}

// Refusal is a JSON failure of the product.
type Refusal struct {
	Status  int
	Code    string
	Message string
}

func (r *Refusal) Error() string { return fmt.Sprintf("%d %s: %s", r.Status, r.Code, r.Message) }

// Ask exchanges JSON. A failure that the product explains is a *Refusal; one of its rate limit is
// waited for. key, when not empty, makes a repeated request one thing.
func (p *Person) Ask(ctx context.Context, method, path, key string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	header := http.Header{"Accept": {"application/json"}, "Content-Type": {"application/json"}}
	if key != "" {
		header.Set("Idempotency-Key", key)
	}
	for {
		a, err := p.Do(ctx, method, path, header, body)
		switch {
		case err != nil:
			return err
		case a.Status/100 == 2:
			return json.Unmarshal(a.Body, out)
		}
		var failed struct{ Error Refusal }
		if err := json.Unmarshal(a.Body, &failed); err != nil {
			return fmt.Errorf("%s %s: %d and no JSON: %.200s", method, path, a.Status, a.Body)
		}
		failed.Error.Status = a.Status
		if failed.Error.Code != "too_many_requests" {
			return &failed.Error
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// pause lets a spent allowance grow again.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Second):
		return nil
	}
}

// Target is where a session begins: what the form of a new one sends.
type Target struct {
	Installation int64  `json:"installation"`
	Repository   int64  `json:"repository"`
	Branch       string `json:"branch"`
	SHA          string `json:"sha"`
}

// Target reads the form of a new session for a repository, by a part of its name; "" is the first that
// may be pushed to.
func (p *Person) Target(ctx context.Context, name string) (Target, error) {
	list, err := p.page(ctx, "/installations")
	if err != nil {
		return Target{}, err
	}
	if link, ok := list.Find("[data-testid=installations] a").First().Attr("href"); ok {
		if list, err = p.page(ctx, link); err != nil {
			return Target{}, err
		}
	}
	link := ""
	list.Find("[data-testid=repositories] li").EachWithBreak(func(_ int, s *goquery.Selection) bool {
		if strings.Contains(s.Text(), "archived") || strings.Contains(s.Text(), "read only") || !strings.Contains(s.Text(), name) {
			return true
		}
		link = s.Find("a").AttrOr("href", "")
		return false
	})
	if link == "" {
		return Target{}, errors.New("no repository may be pushed to")
	}
	form, err := p.page(ctx, link)
	if err != nil {
		return Target{}, err
	}
	value := func(name string) string {
		return form.Find("form[method=post] input[name="+name+"]").AttrOr("value", "")
	}
	t := Target{Branch: value("branch"), SHA: value("sha")}
	if t.Installation, err = strconv.ParseInt(value("installation"), 10, 64); err != nil {
		return t, fmt.Errorf("the page of a new session has no form: %w", err)
	}
	t.Repository, err = strconv.ParseInt(value("repository"), 10, 64)
	return t, err
}

func (p *Person) page(ctx context.Context, path string) (*goquery.Document, error) {
	for {
		a, err := p.Do(ctx, http.MethodGet, path, nil, nil)
		switch {
		case err != nil:
			return nil, err
		case a.Status == http.StatusOK:
			return goquery.NewDocumentFromReader(bytes.NewReader(a.Body))
		case a.Status != http.StatusTooManyRequests:
			return nil, fmt.Errorf("GET %s: %d", path, a.Status)
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}
