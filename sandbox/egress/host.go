package egress

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/toolbox/wire"
)

// isAddress says whether a name would be taken for an IPv4 address by some program: as every form of it
// does, it ends in a number, decimal, octal or hexadecimal. No top-level domain is one.
func isAddress(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
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
		host, digits, err := net.SplitHostPort(entry)
		port, portErr := strconv.ParseUint(digits, 10, 16)
		if err != nil || portErr != nil || port == 0 || !wire.IsHostName(host) || isAddress(host) {
			return nil, core.Fail(core.Invalid, "invalid_configuration",
				fmt.Sprintf("EGRESS_ALLOW_PRIVATE: %q is not host:port with a host name in lower case.", entry))
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
