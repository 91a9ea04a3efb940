package githubtest

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"agent-sandboxing/core/github/githubtest/contract"
)

// held is h with every exchange of its REST API held to GitHub's own description.
func (s *Server) held(h http.Handler) (http.Handler, error) {
	description, err := contract.New()
	if err != nil {
		return nil, err
	}
	const api = "/api/v3"
	guarded := description.Guard(api, h, s.exchanged)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, api+"/") {
			guarded.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	}), nil
}

// exchanged judges one exchange. It writes a line about it to the file that TEST_CONTRACT_LOG names, for
// the sum over many processes: "ok" or "violation", method, path, status, and what is wrong.
func (s *Server) exchanged(x contract.Exchange, broken error) error {
	if s.lenient && x.Status >= 400 && errors.Is(broken, contract.ErrRequest) {
		return nil
	}
	verdict, text := "ok", ""
	if broken != nil {
		verdict, text = "violation", strings.ReplaceAll(broken.Error(), "\n", " ")
		s.log.Error("exchange breaks GitHub's description", "method", x.Method, "path", x.URL.Path, "error", broken)
	}
	if err := note(verdict, x.Method, x.URL.Path, x.Status, text); err != nil {
		s.log.Error("write the contract's log", "error", err)
	}
	return broken
}

func note(line ...any) error {
	path := os.Getenv("TEST_CONTRACT_LOG")
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line...)
	return errors.Join(err, f.Close())
}
