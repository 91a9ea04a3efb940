package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github"
	"agent-sandboxing/core/redact"
)

// smoke is what the questions share.
type smoke struct {
	options
	bases  github.Bases
	app    *github.App
	key    []byte
	dir    string
	redact *redact.Redactor
	id     core.SessionID // of the branch
	repo   core.Repository

	publish core.RepoToken
	branch  *pushed
	number  int
}

// close leaves no token and no file behind, however far the questions came.
func (s *smoke) close(ctx context.Context) {
	if s.publish.Value != "" {
		s.app.Revoke(ctx, s.publish)
	}
	if s.branch != nil && s.branch.ws != nil {
		_ = s.branch.ws.Close() // nothing runs in it
	}
	_ = os.RemoveAll(s.dir) // a temporary folder
}

// reply is GitHub's answer, in the parts that questions look at.
type reply struct {
	Status   int
	Message  string          `json:"message"`
	Errors   json.RawMessage `json:"errors"`
	Token    string          `json:"token"`
	ID       int64           `json:"id"`
	SHA      string          `json:"sha"`
	Number   int             `json:"number"`
	Draft    bool            `json:"draft"`
	State    string          `json:"state"`
	Default  string          `json:"default_branch"`
	Slug     string          `json:"slug"`
	Verified struct {
		Verified bool   `json:"verified"`
		Reason   string `json:"reason"`
	} `json:"verification"`
	text []byte
}

func (r reply) String() string {
	text := fmt.Sprintf("%d %s", r.Status, r.Message)
	if len(r.Errors) > 0 {
		text += " " + string(r.Errors)
	}
	return strings.TrimSpace(text)
}

// ask sends one request of its own to the API; header is "Name: value" or empty.
func (s *smoke) ask(ctx context.Context, method, path, bearer, header string, body any) (reply, error) {
	sent, err := json.Marshal(body)
	if err != nil {
		return reply{}, err
	}
	if body == nil {
		sent = nil
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.bases.API+path, bytes.NewReader(sent))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Authorization", "Bearer "+bearer)
	req.Header.Set("Accept", "application/vnd.github+json")
	req.Header.Set("X-GitHub-Api-Version", "2022-11-28")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if name, value, ok := strings.Cut(header, ": "); ok {
		req.Header.Set(name, value)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	r := reply{Status: resp.StatusCode}
	if r.text, err = io.ReadAll(io.LimitReader(resp.Body, 8<<20)); err != nil {
		return r, err
	}
	if !json.Valid(r.text) {
		r.Message = string(r.text[:min(len(r.text), 300)])
	} else {
		_ = json.Unmarshal(r.text, &r) // a list is an answer too
	}
	return r, nil
}

// asRepo asks about the repository with a token.
func (s *smoke) asRepo(ctx context.Context, method, path string, body any) (reply, error) {
	return s.ask(ctx, method, s.path(path), s.publish.Value, "", body)
}

func (s *smoke) path(rest string) string { return "/repos/" + s.repo.FullName() + rest }

func (s *smoke) jwt(issuer string) (string, error) {
	jwt, err := github.SignJWT(s.key, issuer, time.Now())
	s.redact.Add(jwt)
	return jwt, err
}

// mint asks for a token by hand.
func (s *smoke) mint(ctx context.Context, header string, body any) (reply, error) {
	jwt, err := s.jwt(strconv.FormatInt(s.appID, 10))
	if err != nil {
		return reply{}, err
	}
	r, err := s.ask(ctx, http.MethodPost, fmt.Sprintf("/app/installations/%d/access_tokens", s.repo.InstallationID), jwt, header, body)
	s.redact.Add(r.Token)
	return r, err
}

func (s *smoke) narrowed() map[string]any {
	return map[string]any{"repository_ids": []int64{int64(s.repo.ID)}, "permissions": map[string]string{"metadata": "read"}}
}

func (s *smoke) revoke(ctx context.Context, token string) (reply, error) {
	return s.ask(ctx, http.MethodDelete, "/installation/token", token, "", nil)
}
