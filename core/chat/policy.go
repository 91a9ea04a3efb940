package chat

import (
	"context"

	"agent-sandboxing/core"
)

// PolicyFor is the shell policy that a new session on a repository gets: the operator's, or a stricter
// one that an administrator chose.
func (s *Service) PolicyFor(ctx context.Context, id core.RepositoryID) (core.RepositoryPolicy, error) {
	chosen, err := s.store.RepositoryPolicy(ctx, id)
	if err != nil {
		return core.RepositoryPolicy{}, err
	}
	return core.RepositoryPolicy{Ceiling: s.bashPolicy, Chosen: chosen, Effective: chosen.Within(s.bashPolicy)}, nil
}

// RepositoryPolicy shows an administrator what holds for a repository. NotFound for everybody else.
func (s *Service) RepositoryPolicy(ctx context.Context, user core.User, installation core.InstallationID, id core.RepositoryID) (core.RepositoryPolicy, error) {
	repo, err := s.administered(ctx, user, installation, id)
	if err != nil {
		return core.RepositoryPolicy{}, err
	}
	p, err := s.PolicyFor(ctx, id)
	p.Repository = repo
	return p, err
}

// SetRepositoryPolicy chooses a stricter policy for new sessions on a repository, "" to go back to the
// operator's. Administrators only, NotFound for everybody else. Invalid policy_unknown, policy_above_ceiling.
func (s *Service) SetRepositoryPolicy(ctx context.Context, user core.User, installation core.InstallationID, id core.RepositoryID, p core.BashPolicy) (core.RepositoryPolicy, error) {
	repo, err := s.administered(ctx, user, installation, id)
	if err != nil {
		return core.RepositoryPolicy{}, err
	}
	switch {
	case p != "" && !p.Known():
		return core.RepositoryPolicy{}, core.Fail(core.Invalid, "policy_unknown", "Choose readonly, seed, build or open, or none.")
	case p != "" && p.Within(s.bashPolicy) != p:
		return core.RepositoryPolicy{}, core.Fail(core.Invalid, "policy_above_ceiling",
			"The policy "+string(p)+" lets more through than "+string(s.bashPolicy)+", which the operator has set. Choose that or a stricter one.")
	}
	if err := s.store.SetRepositoryPolicy(ctx, repo, p, user.ID); err != nil {
		return core.RepositoryPolicy{}, err
	}
	set, err := s.PolicyFor(ctx, id)
	set.Repository = repo
	return set, err
}

// administered is a repository that an administrator may settle: one that GitHub lists for them, or one
// on which somebody has started a session.
func (s *Service) administered(ctx context.Context, user core.User, installation core.InstallationID, id core.RepositoryID) (core.Repository, error) {
	if user.Role != core.Admin {
		return core.Repository{}, core.NotFoundError()
	}
	repo, err := s.Repository(ctx, user, installation, id)
	if err == nil || !notListed(err) {
		return repo, err
	}
	if repo, err = s.store.Repository(ctx, id); err == nil && repo.InstallationID != installation {
		return core.Repository{}, core.NotFoundError()
	}
	return repo, err
}
