package egress

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/toolbox/wire"
)

var (
	errNoHost  = errors.New("not a host name")
	errAddress = errors.New("an address, not a host name")
)

// ParseHost returns a host name as programs look it up: lower case, punycode, no final dot. Addresses
// are no names.
func ParseHost(text string) (string, error) {
	name := strings.ToLower(strings.TrimSuffix(text, "."))
	if strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 }) {
		ascii, err := idna.Lookup.ToASCII(name)
		if err != nil {
			return "", errNoHost
		}
		name = ascii
	}
	switch {
	case isAddress(name), strings.Contains(name, ":"):
		return "", errAddress
	case !wire.IsHostName(name):
		return "", errNoHost
	}
	return name, nil
}

// ParsePattern returns an entry of an allow-list: a host, or *. and a host of two labels at least for
// every name below it.
func ParsePattern(text string) (string, error) {
	below, wild := strings.CutPrefix(text, "*.")
	host, err := ParseHost(below)
	switch {
	case err != nil:
		return "", fmt.Errorf("%q is %w", text, err)
	case !wild:
		return host, nil
	case !strings.Contains(host, "."):
		return "", fmt.Errorf("%q is too wide: name at least two labels after the star", text)
	}
	return "*." + host, nil
}

// matches says whether a pattern of ParsePattern covers name.
func matches(pattern, name string) bool {
	if below, wild := strings.CutPrefix(pattern, "*"); wild {
		return len(name) > len(below) && strings.HasSuffix(name, below)
	}
	return pattern == name
}

// isAddress says whether a name would be taken for an IPv4 address by some program: as every form of it
// does, it ends in a number, decimal, octal or hexadecimal. No top-level domain is one.
func isAddress(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if last == "" {
		return false
	}
	if digits, hex := strings.CutPrefix(last, "0x"); hex {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}

// parsePrivate reads the operator's exceptions.
func parsePrivate(entries []string) (map[target]bool, error) {
	private := map[target]bool{}
	ports := map[uint16]bool{portHTTP: true, portHTTPS: true}
	for _, entry := range entries {
		name, digits, _ := strings.Cut(entry, ":")
		host, err := ParseHost(name)
		port, portErr := strconv.ParseUint(digits, 10, 16)
		if err != nil || portErr != nil || port == 0 {
			return nil, core.Fail(core.Invalid, "invalid_configuration",
				fmt.Sprintf("EGRESS_ALLOW_PRIVATE: %q is not host:port. Name a host, not an address.", entry))
		}
		private[target{host, uint16(port)}] = true
		ports[uint16(port)] = true
	}
	if len(ports) > wire.MaxPorts {
		return nil, core.Fail(core.Invalid, "invalid_configuration",
			fmt.Sprintf("EGRESS_ALLOW_PRIVATE names too many ports: with 80 and 443 there may be %d.", wire.MaxPorts))
	}
	return private, nil
}
