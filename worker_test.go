package main

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"agent-sandboxing/core/github"
	"agent-sandboxing/core/github/githubtest"
)

func TestWorker_SignsAsTheAppOnceGitHubHasSaidWhoItIs(t *testing.T) {
	t.Parallel()
	gh, err := githubtest.New(githubtest.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gh.Handler())
	t.Cleanup(server.Close)
	bases, err := github.NewBases(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	config := gh.Config()
	app, err := github.NewApp(github.AppConfig{Bases: bases, AppID: config.AppID, PrivateKey: config.PrivateKey, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{process: &process{bases: bases, log: slog.New(slog.DiscardHandler)}, app: app}
	gh.Fail(githubtest.Fault{Pattern: "GET /api/v3/app", Status: 503, Count: 1})
	w.probe(t.Context())
	bot := w.bot
	if got := bot(); got.Name != "agent-sandboxing[bot]" {
		t.Errorf("while GitHub is down: %+v", got)
	}
	w.probe(t.Context())
	if got := bot(); got.Name != config.AppSlug+"[bot]" || !strings.Contains(got.Email, "+"+config.AppSlug+"[bot]@") {
		t.Errorf("once it answers: %+v, want %s[bot] by its id", got, config.AppSlug)
	}
	gh.Fail(githubtest.Fault{Pattern: "GET /api/v3/app", Status: 503, Count: 1})
	w.probe(t.Context())
	if got := bot(); got.Name != config.AppSlug+"[bot]" {
		t.Errorf("when it is down again: %+v", got)
	}
}
