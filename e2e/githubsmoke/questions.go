package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"agent-sandboxing/core"
)

const stateless = "X-GitHub-Stateless-S2S-Token: "

func (s *smoke) whoAmI(ctx context.Context) (string, error) {
	info, err := s.app.Probe(ctx)
	if err != nil {
		return "", err
	}
	name, mail := info.Committer()
	return fmt.Sprintf("%s, commits as %s <%s>, lacks %q", info.Slug, name, mail, info.Missing), nil
}

func (s *smoke) clientIssuer(ctx context.Context) (string, error) {
	if s.clientID == "" {
		return "GITHUB_CLIENT_ID is not set: not asked", nil
	}
	jwt, err := s.jwt(s.clientID)
	if err != nil {
		return "", err
	}
	r, err := s.ask(ctx, http.MethodGet, "/app", jwt, "", nil)
	return r.String() + " " + r.Slug, err
}

// find reads by the App who reaches the repository, then what it is.
func (s *smoke) find(ctx context.Context) (string, error) {
	jwt, err := s.jwt(strconv.FormatInt(s.appID, 10))
	if err != nil {
		return "", err
	}
	r, err := s.ask(ctx, http.MethodGet, s.path("/installation"), jwt, "", nil)
	if err == nil && r.ID == 0 {
		err = errors.New(r.String())
	}
	if err != nil {
		return "", err
	}
	s.repo.InstallationID = core.InstallationID(r.ID)
	token, err := s.mint(ctx, "", map[string]any{"permissions": map[string]string{"metadata": "read"}})
	if err != nil || token.Token == "" {
		return "", errors.Join(err, errors.New(token.String()))
	}
	if r, err = s.ask(ctx, http.MethodGet, s.path(""), token.Token, "", nil); err != nil {
		return "", err
	}
	if _, err := s.revoke(ctx, token.Token); err != nil {
		return "", err
	}
	if r.ID == 0 || r.Default == "" {
		return "", errors.New(r.String())
	}
	s.repo.ID, s.repo.DefaultBranch = core.RepositoryID(r.ID), r.Default
	return fmt.Sprintf("installation %d, repository %d, %s", s.repo.InstallationID, r.ID, r.Default), nil
}

// shape describes a token without showing it.
func shape(token string) string {
	kind := "short"
	if strings.Contains(token, ".") {
		kind = "stateless"
	}
	return fmt.Sprintf("%s of %d characters", kind, len(token))
}

func (s *smoke) tokenKinds(ctx context.Context) (string, error) {
	var all []string
	for _, header := range []string{"", stateless + "enabled", stateless + "disabled"} {
		r, err := s.mint(ctx, header, s.narrowed())
		if err != nil {
			return "", err
		}
		if r.Token == "" {
			all = append(all, header+" "+r.String())
			continue
		}
		all = append(all, strings.TrimPrefix(header, stateless)+" "+shape(r.Token))
		if _, err := s.revoke(ctx, r.Token); err != nil {
			return "", err
		}
	}
	return "by itself" + strings.Join(all, "; "), nil
}

func (s *smoke) revocation(ctx context.Context) (string, error) {
	var all []string
	for _, header := range []string{stateless + "enabled", stateless + "disabled"} {
		r, err := s.mint(ctx, header, s.narrowed())
		if err != nil || r.Token == "" {
			return "", errors.Join(err, errors.New(r.String()))
		}
		ended, err := s.revoke(ctx, r.Token)
		if err != nil {
			return "", err
		}
		text, err := s.until(ctx, r.Token)
		if err != nil {
			return "", err
		}
		all = append(all, fmt.Sprintf("%s: %d, %s", shape(r.Token), ended.Status, text))
	}
	return strings.Join(all, "; "), nil
}

// until asks with a revoked token until it is refused, a minute at most.
func (s *smoke) until(ctx context.Context, token string) (string, error) {
	begun := time.Now()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		r, err := s.ask(ctx, http.MethodGet, s.path(""), token, "", nil)
		if err != nil {
			return "", err
		}
		took := time.Since(begun).Round(time.Millisecond)
		switch {
		case r.Status == http.StatusUnauthorized:
			return fmt.Sprintf("refused after %v", took), nil
		case took > time.Minute:
			return "STILL GOOD after a minute", nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

func (s *smoke) rules(ctx context.Context) (string, error) {
	token, err := s.mint(ctx, "", s.narrowed())
	if err != nil {
		return "", err
	}
	r, err := s.ask(ctx, http.MethodGet, s.path("/rules/branches/agent%2Fsmoke"), token.Token, "", nil)
	if err != nil {
		return "", err
	}
	_, err = s.revoke(ctx, token.Token)
	return r.String(), err
}

func (s *smoke) foreignMint(ctx context.Context) (string, error) {
	r, err := s.mint(ctx, "", map[string]any{"repository_ids": []int64{1}, "permissions": map[string]string{"metadata": "read"}})
	return r.String(), err
}

func (s *smoke) widerMint(ctx context.Context) (string, error) {
	r, err := s.mint(ctx, "", map[string]any{"repository_ids": []int64{int64(s.repo.ID)}, "permissions": map[string]string{"organization_administration": "write"}})
	if err == nil && r.Token != "" {
		_, err = s.revoke(ctx, r.Token)
	}
	return r.String(), err
}
