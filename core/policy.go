package core

import "slices"

// BashPolicy decides which shell texts the agent may run.
type BashPolicy string

const (
	PolicySeed     BashPolicy = "seed"
	PolicyBuild    BashPolicy = "build"
	PolicyReadonly BashPolicy = "readonly"
	PolicyOpen     BashPolicy = "open"
)

// byStrictness are the policies, the strictest first: each lets through what the one before it does.
func byStrictness() []BashPolicy {
	return []BashPolicy{PolicyReadonly, PolicySeed, PolicyBuild, PolicyOpen}
}

// Known says that p is one of the policies.
func (p BashPolicy) Known() bool { return slices.Contains(byStrictness(), p) }

// Within returns p where it is at least as strict as ceiling, else ceiling. An unknown or empty p adds
// nothing to the ceiling.
func (p BashPolicy) Within(ceiling BashPolicy) BashPolicy {
	order := byStrictness()
	if at := slices.Index(order, p); at >= 0 && at <= slices.Index(order, ceiling) {
		return p
	}
	return ceiling
}

// RepositoryPolicy is which shell policy new sessions on a repository get. Ceiling is the operator's,
// Chosen an administrator's, "" for none; Effective is the stricter of both.
type RepositoryPolicy struct {
	Repository Repository
	Ceiling    BashPolicy
	Chosen     BashPolicy
	Effective  BashPolicy
}
