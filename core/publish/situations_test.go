package publish_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github/githubtest"
	"agent-sandboxing/core/mirror/mirrortest"
)

// scene is one session before a publish.
type scene struct {
	*world
	s  core.ChatSession
	ws *mirrortest.Workspace
	p  core.Publication // what is asked for next
	// paths are the choices that go with it.
	paths core.PathChoices
	first core.PublishResult // of the publish before, when there was one
}

// situation is a row of the table of what a publish may meet: what happened before, and how it ends.
type situation struct {
	name   string
	base   string            // branch of the session, "" for main
	files  map[string]string // in the work tree; nil for hello.txt
	before bool              // published once, and hello.txt changed since
	meet   func(t *testing.T, x *scene)

	noToken bool   // none is minted
	code    string // "" when it succeeds
	says    string // in the message
	outcome core.PublishOutcome
	// then looks at what became of it, and answers what was asked.
	then func(t *testing.T, x *scene, r core.PublishResult)
}

const (
	pullsRoute = "POST /api/v3/repos/{owner}/{repo}/pulls"
	pushRoute  = "POST /{owner}/{repo}/git-receive-pack"
)

func (x *scene) do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (x *scene) close(t *testing.T) {
	t.Helper()
	x.do(t, x.github.ClosePullRequest(fullName, x.first.Number))
}
func (x *scene) deleteBranch(t *testing.T) { t.Helper(); x.delete(t, x.s.Branch) }
func (x *scene) delete(t *testing.T, branch string) {
	t.Helper()
	x.do(t, x.github.DeleteBranch(t.Context(), fullName, branch))
}

func (x *scene) merge(t *testing.T) {
	t.Helper()
	_, err := x.github.MergePullRequest(t.Context(), fullName, x.first.Number)
	x.do(t, err)
}

// answered publishes again with a choice.
func (x *scene) answered(t *testing.T, choice core.PublishChoice, base string) (core.PublishResult, error) {
	t.Helper()
	x.askFor(t, x.s, core.Publication{Title: "Hello", Choice: choice, Base: base}, nil)
	return x.serve(t, x.options, x.s, x.ws)
}

// replaced checks that a new pull request took the place of the first one and refers to it.
func (x *scene) replaced(t *testing.T, r core.PublishResult, err error) {
	t.Helper()
	if err != nil || r.Outcome != core.PublishOpened || r.Number == x.first.Number {
		t.Fatalf("result = %+v, %v", r, err)
	}
	pulls := x.pulls(t, x.s)
	if len(pulls) != 2 || pulls[0].State != "closed" || pulls[1].State != "open" || !strings.Contains(pulls[1].Body, "Takes the place of "+number(x.first.Number)+".") {
		t.Errorf("pull requests = %+v", pulls)
	}
	stored, err := x.store.PullRequest(t.Context(), x.s.ID)
	if err != nil || stored.Number != r.Number || stored.State != core.PullOpen {
		t.Errorf("record = %+v, %v", stored, err)
	}
	// The next one is an update of the new one and still refers to the old.
	write(t, x.ws, map[string]string{"hello.txt": "later\n"})
	if again := x.must(t, x.s, x.ws, "Hello", ""); again.Number != r.Number || again.Outcome != core.PublishUpdated || !strings.Contains(x.pulls(t, x.s)[1].Body, number(x.first.Number)) {
		t.Errorf("then = %+v", again)
	}
}

// rejects makes GitHub refuse the push with these lines.
func rejects(lines string) func(*testing.T, *scene) {
	return func(t *testing.T, x *scene) { t.Helper(); x.do(t, x.github.RejectPushes(fullName, lines)) }
}

func refuses(pattern string, status, count int, body string) func(*testing.T, *scene) {
	return func(_ *testing.T, x *scene) {
		x.github.Fail(githubtest.Fault{Pattern: pattern, Status: status, Count: count, Body: body})
	}
}

func onePull(t *testing.T, x *scene, r core.PublishResult) {
	t.Helper()
	if pulls := x.pulls(t, x.s); len(pulls) != 1 || pulls[0].Number != r.Number || pulls[0].State != "open" || pulls[0].HeadSHA != x.git(t, "rev-parse", x.s.Branch) {
		t.Errorf("pull requests = %+v", pulls)
	}
}

