package main

import (
	"context"
	"fmt"
	"net/http"

	"agent-sandboxing/core/github/githubtest"
)

const (
	listRoute = "GET /api/v3/user/installations/{id}/repositories"
	mintRoute = "POST /api/v3/app/installations/{id}/access_tokens"
	gitRoute  = "/{owner}/mdlinks.git/"
	pullRoute = "POST /api/v3/repos/{owner}/{repo}/pulls"
)

// githubRows are GitHub's failures on a create and on a checkout.
func githubRows() []row {
	var all []row
	for _, f := range []struct {
		what   string
		fault  githubtest.Fault
		status int
		code   string
	}{
		{"is down", githubtest.Fault{Pattern: "/", Cut: true}, http.StatusServiceUnavailable, "github_unavailable"},
		{"answers 500", githubtest.Fault{Pattern: listRoute, Status: 500}, http.StatusServiceUnavailable, "github_unavailable"},
		{"answers 403", githubtest.Fault{Pattern: listRoute, Status: 403, Body: `{"message":"canary"}`}, http.StatusForbidden, "github_forbidden"},
		{"answers 404", githubtest.Fault{Pattern: listRoute, Status: 404, Body: `{"message":"canary"}`}, http.StatusNotFound, "not_found"},
		{"answers 422", githubtest.Fault{Pattern: listRoute, Status: 422, Body: `{"message":"canary"}`}, http.StatusUnprocessableEntity, "github_rejected"},
		{"limits the rate", githubtest.Fault{Pattern: listRoute, Status: 429, Header: http.Header{"Retry-After": {"5"}}}, http.StatusTooManyRequests, "github_rate_limited"},
	} {
		all = append(all, row{"GitHub " + f.what + " on a create", func(ctx context.Context, b *bench) (string, error) {
			target, err := b.owner.Target(ctx, "mdlinks")
			if err != nil {
				return "", err
			}
			b.github.Fail(f.fault)
			_, err = b.createAt(ctx, target, "x")
			code, err := refused(err, f.status, f.code)
			b.github.ClearFaults()
			if err != nil {
				return code, err
			}
			id, err := b.createAt(ctx, target, "file "+b.newFile())
			if err != nil {
				return code, err
			}
			return code, b.goesOn(ctx, id)
		}})
	}
	for _, f := range []struct {
		what  string
		fault githubtest.Fault
		codes []string
	}{
		{"does not mint (down)", githubtest.Fault{Pattern: mintRoute, Cut: true}, []string{"github_unavailable"}},
		{"does not mint (401)", githubtest.Fault{Pattern: mintRoute, Status: 401, Body: `{"message":"canary"}`}, []string{"github_app_unauthorized"}},
		{"does not mint (403)", githubtest.Fault{Pattern: mintRoute, Status: 403, Body: `{"message":"canary"}`}, []string{"github_forbidden"}},
		{"does not mint (404)", githubtest.Fault{Pattern: mintRoute, Status: 404, Body: `{"message":"canary"}`}, []string{"installation_removed"}},
		{"does not mint (422)", githubtest.Fault{Pattern: mintRoute, Status: 422, Body: `{"message":"canary"}`}, []string{"repository_not_selected"}},
		{"does not mint (429)", githubtest.Fault{Pattern: mintRoute, Status: 429, Body: `{"message":"canary"}`}, []string{"github_rate_limited"}},
		{"does not serve git (cut)", githubtest.Fault{Pattern: gitRoute, Status: 200, Body: "half", Cut: true}, []string{"github_unavailable"}},
		{"does not serve git (403)", githubtest.Fault{Pattern: gitRoute, Status: 403, Body: "canary"}, []string{"github_forbidden"}},
		{"does not serve git (404)", githubtest.Fault{Pattern: gitRoute, Status: 404, Body: "canary"}, []string{"github_forbidden"}},
		{"does not serve git (500)", githubtest.Fault{Pattern: gitRoute, Status: 500, Body: "canary"}, []string{"github_unavailable"}},
		{"does not serve git (a web page)", githubtest.Fault{Pattern: gitRoute, Status: 200, Body: "<html>canary</html>", Header: http.Header{"Content-Type": {"text/html"}}}, []string{"empty_repository"}},
	} {
		all = append(all, row{"GitHub " + f.what + " at checkout", func(ctx context.Context, b *bench) (string, error) {
			if f.fault.Pattern == mintRoute { // the worker has a token from before
				if err := b.newWorker(ctx, nil); err != nil {
					return "", err
				}
			}
			target, err := b.owner.Target(ctx, "mdlinks")
			if err != nil {
				return "", err
			}
			b.github.Fail(f.fault)
			id, err := b.createAt(ctx, target, "file "+b.newFile())
			if err != nil {
				return "", err
			}
			code, err := b.failed(ctx, id, f.codes...)
			b.github.ClearFaults()
			if err != nil {
				return code, err
			}
			return code, b.goesOn(ctx, id)
		}})
	}
	return all
}

