package githubtest

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// AddRepositories adds many at once, each as r with its number at the end of the name. They can be
// listed, chosen and asked about, but hold no git.
func (s *Server) AddRepositories(r Repository, n int) error {
	if _, ok := s.account(r.Owner); !ok {
		return fmt.Errorf("add repositories: no account %q", r.Owner)
	}
	return s.update(func(st *state) error {
		access := map[string]Permission{}
		for login, p := range r.Access {
			access[strings.ToLower(login)] = p
		}
		for i := range n {
			st.Repositories = append(st.Repositories, repository{
				ID: s.nextID(), Owner: r.Owner, Name: fmt.Sprintf("%s-%04d", r.Name, i), Description: r.Description, Language: r.Language,
				DefaultBranch: "main", Private: r.Private, Archived: r.Archived, Access: maps.Clone(access),
				CreatedAt: s.now(), PushedAt: s.now().Add(time.Duration(i) * time.Second),
			})
		}
		return nil
	})
}

// AddBranches makes many at once, where another one is.
func (s *Server) AddBranches(ctx context.Context, fullName, from string, names ...string) error {
	r, _, ok := s.repositoryNamed(fullName)
	if !ok {
		return fmt.Errorf("add branches: no repository %q", fullName)
	}
	sha, err := s.branch(ctx, r.ID, from)
	if err != nil {
		return err
	}
	refs, err := s.branches(ctx, r.ID, "")
	if err != nil {
		return err
	}
	for _, name := range names {
		refs = append(refs, gitRef{Name: name, SHA: sha})
	}
	slices.SortFunc(refs, func(a, b gitRef) int { return strings.Compare(a.Name, b.Name) })
	// As git packs them: a file for each of thousands takes a disk a while.
	packed := []byte("# pack-refs with: peeled fully-peeled sorted \n")
	for _, ref := range refs {
		packed = append(packed, ref.SHA+" refs/heads/"+ref.Name+"\n"...)
	}
	return os.WriteFile(filepath.Join(s.bareDir(r.ID), "packed-refs"), packed, 0o600)
}
