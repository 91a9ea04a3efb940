package githubtest

import (
	"context"
	"fmt"
	"maps"
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
	var all strings.Builder
	for _, name := range names {
		fmt.Fprintf(&all, "create refs/heads/%s %s\n", name, sha)
	}
	_, err = s.git(ctx, r.ID, []byte(all.String()), "update-ref", "--stdin")
	return err
}
