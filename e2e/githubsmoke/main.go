// Command githubsmoke asks a real GitHub what no stand-in can know: whether revoking ends a token of
// either kind at once, how long a pushed branch is unknown to the pull requests, the exact words of
// refusals. It works with an operator's own App on a repository made for it, in which it leaves closed
// pull requests and no branch. Each line of its output is one question and GitHub's answer.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/core/github"
	"agent-sandboxing/core/redact"
)

// patience bounds all questions together.
const patience = 10 * time.Minute

// options are what GitHub and the repository are reached with.
type options struct {
	base, clientID, keyFile, repository, caFile string
	appID                                       int64
}

func main() {
	var o options
	flag.StringVar(&o.base, "base", "", "address of a GitHub Enterprise Server; empty is github.com")
	flag.Int64Var(&o.appID, "app", 0, "id of the App")
	flag.StringVar(&o.clientID, "client", "", "client id of the App")
	flag.StringVar(&o.keyFile, "key", "", "file with the App's private key")
	flag.StringVar(&o.repository, "repository", "", "owner/name of a repository for trying things out")
	flag.StringVar(&o.caFile, "ca", "", "file with the authorities that git trusts")
	flag.Parse()
	if err := run(context.Background(), o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "github-smoke:", err)
		os.Exit(1)
	}
}

// run asks every question and fails when one could not be asked.
func run(ctx context.Context, o options, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := open(o)
	if err != nil {
		return err
	}
	defer s.close(ctx)
	failed := 0
	for _, q := range questions() {
		answer, err := q.ask(s, ctx)
		if err != nil {
			failed++
			answer = "could not be asked: " + core.MessageOf(err) + " (" + err.Error() + ")"
		}
		text, _ := s.redact.Text(fmt.Sprintf("%-52s %s", q.name+":", answer))
		fmt.Fprintln(out, text)
		if err != nil && q.needed {
			return errors.New("nothing else can be asked without that answer")
		}
	}
	fmt.Fprintf(out, "github-smoke: %d questions, %d could not be asked\n%s", len(questions()), failed, byHand)
	if failed > 0 {
		return errors.New("not every question could be asked")
	}
	return nil
}

const byHand = `By hand, in a browser: install the App with ?state=x and change the selection of repositories later; does the
Setup URL get the state back both times (setup_action=install and update)?
`

// question is one thing to find out. After a needed one that fails nothing else makes sense.
type question struct {
	name   string
	needed bool
	ask    func(*smoke, context.Context) (string, error)
}

func questions() []question {
	return []question{
		{"The App and what it lacks", true, (*smoke).whoAmI},
		{"A JWT issued by the client id", false, (*smoke).clientIssuer},
		{"The repository under its installation", true, (*smoke).find},
		{"Installation tokens by X-GitHub-Stateless-S2S-Token", false, (*smoke).tokenKinds},
		{"Time until a revoked token is refused", false, (*smoke).revocation},
		{"Rules of a branch with metadata:read alone", false, (*smoke).rules},
		{"A mint for a repository that is not selected", false, (*smoke).foreignMint},
		{"A mint with a permission that was not granted", false, (*smoke).widerMint},
		{"Checkout, commit and push", true, (*smoke).push},
		{"Time until a pushed branch can be a head", false, (*smoke).open},
		{"A second pull request of the same head", false, (*smoke).second},
		{"A pull request without commits", false, (*smoke).empty},
		{"A pull request onto a base that is not there", false, (*smoke).baseless},
		{"Ready for review by REST", false, (*smoke).ready},
		{"Signature of a commit made by REST", false, (*smoke).signature},
		{"Deleting a workflow file without workflows:write", false, (*smoke).workflow},
		{"Reopening after the head moved", false, (*smoke).reopen},
		{"Cleaning up", false, (*smoke).clean},
	}
}

// open reads the key; it asks GitHub nothing.
func open(o options) (*smoke, error) {
	var missing []string
	for _, need := range []struct {
		name  string
		given bool
	}{{"GITHUB_APP_ID", o.appID > 0}, {"GITHUB_APP_PRIVATE_KEY_FILE", o.keyFile != ""}, {"SMOKE_REPOSITORY", strings.Count(o.repository, "/") == 1}} {
		if !need.given {
			missing = append(missing, need.name)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("this asks a real GitHub and needs %s; OPERATIONS.md says how to prepare it", strings.Join(missing, ", "))
	}
	bases, err := github.NewBases(o.base)
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(o.keyFile)
	if err != nil {
		return nil, fmt.Errorf("GITHUB_APP_PRIVATE_KEY_FILE: %w", err)
	}
	app, err := github.NewApp(github.AppConfig{Bases: bases, AppID: o.appID, PrivateKey: key})
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "github-smoke-")
	if err != nil {
		return nil, err
	}
	owner, name, _ := strings.Cut(o.repository, "/")
	s := &smoke{options: o, bases: bases, app: app, key: key, dir: dir, redact: redact.New(string(key)), id: core.NewID[core.SessionID]()}
	s.repo.Owner, s.repo.Name = owner, name
	return s, nil
}
