package mirror

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"agent-sandboxing/core"
)

// remote is a git server's repository with the credential for it.
type remote struct {
	url    string // token-free
	scope  string // scheme://host[:port], the only place that gets the credential
	scheme string
	token  core.RepoToken
}

// newRemote refuses every URL that could carry the credential elsewhere.
func newRemote(address string, token core.RepoToken) (*remote, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, fmt.Errorf("git address: %w", err)
	case u.Scheme != "https" && u.Scheme != "http", u.Host == "", u.User != nil, u.RawQuery != "", u.Fragment != "":
		return nil, fmt.Errorf("git address of scheme %q is not a plain web address", u.Scheme)
	case token.Value == "" || strings.ContainsAny(token.Value, "\r\n\x00"):
		return nil, fmt.Errorf("the token cannot be handed to git")
	}
	return &remote{url: address, scope: u.Scheme + "://" + u.Host, scheme: u.Scheme, token: token}, nil
}

// config lets git ask for the credential on the inherited descriptor, for this host alone: a
// redirect or a second host finds no helper, no prompt and fails. Nothing in it is secret.
func (r *remote) config(caFile string, stall time.Duration) []string {
	config := []string{
		"protocol." + r.scheme + ".allow=always",
		fmt.Sprintf(`credential.%s.helper=!f() { if test "$1" = get; then cat <&%d; fi; }; f`, r.scope, credentialFD),
		"http.lowSpeedLimit=1000", // bytes a second
		fmt.Sprintf("http.lowSpeedTime=%d", int(stall.Seconds())),
	}
	if caFile != "" {
		config = append(config, "http.sslCAInfo="+caFile)
	}
	return config
}

// credential is the read end of a pipe that already holds everything the helper answers. The token
// exists in our memory and in the pipe, and in the pipe only until it is read.
func (r *remote) credential() (*os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("credential pipe: %w", err)
	}
	_, err = fmt.Fprintf(write, "username=x-access-token\npassword=%s\n", r.token.Value)
	if closeErr := write.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, fmt.Errorf("credential pipe: %w", err)
	}
	return read, nil
}