func moved(event string) func(*testing.T, *scene, core.PublishResult) {
	return func(t *testing.T, x *scene, _ core.PublishResult) {
		t.Helper()
		if events := strings.Join(x.events(t, x.s), " "); !strings.HasSuffix(events, event+" publication_failed") {
			t.Errorf("events = %s", events)
		}
		if stored, err := x.store.PullRequest(t.Context(), x.s.ID); err != nil || "pull_request_"+stored.State != event {
			t.Errorf("record = %+v, %v", stored, err)
		}
	}
}

func situations() []situation {
	return []situation{
		{name: "first publish", outcome: core.PublishOpened, then: onePull},
		{name: "update", before: true, outcome: core.PublishUpdated, then: onePull},
		{name: "nothing changed", files: map[string]string{}, code: "nothing_to_publish", says: "does not differ"},
		{name: "nothing but what is left out", files: map[string]string{"key.pem": "x\n"}, code: "nothing_to_publish", says: "key.pem: may hold secrets"},
		{name: "nothing new", before: true, meet: func(t *testing.T, x *scene) { write(t, x.ws, map[string]string{"hello.txt": "hello\n"}) }, outcome: core.PublishUnchanged, then: onePull},
		{name: "others pushed", before: true, meet: func(t *testing.T, x *scene) { x.theirs(t, x.s, map[string]string{"b.txt": "b\n"}) }, outcome: core.PublishUpdated, then: onePull},
		{name: "others pushed to the same place", before: true, meet: func(t *testing.T, x *scene) { x.theirs(t, x.s, map[string]string{"hello.txt": "theirs\n"}) }, code: core.CodeSyncConflict, says: "hello.txt"},
		{name: "somebody has the branch", meet: func(t *testing.T, x *scene) { x.theirs(t, x.s, map[string]string{"x": "x"}) }, code: "remote_changed", says: "Nothing was overwritten"},

		{
			name: "closed, then opened again", before: true, meet: func(t *testing.T, x *scene) { x.close(t) }, code: core.CodePullClosed, says: "Open it again, or open a new one",
			then: func(t *testing.T, x *scene, _ core.PublishResult) {
				moved("pull_request_closed")(t, x, core.PublishResult{})
				r, err := x.answered(t, core.ChooseReopen, "")
				if err != nil || r.Number != x.first.Number || r.Outcome != core.PublishUpdated {
					t.Errorf("reopened: %+v, %v", r, err)
				}
				onePull(t, x, r)
				if events := strings.Join(x.events(t, x.s), " "); !strings.Contains(events, "publication_requested pull_request_reopened publication_committed") {
					t.Errorf("events = %s", events)
				}
			},
		},
		{name: "closed without news, then opened again", before: true, meet: func(t *testing.T, x *scene) {
			write(t, x.ws, map[string]string{"hello.txt": "hello\n"})
			x.close(t)
		}, code: core.CodePullClosed, then: func(t *testing.T, x *scene, _ core.PublishResult) {
			r, err := x.answered(t, core.ChooseReopen, "")
			if err != nil || r.Number != x.first.Number {
				t.Errorf("reopened: %+v, %v", r, err)
			}
			onePull(t, x, r)
		}},
		{
			name: "closed, then a new one", before: true, meet: func(t *testing.T, x *scene) { x.close(t) }, code: core.CodePullClosed,
			then: func(t *testing.T, x *scene, _ core.PublishResult) {
				r, err := x.answered(t, core.ChooseNew, "")
				x.replaced(t, r, err)
			},
		},
		{name: "closed and moved on", before: true, meet: func(t *testing.T, x *scene) {
			x.close(t)
			x.theirs(t, x.s, map[string]string{"b.txt": "b\n"})
			x.p.Choice = core.ChooseReopen
		}, code: core.CodeReopenRefused, says: "Open a new one", then: func(t *testing.T, x *scene, _ core.PublishResult) {
			r, err := x.answered(t, core.ChooseNew, "")
			x.replaced(t, r, err)
		}},
		{name: "closed and reopened by people", before: true, meet: func(t *testing.T, x *scene) {
			x.close(t)
			token, err := x.app.Mint(t.Context(), x.repo, core.TokenPublish)
			x.do(t, err)
			_, err = x.app.ReopenPullRequest(t.Context(), token, x.repo, x.first.Number)
			x.do(t, err)
		}, outcome: core.PublishUpdated, then: onePull},
		{name: "merged", before: true, meet: func(t *testing.T, x *scene) { x.merge(t) }, code: core.CodePullMerged, says: "follow-up session from the new main", then: moved("pull_request_merged")},
		{name: "merged and the branch deleted", before: true, meet: func(t *testing.T, x *scene) { x.merge(t); x.deleteBranch(t) }, code: core.CodePullMerged, says: "follow-up", then: moved("pull_request_merged")},
		{name: "merged whatever was chosen", before: true, meet: func(t *testing.T, x *scene) { x.merge(t); x.p.Choice = core.ChooseNew }, code: core.CodePullMerged, says: "follow-up"},
		{
			name: "branch deleted, then a new one", before: true, meet: func(t *testing.T, x *scene) { x.deleteBranch(t) }, code: core.CodeBranchDeleted, says: "was deleted on GitHub",
			then: func(t *testing.T, x *scene, _ core.PublishResult) {
				if got := x.git(t, "for-each-ref", "refs/heads/agent"); got != "" {
					t.Errorf("the branch came back unasked: %s", got)
				}
				r, err := x.answered(t, core.ChooseNew, "")
				x.replaced(t, r, err)
			},
		},
		{name: "rewritten", before: true, meet: func(t *testing.T, x *scene) {
			x.do(t, x.github.ResetBranch(t.Context(), fullName, x.s.Branch, x.base))
			x.theirs(t, x.s, map[string]string{"a.txt": "theirs\n"})
		}, code: "branch_rewritten", says: "Nothing was overwritten"},
		{name: "the base moved on", before: true, meet: func(t *testing.T, x *scene) {
			for _, name := range []string{"one", "two"} {
				_, err := x.github.Commit(t.Context(), fullName, githubtest.Commit{Message: name, Files: map[string]githubtest.File{name: githubtest.Text("x")}})
				x.do(t, err)
			}
		}, outcome: core.PublishUpdated, then: func(t *testing.T, x *scene, r core.PublishResult) {
			onePull(t, x, r)
			if stored, err := x.store.PullRequest(t.Context(), x.s.ID); err != nil || stored.Behind != 2 || stored.Base != "main" {
				t.Errorf("record = %+v, %v", stored, err)
			}
		}},
		{
			name: "the base deleted, then another", base: "release", meet: func(t *testing.T, x *scene) { x.delete(t, "release") }, code: core.CodeBaseMissing, says: "release is not on GitHub any more. The session's branch is pushed",
			then: func(t *testing.T, x *scene, _ core.PublishResult) {
				r, err := x.answered(t, core.ChooseNothing, "main")
				if err != nil || r.Outcome != core.PublishOpened || x.pulls(t, x.s)[0].Base != "main" {
					t.Errorf("into main: %+v, %v", r, err)
				}
				onePull(t, x, r)
			},
		},
		{
			name: "the base deleted under an open one", base: "release", before: true, meet: func(t *testing.T, x *scene) { x.delete(t, "release") }, code: core.CodePullClosed,
			then: func(t *testing.T, x *scene, _ core.PublishResult) {
				_, err := x.answered(t, core.ChooseReopen, "")
				wantCode(t, err, core.CodeReopenRefused)
				_, err = x.answered(t, core.ChooseNew, "")
				wantCode(t, err, core.CodeBaseMissing)
				r, err := x.answered(t, core.ChooseNew, "main")
				x.replaced(t, r, err)
			},
		},
		{name: "another base chosen", before: true, meet: func(t *testing.T, x *scene) {
			_, err := x.github.Commit(t.Context(), fullName, githubtest.Commit{Branch: "release", Message: "r", Files: map[string]githubtest.File{"r": githubtest.Text("r")}})
			x.do(t, err)
			x.p.Base = "release"
		}, outcome: core.PublishUpdated, then: func(t *testing.T, x *scene, r core.PublishResult) {
			onePull(t, x, r)
			write(t, x.ws, map[string]string{"hello.txt": "later\n"})
			x.must(t, x.s, x.ws, "Hello", "")
			if p := x.pulls(t, x.s)[0]; p.Base != "release" {
				t.Errorf("base = %s", p.Base)
			}
		}},

		{name: "renamed", before: true, meet: func(t *testing.T, x *scene) {
			x.do(t, x.github.RenameRepository(fullName, "gizmos"))
			now := x.repo
			now.Name = "gizmos"
			x.options.Access = access{now: now}
		}, outcome: core.PublishUpdated, then: func(t *testing.T, x *scene, r core.PublishResult) {
			if s, err := x.store.Session(t.Context(), x.s.ID); err != nil || s.Repository.FullName() != "octo-org/gizmos" || !strings.Contains(r.URL, "/octo-org/gizmos/pull/") {
				t.Errorf("session of %s, %v; %s", s.Repository.FullName(), err, r.URL)
			}
		}},
		{name: "gone from the installation", before: true, meet: func(_ *testing.T, x *scene) { x.options.Access = access{err: core.NotFoundError()} }, code: "installation_removed", says: "ask the account's owner"},
		{name: "taken out of the selection", before: true, meet: func(t *testing.T, x *scene) {
			_, err := x.github.AddRepository(githubtest.Repository{Owner: "octo-org", Name: "other"})
			x.do(t, err)
			_, err = x.github.AddInstallation("octo-org", "octo-org/other")
			x.do(t, err)
		}, noToken: true, code: "repository_not_selected", says: "has to add it"},
		{name: "uninstalled", before: true, meet: func(t *testing.T, x *scene) { x.do(t, x.github.RemoveInstallation(int64(x.repo.InstallationID))) }, noToken: true, code: "installation_removed", says: "install it again"},
		{name: "suspended", before: true, meet: func(t *testing.T, x *scene) { x.do(t, x.github.SetSuspended(int64(x.repo.InstallationID), true)) }, noToken: true, code: "installation_suspended", says: "lift the suspension"},
		{name: "permission not granted", before: true, meet: func(t *testing.T, x *scene) {
			x.do(t, x.github.SetInstallationPermissions(int64(x.repo.InstallationID), map[string]string{"metadata": "read", "contents": "read"}))
		}, noToken: true, code: "permission_missing", says: "has to accept its permissions"},
		{name: "archived", meet: func(t *testing.T, x *scene) { x.do(t, x.github.SetArchived(fullName, true)) }, code: "repository_archived", says: "Unarchive it"},
		{name: "a branch named agent", meet: func(t *testing.T, x *scene) {
			_, err := x.github.Commit(t.Context(), fullName, githubtest.Commit{Branch: "agent", Message: "x", Files: map[string]githubtest.File{"x": githubtest.Text("x")}})
			x.do(t, err)
		}, code: "branch_name_blocked", says: "Rename or delete it"},

		{name: "protected", meet: rejects("error: GH006: Protected branch update failed for refs/heads/agent/x.\n\n- Changes must be made through a pull request.\n"), code: "rules_rejected", says: "Changes must be made through a pull request."},
		{name: "ruleset", meet: rejects("error: GH013: Repository rule violations found for refs/heads/agent/x.\nReview all repository rules at https://github.example/rules\n\n- Commit message must match a given regex pattern: [A-Z]+-[0-9]+\n- Cannot create ref due to creations being restricted.\n"), code: "rules_rejected", says: "Commit message must match a given regex pattern: [A-Z]+-[0-9]+; Cannot create ref due to creations being restricted."},
		{name: "signatures", meet: rejects("error: GH013: Repository rule violations found\n- Commits must have verified signatures.\n"), code: "signatures_required", says: "verified signatures"},
		{name: "secret", meet: rejects(pushProtection), code: "secret_blocked", says: "(GitHub Personal Access Token in config/my app.yml:4, GitHub Personal Access Token in b.txt:12)"},
		{name: "large on GitHub", meet: rejects("error: File data/big.bin is 123.45 MB; this exceeds GitHub's file size limit of 100.00 MB\nerror: GH001: Large files detected. You may want to try Git Large File Storage.\n"), code: "file_too_large", says: "data/big.bin"},
		{name: "LFS", meet: rejects("error: GH008: Your push referenced at least 1 unknown Git LFS object:\n    0123\n"), code: "lfs_unsupported", says: "LFS pointer"},
		{name: "workflow on GitHub", meet: rejects("refusing to allow a GitHub App to create or update workflow `.github/workflows/ci.yml` without `workflows` permission\n"), code: "workflow_permission_missing", says: ".github/workflows"},
		{name: "unknown", meet: rejects("error: a custom hook said no\n"), code: "publish_failed", says: "rules"},
		{
			name: "workflow, then left out", files: map[string]string{"hello.txt": "hello\n", ".github/workflows/ci.yml": "on: pull_request\n"}, code: "workflow_permission_missing", says: ": .github/workflows/ci.yml. Leave them out",
			then: func(t *testing.T, x *scene, _ core.PublishResult) {
				x.askFor(t, x.s, core.Publication{Title: "Hello"}, core.PathChoices{".github/workflows/ci.yml": false})
				r, err := x.serve(t, x.options, x.s, x.ws)
				if err != nil || r.Files != 1 || len(r.LeftOut) != 1 || r.LeftOut[0] != ".github/workflows/ci.yml: left out by a person" {
					t.Errorf("result = %+v, %v", r, err)
				}
				if got := x.git(t, "show", x.s.Branch+":.github/workflows/ci.yml"); got != "on: push" {
					t.Errorf("workflow = %q", got)
				}
			},
		},
		{name: "file above GitHub's limit", meet: func(t *testing.T, x *scene) {
			f, err := os.Create(filepath.Join(x.ws.Dir, "huge.bin"))
			x.do(t, err)
			x.do(t, f.Truncate(101<<20))
			x.do(t, f.Close())
			x.paths = core.PathChoices{"huge.bin": true}
		}, code: "file_too_large", says: "huge.bin. Leave it out in the publish form"},

		{name: "token refused by the API", meet: refuses(pullsRoute, http.StatusUnauthorized, 1, `{"message":"Bad credentials","documentation_url":"https://docs.github.com/rest"}`), outcome: core.PublishOpened, then: onePull},
		{name: "token refused by git", meet: refuses(pushRoute, http.StatusUnauthorized, 1, ""), outcome: core.PublishOpened, then: onePull},
		{name: "every token refused", meet: refuses(pullsRoute, http.StatusUnauthorized, 0, `{"message":"Bad credentials","documentation_url":"https://docs.github.com/rest"}`), code: "github_app_unauthorized", says: "Try again"},
		{name: "push without an answer", meet: refuses(pushRoute, http.StatusBadGateway, 1, ""), outcome: core.PublishOpened, then: onePull},
		{name: "no push ever answered", meet: refuses(pushRoute, http.StatusBadGateway, 0, ""), code: "github_unavailable", says: "safe in the workspace"},
		{name: "pull request without an answer", meet: refuses(pullsRoute, http.StatusBadGateway, 1, "{}"), outcome: core.PublishOpened, then: onePull},
		{name: "no pull request ever answered", meet: refuses(pullsRoute, http.StatusBadGateway, 0, "{}"), code: "github_unavailable", says: "try again in a minute"},
		{name: "drafts unsupported", meet: func(t *testing.T, x *scene) {
			x.p.Draft = true
			refuses(pullsRoute, http.StatusUnprocessableEntity, 1, `{"message":"Draft pull requests are not supported in this repository.","documentation_url":"https://docs.github.com/rest"}`)(t, x)
		}, outcome: core.PublishOpened, then: func(t *testing.T, x *scene, r core.PublishResult) {
			onePull(t, x, r)
			if stored, err := x.store.PullRequest(t.Context(), x.s.ID); err != nil || stored.Draft || r.Draft {
				t.Errorf("record = %+v, %v", stored, err)
			}
		}},
		{name: "draft", meet: func(_ *testing.T, x *scene) { x.p.Draft = true }, outcome: core.PublishOpened, then: func(t *testing.T, x *scene, r core.PublishResult) {
			onePull(t, x, r)
			if stored, err := x.store.PullRequest(t.Context(), x.s.ID); err != nil || !stored.Draft || !r.Draft || !x.pulls(t, x.s)[0].Draft {
				t.Errorf("record = %+v, %v", stored, err)
			}
		}},
		{name: "description too long", meet: func(t *testing.T, x *scene) {
			x.p.Body = strings.Repeat("long ", 10_000)
			refuses(pullsRoute, http.StatusUnprocessableEntity, 1, `{"message":"Validation Failed","errors":[{"resource":"Issue","field":"body","code":"custom","message":"body is too long (maximum is 65536 characters)"}],"documentation_url":"https://docs.github.com/rest"}`)(t, x)
		}, outcome: core.PublishOpened, then: func(t *testing.T, x *scene, r core.PublishResult) {
			onePull(t, x, r)
			if body := x.pulls(t, x.s)[0].Body; len(body) > 16_000 || !strings.Contains(body, "`hello.txt` added") {
				t.Errorf("%d bytes", len(body))
			}
		}},
		{name: "no commits between", meet: refuses(pullsRoute, http.StatusUnprocessableEntity, 1, `{"message":"Validation Failed","errors":[{"resource":"PullRequest","code":"custom","message":"No commits between main and agent/x"}],"documentation_url":"https://docs.github.com/rest"}`), code: "nothing_to_publish", says: "nothing on the branch"},
	}
}

