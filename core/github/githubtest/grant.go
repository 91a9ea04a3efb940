package githubtest

import (
	"crypto/subtle"
	"net/http"
	"slices"
)

// asClient asks for the App's client id and secret.
func (s *Server) asClient(h func(w http.ResponseWriter, r *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, secret, _ := r.BasicAuth()
		// The header is no token: api would refuse it.
		r.Header.Del("Authorization")
		s.api(func(w http.ResponseWriter, r *http.Request, _ caller) error {
			c := s.Config()
			if id != c.ClientID || subtle.ConstantTimeCompare([]byte(secret), []byte(c.ClientSecret)) != 1 {
				return fail(http.StatusUnauthorized, "Bad credentials")
			}
			if r.PathValue("client") != c.ClientID {
				return notFound()
			}
			return h(w, r)
		})(w, r)
	}
}

// deleteGrant ends everything that the token's owner gave to the App.
func (s *Server) deleteGrant(w http.ResponseWriter, r *http.Request) error {
	var ask struct {
		AccessToken string `json:"access_token"`
	}
	if err := decodeBody(r, &ask); err != nil {
		return err
	}
	t, ok := s.liveToken(ask.AccessToken, kindUser)
	if !ok {
		return notFound()
	}
	err := s.update(func(st *state) error {
		st.Tokens = slices.DeleteFunc(st.Tokens, func(have token) bool {
			return have.Login == t.Login && (have.Kind == kindUser || have.Kind == kindRefresh)
		})
		return nil
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
