package github

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	gh "github.com/google/go-github/v62/github"

	"agent-sandboxing/core"
)

// BranchesShown and BranchesScanned are how many branches one and ten requests bring.
const (
	BranchesShown   = pageSize
	BranchesScanned = 10 * pageSize
)

// Branches lists the first branches by name, at most limit, and says whether there are more. Names and
// commits only. An empty repository has none.
func (u *User) Branches(ctx context.Context, t core.UserToken, repo core.Repository, limit int) (list []core.Branch, more bool, err error) {
	client, err := u.client(t)
	if err != nil {
		return nil, false, err
	}
	page := func(ctx context.Context, n int) ([]core.Branch, int, error) {
		o := &gh.BranchListOptions{ListOptions: gh.ListOptions{Page: n, PerPage: pageSize}}
		found, resp, err := client.Repositories.ListBranches(ctx, repo.Owner, repo.Name, o)
		if err != nil {
			return nil, 0, classify(ctx, err, byPerson, u.now())
		}
		var list []core.Branch
		for _, b := range found {
			if b.GetName() != "" && validSHA(b.GetCommit().GetSHA()) {
				list = append(list, core.Branch{Name: b.GetName(), SHA: b.GetCommit().GetSHA(), Protected: b.GetProtected()})
			}
		}
		if resp.NextPage > n && resp.LastPage == 0 {
			return list, math.MaxInt, nil // there is no saying how many
		}
		return list, resp.LastPage, nil
	}
	first, last, err := page(ctx, 1)
	if err != nil {
		return nil, false, err
	}
	most := max(1, limit/pageSize)
	pages := make([][]core.Branch, max(1, min(last, most)))
	pages[0] = first
	err = atOnce(ctx, 2, len(pages), func(ctx context.Context, n int) (err error) {
		pages[n-1], _, err = page(ctx, n)
		return err
	})
	return slices.Concat(pages...), last > most, err
}

// BranchesNamed lists the branches whose name begins with prefix, all of them and among any number in
// one request: this list has no pages.
func (u *User) BranchesNamed(ctx context.Context, t core.UserToken, repo core.Repository, prefix string) ([]core.Branch, error) {
	if !isRefPath(strings.TrimSuffix(prefix, "/")) {
		return nil, nil
	}
	client, err := u.client(t)
	if err != nil {
		return nil, err
	}
	refs, _, err := client.Git.ListMatchingRefs(ctx, repo.Owner, repo.Name, &gh.ReferenceListOptions{Ref: "heads/" + prefix})
	if err != nil {
		return nil, classify(ctx, err, byPerson, u.now())
	}
	var list []core.Branch
	for _, r := range refs {
		if name, ok := strings.CutPrefix(r.GetRef(), "refs/heads/"); ok && validSHA(r.GetObject().GetSHA()) {
			list = append(list, core.Branch{Name: name, SHA: r.GetObject().GetSHA()})
		}
	}
	return list, nil
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
