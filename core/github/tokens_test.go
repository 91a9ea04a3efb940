package github_test

import (
	"context"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github"
	"agent-sandboxing/core/github/githubtest"
)

const mintRoute = "POST /api/v3/app/installations/{id}/access_tokens"

// tokens are the world's, with a list of those that were made known.
func (w *world) tokens() (*github.Tokens, *[]string) {
	var known []string
	return github.NewTokens(w.app, func(t core.RepoToken) { known = append(known, t.Value) }), &known
}

// count is how many requests the stand-in got whose line begins with prefix.
func (w *world) count(prefix string) (n int) {
	for _, r := range w.server.Requests() {
		if strings.HasPrefix(r, prefix) {
			n++
		}
	}
	return n
}

func (w *world) minted() int { return w.count("POST /api/v3/app/installations/") }

func take(t *testing.T, tokens *github.Tokens, repo core.Repository, purpose core.TokenPurpose) core.RepoToken {
	t.Helper()
	token, err := tokens.Mint(t.Context(), repo, purpose)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestTokens_ReadersOfARepositoryShareOneAndPublishersDoNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	other := w.addRepository(t, "gadgets", true)
	other.InstallationID = w.repo.InstallationID
	tokens, known := w.tokens()
	first := take(t, tokens, w.repo, core.TokenRead)
	if again := take(t, tokens, w.repo, core.TokenRead); again.Value != first.Value {
		t.Error("the second reader got another token")
	}
	if foreign := take(t, tokens, other, core.TokenRead); foreign.Value == first.Value {
		t.Error("another repository got the same token")
	}
	one, two := take(t, tokens, w.repo, core.TokenPublish), take(t, tokens, w.repo, core.TokenPublish)
	if one.Value == two.Value || one.Value == first.Value {
		t.Error("a publish token is shared")
	}
	if w.minted() != 4 || len(*known) != 4 {
		t.Errorf("minted %d, made known %d; want 4", w.minted(), len(*known))
	}
}

func TestTokens_ManyReadersMintOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	tokens, _ := w.tokens()
	var readers sync.WaitGroup
	values := make([]string, 40)
	for i := range values {
		readers.Go(func() {
			if token, err := tokens.Mint(t.Context(), w.repo, core.TokenRead); err != nil {
				t.Error(err)
			} else {
				values[i] = token.Value
			}
		})
	}
	readers.Wait()
	if slices.Sort(values); values[0] == "" || values[0] != values[len(values)-1] || w.minted() != 1 {
		t.Errorf("%d mints, first %q, last %q", w.minted(), values[0], values[len(values)-1])
	}
}

// A shared token is used until five minutes before its end.
func TestTokens_AreSharedUntilFiveMinutesBeforeTheirEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	tokens, _ := w.tokens()
	first := take(t, tokens, w.repo, core.TokenRead)
	w.server.Advance(54 * time.Minute)
	if at54 := take(t, tokens, w.repo, core.TokenRead); at54.Value != first.Value {
		t.Error("another one after 54 minutes")
	}
	w.server.Advance(time.Minute + time.Second)
	if at55 := take(t, tokens, w.repo, core.TokenRead); at55.Value == first.Value {
		t.Error("the same one after 55 minutes")
	}
}

func TestTokens_NobodyGetsARefusedOneAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	tokens, _ := w.tokens()
	first := take(t, tokens, w.repo, core.TokenRead)
	tokens.Refused(core.RepoToken{Value: "another"})
	if same := take(t, tokens, w.repo, core.TokenRead); same.Value != first.Value {
		t.Error("the refusal of another token dropped this one")
	}
	tokens.Refused(first)
	if next := take(t, tokens, w.repo, core.TokenRead); next.Value == first.Value {
		t.Error("the refused token is handed out again")
	}
}

func TestTokens_ARefusedMintIsNotKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	tokens, known := w.tokens()
	w.server.Fail(githubtest.Fault{Pattern: mintRoute, Status: http.StatusBadGateway, Count: 1})
	_, err := tokens.Mint(t.Context(), w.repo, core.TokenRead)
	wantCode(t, err, core.Unavailable, github.CodeUnavailable)
	take(t, tokens, w.repo, core.TokenRead)
	if len(*known) != 1 {
		t.Errorf("%d tokens were made known", len(*known))
	}
}

// One reader who gives up takes nothing from those who wait for the same token.
func TestTokens_TheEndOfOneReaderIsNotThatOfTheOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	tokens, _ := w.tokens()
	w.server.Fail(githubtest.Fault{Pattern: mintRoute, Delay: 300 * time.Millisecond, Count: 1})
	ctx, cancel := context.WithCancelCause(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := tokens.Mint(ctx, w.repo, core.TokenRead)
		first <- err
	}()
	for w.minted() == 0 {
		runtime.Gosched()
	}
	cancel(core.ErrCancelledByUser)
	if err := <-first; err != core.ErrCancelledByUser { //nolint:errorlint // the cause itself
		t.Errorf("the one who gave up: %v", err)
	}
	take(t, tokens, w.repo, core.TokenRead)
	if w.minted() != 1 {
		t.Errorf("minted %d", w.minted())
	}
}

func TestTokens_CloseRevokesWhatIsShared(t *testing.T) {
	t.Parallel()
	w := newWorld(t, githubtest.Options{})
	other := w.addRepository(t, "gadgets", true)
	other.InstallationID = w.repo.InstallationID
	tokens, _ := w.tokens()
	for _, repo := range []core.Repository{w.repo, other} {
		take(t, tokens, repo, core.TokenRead)
	}
	tokens.Close(t.Context())
	if n := w.count("DELETE /api/v3/installation/token"); n != 2 {
		t.Errorf("%d revoked, want 2", n)
	}
}