const pushProtection = `error: GH013: Repository rule violations found for refs/heads/agent/x.

- GITHUB PUSH PROTECTION
  —————————————————————————————————————————
    Resolve the following violations before pushing again

    - Push cannot contain secrets

      —— GitHub Personal Access Token ——————————————————————
       locations:
         - commit: 8728dbe67
           path: config/my app.yml:4
         - commit: 8728dbe67
           path: b.txt:12

       (?) To push, remove secret from commit(s) or follow this URL to allow the secret.
       https://github.example/octo-org/widgets/security/secret-scanning/unblock-secret/2T
`

// TestPublish_EverySituation is the table of what a publish may meet. In each row GitHub, git and the
// ledger are real, or the stand-in; nothing is overwritten, every token is given back, and the attempt has
// ended.
func TestPublish_EverySituation(t *testing.T) {
	t.Parallel()
	for _, row := range situations() {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			x := &scene{world: newWorld(t), p: core.Publication{Title: "Hello", Body: "Body."}}
			files := row.files
			if files == nil {
				files = map[string]string{"hello.txt": "hello\n"}
			}
			base := "main"
			if row.base != "" {
				base = row.base
				var err error
				x.base, err = x.github.Commit(t.Context(), fullName, githubtest.Commit{Branch: base, Message: "Release", Files: map[string]githubtest.File{"r": githubtest.Text("r")}})
				x.do(t, err)
			}
			x.s, x.ws = x.sessionOn(t, base, files)
			if row.before {
				x.first = x.must(t, x.s, x.ws, "Hello", "Body.")
				write(t, x.ws, map[string]string{"hello.txt": "hello again\n"})
			}
			if row.meet != nil {
				row.meet(t, x)
			}
			minted, head := x.unrevoked(t), x.branchHead(t)
			id := x.askFor(t, x.s, x.p, x.paths)
			result, err := x.serve(t, x.options, x.s, x.ws)
			x.github.ClearFaults()
			if got := x.unrevoked(t); !row.noToken && got > minted {
				t.Errorf("%d tokens were not given back", got-minted)
			}
			if row.code == "" && (err != nil || result.Outcome != row.outcome) {
				t.Fatalf("result = %+v, %v; want %s", result, err, row.outcome)
			}
			if row.code != "" {
				x.failedWith(t, err, row, id, head)
			}
			if row.then != nil {
				row.then(t, x, result)
			}
		})
	}
}

