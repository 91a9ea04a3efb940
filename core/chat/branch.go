package chat

import (
	"context"
	"slices"
	"strings"

	"agent-sandboxing/core"
)

// MaxBranches bounds what one search answers, and scannedBranches how many are read to find a text
// inside their names: beyond that only names that begin with it are found.
const (
	MaxBranches     = 30
	scannedBranches = 1000
)

// scan is the beginning of a repository's branches.
type scan struct {
	list []core.Branch
	more bool // there are others behind it
}

// Branches returns at most MaxBranches whose name contains query in any case, the default branch first,
// and whether there are more. It costs one request to look at the first ones and one for each search,
// and at most ten more a minute, whatever is searched for.
func (s *Service) Branches(ctx context.Context, user core.User, repo core.Repository, query string) (found []core.Branch, more bool, err error) {
	if repo.IsFixture() {
		b, err := s.fixtureBranch(ctx, repo)
		return []core.Branch{b}, false, err
	}
	var named []core.Branch
	limit := MaxBranches
	if query != "" {
		limit = scannedBranches
		err := s.withToken(ctx, user.ID, func(t core.UserToken) (err error) {
			named, err = s.github.BranchesNamed(ctx, t, repo, query)
			return err
		})
		if err != nil {
			return nil, false, err
		}
	}
	var first scan
	if len(named) <= MaxBranches {
		if first, err = s.firstBranches(ctx, user.ID, repo, limit); err != nil || len(first.list) == 0 {
			return nil, false, err
		}
	}
	query = strings.ToLower(query)
	add := func(b core.Branch) {
		if !strings.Contains(strings.ToLower(b.Name), query) {
			return
		}
		if i := slices.IndexFunc(found, func(have core.Branch) bool { return have.Name == b.Name }); i >= 0 {
			found[i].Protected = found[i].Protected || b.Protected
			return
		}
		found = append(found, b)
	}
	// The default branch is first wherever it is; the form resolves what is chosen.
	add(core.Branch{Name: repo.DefaultBranch})
	for _, b := range slices.Concat(named, first.list) {
		add(b)
	}
	return found[:min(len(found), MaxBranches)], first.more || len(found) > MaxBranches, nil
}

// firstBranches are the first limit branches by name, at most 60 s old.
func (s *Service) firstBranches(ctx context.Context, user core.UserID, repo core.Repository, limit int) (scan, error) {
	key := repositoryKey{listKey{user, repo.InstallationID}, repo.ID}
	known, ok := s.branches.get(key)
	if ok && (!known.more || len(known.list) >= limit) {
		return known, nil
	}
	err := s.withToken(ctx, user, func(t core.UserToken) (err error) {
		known.list, known.more, err = s.github.Branches(ctx, t, repo, limit)
		return err
	})
	if err != nil {
		return scan{}, err
	}
	s.branches.put(key, known)
	return known, nil
}
