package githubtest

import (
	"net/http"
	"slices"
	"strings"
)

// caller is who sent a request: the App itself (by JWT), a person or an installation (by token).
// The zero caller is anonymous.
type caller struct {
	app   bool
	token token
}

func (c caller) person() bool       { return c.token.Kind == kindUser }
func (c caller) installation() bool { return c.token.Kind == kindInstallation }
func (c caller) anonymous() bool    { return !c.app && c.token.Kind == "" }
func (c caller) login() string      { return c.token.Login }

// callerOf reads an access token; a JWT is not one.
func (s *Server) callerOf(secret string) (caller, bool) {
	t, ok := s.liveToken(secret, kindUser, kindInstallation)
	if !ok {
		return caller{}, false
	}
	if t.Kind == kindInstallation {
		t.Login = s.Config().AppSlug + "[bot]"
	}
	return caller{token: t}, true
}

// authenticate reads the Authorization header of a REST request.
func (s *Server) authenticate(r *http.Request) (caller, error) {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch {
	case scheme == "":
		return caller{}, nil
	case !strings.EqualFold(scheme, "Bearer") && !strings.EqualFold(scheme, "token"):
		return caller{}, fail(http.StatusUnauthorized, "Bad credentials")
	case strings.Count(secret, ".") == 2 && !strings.HasPrefix(secret, "gh"):
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := s.key.verify(secret, s.state.App, s.now()); err != nil {
			return caller{}, fail(http.StatusUnauthorized, err.Error())
		}
		return caller{app: true}, nil
	}
	c, ok := s.callerOf(secret)
	if !ok {
		return caller{}, fail(http.StatusUnauthorized, "Bad credentials")
	}
	return c, nil
}

// permissionOf is what a person may do with a repository.
func (s *Server) permissionOf(login string, r repository) Permission {
	p := r.Access[strings.ToLower(login)]
	if strings.EqualFold(login, r.Owner) {
		p = Administer
	}
	if p == NoPermission && !r.Private {
		return Pull
	}
	return p
}

// may says whether the caller's credential allows the level ("read" or "write") of an App permission
// on a repository: a person's token is what the person and the App both may, an installation's is
// what it was narrowed to. A public repository can be read with any token.
func (c caller) may(s *Server, r repository, permission, level string) bool {
	if !r.Private && level == "read" && !c.app {
		return true
	}
	switch {
	case c.person():
		want := Pull
		if level == "write" {
			want = Push
		}
		in, ok := s.installationOn(r)
		return ok && s.permissionOf(c.token.Login, r).rank() >= want.rank() && grants(in.Permissions, permission, level)
	case c.installation():
		in, ok := s.installation(c.token.Installation)
		return ok && !in.Suspended && slices.Contains(c.token.Repositories, r.ID) &&
			slices.ContainsFunc(s.installed(in), func(have repository) bool { return have.ID == r.ID }) &&
			grants(c.token.Permissions, permission, level)
	}
	return false
}

// sees says whether the repository exists for the caller.
func (c caller) sees(s *Server, r repository) bool {
	if c.person() && !r.Private {
		return true
	}
	return c.may(s, r, "metadata", "read")
}

// installationOn is the installation that reaches a repository.
func (s *Server) installationOn(r repository) (installation, bool) {
	for _, in := range s.installations() {
		if !in.Suspended && slices.ContainsFunc(s.installed(in), func(have repository) bool { return have.ID == r.ID }) {
			return in, true
		}
	}
	return installation{}, false
}

// grants says whether permissions hold at least the level.
func grants(permissions map[string]string, name, level string) bool {
	have := permissions[name]
	return have == "write" || have != "" && level == "read"
}