// branchHead is the session's branch on GitHub, "" when there is none.
func (x *scene) branchHead(t *testing.T) string {
	t.Helper()
	head, err := x.github.Head(t.Context(), fullName, x.s.Branch)
	if err != nil {
		return ""
	}
	return head
}

// failedWith checks an end with a code: its words, its record, and that GitHub has the branch as before, or
// with our commit when only the pull request was refused.
func (x *scene) failedWith(t *testing.T, err error, row situation, id core.PublicationID, head string) {
	t.Helper()
	wantCode(t, err, row.code)
	if text := core.MessageOf(err); !strings.Contains(text, row.says) || strings.ContainsAny(text, "\n\x1b") {
		t.Errorf("message = %q, want %q in it", text, row.says)
	}
	last, lookErr := x.store.Publication(t.Context(), x.s.ID, id)
	x.do(t, lookErr)
	if last.Step != core.PublishFailed || last.FailureCode != row.code || last.FailureText != core.MessageOf(err) {
		t.Errorf("ledger = %+v", last)
	}
	if now := x.branchHead(t); now != head && now != last.CommitSHA {
		t.Errorf("the branch is at %s, was at %s", now, head)
	}
	if row.files == nil && read(t, x.ws, "hello.txt") == "" {
		t.Error("the workspace lost its work")
	}
}
