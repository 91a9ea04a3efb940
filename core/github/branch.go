package github

import (
	"context"
	"errors"
	"fmt"
	"strings"

	gh "github.com/google/go-github/v62/github"

	"agent-sandboxing/core"
)

// scannedBranches bounds how many are paged through to find a text inside their names; beyond that
// only names that begin with it are found.
const scannedBranches = 1000

// Branches returns up to limit branches whose name contains query (in any case), the default branch
// first, without their commits' subjects. An empty repository has none.
func (u *User) Branches(ctx context.Context, t core.UserToken, repo core.Repository, query string, limit int) ([]core.Branch, error) {
	client, err := u.client(t)
	if err != nil {
		return nil, err
	}
	if limit <= 0 {
		limit = pageSize
	}
	found := branchList{query: strings.ToLower(query), limit: limit}
	if found.matches(repo.DefaultBranch) {
		// Asked for alone, because among thousands it may be on the last page.
		b, err := u.ref(ctx, client, repo, repo.DefaultBranch)
		switch core.CodeOf(err) {
		case CodeEmptyRepository:
			return nil, nil
		case "not_found":
		default:
			if err != nil {
				return nil, err
			}
			found.add(b)
		}
	}
	more := false
	err = eachPage(scannedBranches, func(o gh.ListOptions) (int, *gh.Response, error) {
		list, resp, err := client.Repositories.ListBranches(ctx, repo.Owner, repo.Name, &gh.BranchListOptions{ListOptions: o})
		if err != nil {
			return 0, resp, classify(ctx, err, byPerson, u.now())
		}
		for _, b := range list {
			found.add(core.Branch{Name: b.GetName(), SHA: b.GetCommit().GetSHA(), Protected: b.GetProtected()})
		}
		more = resp.NextPage != 0
		if found.full() {
			return scannedBranches, resp, nil
		}
		return len(list), resp, nil
	})
	if err != nil {
		return nil, err
	}
	if more && !found.full() && isRefPath(query) {
		refs, _, err := client.Git.ListMatchingRefs(ctx, repo.Owner, repo.Name, &gh.ReferenceListOptions{Ref: "heads/" + query})
		if err != nil {
			return nil, classify(ctx, err, byPerson, u.now())
		}
		for _, r := range refs {
			if name, ok := strings.CutPrefix(r.GetRef(), "refs/heads/"); ok {
				found.add(core.Branch{Name: name, SHA: r.GetObject().GetSHA()})
			}
		}
	}
	return found.list, nil
}

// branchList collects matching branches once each, up to a limit.
type branchList struct {
	query string // lower case
	limit int
	list  []core.Branch
}

func (l *branchList) full() bool { return len(l.list) >= l.limit }

func (l *branchList) matches(name string) bool {
	return name != "" && strings.Contains(strings.ToLower(name), l.query)
}

// add takes a branch that matches. The default branch, which came first and alone, learns from its
// second coming whether it is protected.
func (l *branchList) add(b core.Branch) {
	if !l.matches(b.Name) || !validSHA(b.SHA) {
		return
	}
	for i, have := range l.list {
		if have.Name == b.Name {
			l.list[i].Protected = have.Protected || b.Protected
			return
		}
	}
	if !l.full() {
		l.list = append(l.list, b)
	}
}

// Branch resolves one branch exactly, with its commit's subject and time. not_found, empty_repository.
func (u *User) Branch(ctx context.Context, t core.UserToken, repo core.Repository, name string) (core.Branch, error) {
	client, err := u.client(t)
	if err != nil {
		return core.Branch{}, err
	}
	b, err := u.ref(ctx, client, repo, name)
	if err != nil {
		return core.Branch{}, err
	}
	c, _, err := client.Git.GetCommit(ctx, repo.Owner, repo.Name, b.SHA)
	if err != nil {
		return core.Branch{}, classify(ctx, err, byPerson, u.now())
	}
	if c.GetSHA() != b.SHA {
		return core.Branch{}, unavailable().Because(fmt.Errorf("asked for commit %s, got another", b.SHA))
	}
	b.Subject, _, _ = strings.Cut(strings.TrimSpace(c.GetMessage()), "\n")
	b.CommittedAt = c.GetCommitter().GetDate().Time
	return b, nil
}

// ref reads git/ref and not the branch route, whose go-github method goes round the error handling
// and follows redirects with the credential.
func (u *User) ref(ctx context.Context, client *gh.Client, repo core.Repository, name string) (core.Branch, error) {
	if !isRefPath(name) {
		return core.Branch{}, core.NotFoundError()
	}
	r, _, err := client.Git.GetRef(ctx, repo.Owner, repo.Name, "heads/"+name)
	if err != nil {
		return core.Branch{}, classify(ctx, err, byPerson, u.now())
	}
	sha := r.GetObject().GetSHA()
	switch {
	case r.GetRef() != "refs/heads/"+name:
		return core.Branch{}, core.NotFoundError()
	case r.GetObject().GetType() != "commit" || !validSHA(sha):
		return core.Branch{}, unavailable().Because(errors.New("a branch without a commit"))
	}
	return core.Branch{Name: name, SHA: sha}, nil
}

// isRefPath says that a name can stand in an address as it is: a dot segment would change the route.
func isRefPath(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}
