package config

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"agent-sandboxing/core"
)

// Egress is what sandboxes may reach. Each field is named as its variable.
type Egress struct {
	// EgressMode is the loosest that a session may have.
	EgressMode core.EgressMode `env:"EGRESS_MODE" envDefault:"open"`
	// EgressAllow are hosts that the mode allowlist lets through in every repository, in lower case.
	EgressAllow []string `env:"EGRESS_ALLOW"`
	// EgressAllowPrivate are host:port of mirrors whose addresses are not public.
	EgressAllowPrivate []string `env:"EGRESS_ALLOW_PRIVATE"`
	// EgressMaxMiB is what one session may send and receive, together; 0 is no bound.
	EgressMaxMiB int64 `env:"EGRESS_MAX_MIB" envDefault:"20480"`
}

// fill brings the lists into the form that hosts are compared in. What cannot be read stays, for
// check to complain of.
func (e *Egress) fill() {
	for i, host := range e.EgressAllow {
		if parsed, err := core.ParseEgressHost(host); err == nil {
			e.EgressAllow[i] = parsed
		}
	}
	for i, target := range e.EgressAllowPrivate {
		e.EgressAllowPrivate[i] = strings.ToLower(strings.TrimSpace(target))
	}
	blank := func(s string) bool { return strings.TrimSpace(s) == "" }
	e.EgressAllow = slices.DeleteFunc(e.EgressAllow, blank)
	e.EgressAllowPrivate = slices.DeleteFunc(e.EgressAllowPrivate, blank)
}

func (e Egress) check() []error {
	var p []error
	if !e.EgressMode.Known() {
		p = append(p, errors.New("EGRESS_MODE must be open, allowlist or none"))
	}
	if e.EgressMaxMiB < 0 {
		p = append(p, errors.New("EGRESS_MAX_MIB must be 0 (no bound) or more"))
	}
	for _, host := range e.EgressAllow {
		if _, err := core.ParseEgressHost(host); err != nil {
			p = append(p, fmt.Errorf("EGRESS_ALLOW has an entry that is no host, %q. %s", host, core.MessageOf(err)))
		}
	}
	for _, target := range e.EgressAllowPrivate {
		if !hostPort(target) {
			p = append(p, fmt.Errorf("EGRESS_ALLOW_PRIVATE has an entry that is not host:port, %q. Write names as programs ask for them, such as mirror.corp.example:8081", target))
		}
	}
	return p
}

// hostPort accepts a name of one label too: internal mirrors have such. An address cannot be asked for
// from inside a sandbox.
func hostPort(target string) bool {
	host, port, err := net.SplitHostPort(target)
	if err != nil || net.ParseIP(host) != nil {
		return false
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 1 || n > 65535 {
		return false
	}
	_, err = core.ParseEgressHost("x." + host) // which demands two labels
	return err == nil && !strings.Contains(host, "*")
}

// checkCAFile looks at the file now, because it is used when the pages are up already.
func checkCAFile(path string) error {
	if path == "" {
		return nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("SANDBOX_CA_FILE cannot be read: %w", err)
	}
	for block, rest := pem.Decode(b); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			return nil
		}
	}
	return errors.New("SANDBOX_CA_FILE holds no certificate: it must be a PEM bundle of the authorities that sandboxes trust")
}
