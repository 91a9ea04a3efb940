package githubtest

import (
	"context"
	"fmt"
	"strings"
)

// ClosePullRequest closes one without merging, as a person would on its page.
func (s *Server) ClosePullRequest(fullName string, number int) error {
	r, _, ok := s.repositoryNamed(fullName)
	if !ok {
		return fmt.Errorf("no repository %q", fullName)
	}
	return s.changePull(r.ID, number, func(p *pull) { p.Closed, p.ClosedAt, p.UpdatedAt = true, s.now(), s.now() })
}

// MergePullRequest merges one into its base branch with a merge commit and returns that commit.
func (s *Server) MergePullRequest(ctx context.Context, fullName string, number int) (string, error) {
	r, _, ok := s.repositoryNamed(fullName)
	if !ok {
		return "", fmt.Errorf("no repository %q", fullName)
	}
	pulls, err := s.pulls(ctx, r)
	if err != nil {
		return "", err
	}
	for _, p := range pulls {
		if p.Number != number || p.Closed {
			continue
		}
		tree, err := s.git(ctx, r.ID, nil, "merge-tree", "--write-tree", p.BaseSHA, p.HeadSHA)
		if err != nil {
			return "", fmt.Errorf("merge pull request %d: %w", number, err)
		}
		message := fmt.Sprintf("Merge pull request #%d from %s/%s\n\n%s", number, r.Owner, p.Head, p.Title)
		sha, err := s.git(ctx, r.ID, []byte(message), "-c", "user.name=Octo Dev", "-c", "user.email=octo-dev@example.org",
			"commit-tree", strings.TrimSpace(string(tree)), "-p", p.BaseSHA, "-p", p.HeadSHA)
		if err != nil {
			return "", err
		}
		merge := strings.TrimSpace(string(sha))
		if _, err := s.git(ctx, r.ID, nil, "update-ref", "refs/heads/"+p.Base, merge, p.BaseSHA); err != nil {
			return "", err
		}
		return merge, s.changePull(r.ID, number, func(p *pull) {
			p.MergeSHA, p.Closed, p.ClosedAt, p.UpdatedAt = merge, true, s.now(), s.now()
		})
	}
	return "", fmt.Errorf("no open pull request %d in %s", number, fullName)
}

// PullRequest is one pull request as a test wants to see it.
type PullRequest struct {
	Number      int
	State       string // open, closed, merged
	Title, Body string
	Head, Base  string
	HeadSHA     string
	Draft       bool
	Author      string
}

// PullRequests lists a repository's pull requests by number.
func (s *Server) PullRequests(ctx context.Context, fullName string) ([]PullRequest, error) {
	r, _, ok := s.repositoryNamed(fullName)
	if !ok {
		return nil, fmt.Errorf("no repository %q", fullName)
	}
	pulls, err := s.pulls(ctx, r)
	if err != nil {
		return nil, err
	}
	var all []PullRequest
	for _, p := range pulls {
		state := "open"
		switch {
		case p.MergeSHA != "":
			state = "merged"
		case p.Closed:
			state = "closed"
		}
		all = append(all, PullRequest{Number: p.Number, State: state, Title: p.Title, Body: p.Body, Head: p.Head, Base: p.Base, HeadSHA: p.HeadSHA, Draft: p.Draft, Author: p.Author})
	}
	return all, nil
}
