package chat

import (
	"context"
	"strings"

	"golang.org/x/net/idna"

	"agent-sandboxing/core"
)

// NetworkFor is what sandboxes of new sessions on a repository may reach: the operator's mode, or a
// stricter one that an administrator chose, with the hosts that an allowlist lets through.
func (s *Service) NetworkFor(ctx context.Context, id core.RepositoryID) (core.RepositoryNetwork, error) {
	chosen, err := s.store.RepositoryEgress(ctx, id)
	if err != nil {
		return core.RepositoryNetwork{}, err
	}
	hosts, err := s.store.RepositoryHosts(ctx, id)
	return core.RepositoryNetwork{
		Ceiling: s.egressMode, Chosen: chosen, Effective: chosen.Within(s.egressMode), Hosts: hosts, Operator: s.hosts,
	}, err
}

// egressFor is the mode that a new session begins with. Invalid egress_unknown, egress_above_ceiling.
func (s *Service) egressFor(ctx context.Context, id core.RepositoryID, asked core.EgressMode) (core.EgressMode, error) {
	chosen, err := s.store.RepositoryEgress(ctx, id)
	if err != nil {
		return "", err
	}
	ceiling := chosen.Within(s.egressMode)
	if asked == "" {
		return ceiling, nil
	}
	return asked, atMost(asked, ceiling)
}

func atMost(m, ceiling core.EgressMode) error {
	switch {
	case !m.Known():
		return core.Fail(core.Invalid, "egress_unknown", "Choose open, allowlist or none for the network.")
	case m.Within(ceiling) != m:
		return core.Fail(core.Invalid, "egress_above_ceiling",
			"The network mode "+string(m)+" lets more through than "+string(ceiling)+", which is the most that is allowed here. Choose that or a stricter one.")
	}
	return nil
}

// NetworkRights is what one person may change of a repository's network.
type NetworkRights struct {
	Hosts bool // its list of hosts
	Mode  bool // the mode of new sessions
}

// RepositoryNetwork shows what holds for a repository to whoever sees it on GitHub, and to
// administrators. NotFound for everybody else. The rights are as of at most 60 s ago.
func (s *Service) RepositoryNetwork(ctx context.Context, user core.User, installation core.InstallationID, id core.RepositoryID) (core.RepositoryNetwork, NetworkRights, error) {
	rights := NetworkRights{Mode: user.Role == core.Admin, Hosts: user.Role == core.Admin}
	repo, err := s.Repository(ctx, user, installation, id)
	switch {
	case err == nil:
		rights.Hosts = rights.Hosts || mayPush(repo) == nil
	case rights.Mode:
		if repo, err = s.administered(ctx, user, installation, id); err != nil {
			return core.RepositoryNetwork{}, NetworkRights{}, err
		}
	case notListed(err):
		return core.RepositoryNetwork{}, NetworkRights{}, core.NotFoundError().Because(err)
	default:
		return core.RepositoryNetwork{}, NetworkRights{}, err
	}
	n, err := s.NetworkFor(ctx, id)
	n.Repository = repo
	return n, rights, err
}

// SetRepositoryEgress chooses a stricter mode for new sessions on a repository, "" to go back to the
// operator's. Administrators only, NotFound for everybody else. Invalid egress_unknown,
// egress_above_ceiling.
func (s *Service) SetRepositoryEgress(ctx context.Context, user core.User, installation core.InstallationID, id core.RepositoryID, m core.EgressMode) error {
	repo, err := s.administered(ctx, user, installation, id)
	if err != nil {
		return err
	}
	if m != "" {
		if err := atMost(m, s.egressMode); err != nil {
			return err
		}
	}
	return s.store.SetRepositoryEgress(ctx, repo, m, user.ID)
}

// AddHost puts a host on a repository's list. Whoever may push to the repository may, GitHub is asked
// now, and so may administrators: what the list lets through, their commits could as well. Invalid
// host_invalid, Conflict hosts_full.
func (s *Service) AddHost(ctx context.Context, user core.User, installation core.InstallationID, id core.RepositoryID, host string) error {
	repo, err := s.mayList(ctx, user, installation, id)
	if err != nil {
		return err
	}
	if host, err = parseHost(host); err != nil {
		return err
	}
	return s.store.AddRepositoryHost(ctx, repo, host, user, "")
}

// RemoveHost takes a host off a repository's list. Who may is as in AddHost.
func (s *Service) RemoveHost(ctx context.Context, user core.User, installation core.InstallationID, id core.RepositoryID, host string) error {
	repo, err := s.mayList(ctx, user, installation, id)
	if err != nil {
		return err
	}
	return s.store.RemoveRepositoryHost(ctx, repo, host, user.ID)
}

// AllowHost is AddHost from a session's page, for a host that its sandbox was refused. The session's
// log says who did it.
func (s *Service) AllowHost(ctx context.Context, user core.User, id core.SessionID, host string) error {
	session, _, err := s.Open(ctx, user, id, "egress_host_added")
	if err != nil {
		return err
	}
	repo, err := s.mayList(ctx, user, session.Repository.InstallationID, session.Repository.ID)
	if err != nil {
		return err
	}
	if host, err = parseHost(host); err != nil {
		return err
	}
	return s.store.AddRepositoryHost(ctx, repo, host, user, id)
}

// mayList is the repository when the person may change its list of hosts.
func (s *Service) mayList(ctx context.Context, user core.User, installation core.InstallationID, id core.RepositoryID) (core.Repository, error) {
	if user.Role == core.Admin {
		return s.administered(ctx, user, installation, id)
	}
	repo, err := s.pushable(ctx, user.ID, installation, id)
	if notListed(err) {
		err = core.NotFoundError().Because(err)
	}
	return repo, err
}

// parseHost reads what a person typed; names in other scripts become what DNS calls them.
func parseHost(typed string) (string, error) {
	typed = strings.TrimSpace(typed)
	name, wild := strings.CutPrefix(typed, "*.")
	if ascii, err := idna.Lookup.ToASCII(name); err == nil {
		typed = ascii
		if wild {
			typed = "*." + ascii
		}
	}
	return core.ParseEgressHost(typed)
}

// Egress is everything that the sandbox of a session which was opened has reached or wanted.
func (s *Service) Egress(ctx context.Context, id core.SessionID) (core.EgressSummary, error) {
	return s.store.Egress(ctx, id, 0)
}

// egressPolicy is what a session's sandbox may reach now.
func (s *Service) egressPolicy(t core.Timeline) core.EgressPolicy {
	return core.EgressPolicy{Mode: t.Session.EgressMode, Hosts: t.Hosts}.Under(s.egressMode, s.hosts)
}