// publishRows are failures of a publish; each is asked for again afterwards, and then works.
func publishRows() []row {
	fault := func(f githubtest.Fault) func(context.Context, *bench, string) error {
		return func(_ context.Context, b *bench, _ string) error {
			b.github.Fail(f)
			return nil
		}
	}
	var all []row
	for _, f := range []struct {
		what  string
		begin func(ctx context.Context, b *bench, id string) error
		end   func(ctx context.Context, b *bench) error
		codes []string
	}{
		{"GitHub is down", fault(githubtest.Fault{Pattern: "/", Cut: true}), nil, []string{"github_unavailable"}},
		{"no token is minted (403)", fault(githubtest.Fault{Pattern: mintRoute, Status: 403}), nil, []string{"github_forbidden"}},
		{"the push is cut", fault(githubtest.Fault{Pattern: "POST /{owner}/{repo}/git-receive-pack", Cut: true}), nil, []string{"github_unavailable"}},
		{"the pull request is refused (422)", fault(githubtest.Fault{Pattern: pullRoute, Status: 422, Body: `{"message":"Validation Failed"}`}), nil, nil},
		{"the pull request is forbidden (403)", fault(githubtest.Fault{Pattern: pullRoute, Status: 403, Body: `{"message":"canary"}`}), nil, []string{"github_forbidden"}},
		{"the pull request is not answered (500)", fault(githubtest.Fault{Pattern: pullRoute, Status: 500}), nil, []string{"github_unavailable"}},
		{
			"the rules refuse the push", func(_ context.Context, b *bench, _ string) error {
				return b.github.RejectPushes("lantern-works/shelf-label", "error: GH013: Repository rule violations found\n- Changes must be made through a merge queue")
			},
			func(_ context.Context, b *bench) error {
				return b.github.RejectPushes("lantern-works/shelf-label", "")
			},
			[]string{"rules_rejected"},
		},
		{"the container is removed before it", func(ctx context.Context, b *bench, id string) error {
			return b.removeContainer(ctx, id)
		}, nil, []string{""}},
	} {
		all = append(all, row{"publish: " + f.what, func(ctx context.Context, b *bench) (string, error) {
			id, name, err := b.begun(ctx, "shelf-label")
			if err != nil {
				return "", err
			}
			if err := f.begin(ctx, b, id); err != nil {
				return "", err
			}
			code, err := b.publish(ctx, id, f.codes)
			b.github.ClearFaults()
			if f.end != nil {
				if err := f.end(ctx, b); err != nil {
					return code, err
				}
			}
			if err != nil {
				return code, err
			}
			if _, err := b.publish(ctx, id, []string{""}); err != nil {
				return code, fmt.Errorf("the next publish: %w", err)
			}
			return code, b.goesOn(ctx, id, name)
		}})
	}
	return all
}

// publish asks for a pull request and demands how the attempt ends; the code "" is its success, no
// codes are any failure. It asks again while GitHub cannot say whether the person may.
func (b *bench) publish(ctx context.Context, id string, codes []string) (string, error) {
	var p struct{ ID string }
	err := b.owner.Ask(ctx, http.MethodPost, "/chat-sessions/"+id+"/publish", "", map[string]string{"title": "Add files", "body": "As asked."}, &p)
	if err != nil {
		if len(codes) > 0 && codes[0] == "github_unavailable" {
			return refused(err, http.StatusServiceUnavailable, codes[0])
		}
		return "", err
	}
	s, err := b.ended(ctx, id)
	if err != nil {
		return "", err
	}
	code, text := "", ""
	if s.Publication.Failure != nil {
		code, text = s.Publication.Failure.Code, s.Publication.Failure.Message
	}
	if code != "" {
		if err := sentence(text); err != nil {
			return code, err
		}
	}
	for _, want := range codes {
		if code == want {
			return code, nil
		}
	}
	if codes == nil && code != "" {
		return code, nil
	}
	return code, fmt.Errorf("the publish is %s with %q (%s), want %q", s.Publication.Step, code, text, codes)
}

// removeContainer is what an administrator's docker rm -f does.
func (b *bench) removeContainer(ctx context.Context, id string) error {
	ref, err := b.container(ctx, id)
	if err != nil {
		return err
	}
	_, err = b.host(ctx, "rm", "-f", ref)
	return err
}
