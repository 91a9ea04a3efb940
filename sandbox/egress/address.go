package egress

import (
	"net"
	"net/netip"
)

// notPublic are the ranges within unicast space that are not the public internet's. The ranges for
// documentation are not among them: on some networks package mirrors have such addresses.
var notPublic = prefixes(
	"0.0.0.0/8",         // this network
	"10.0.0.0/8",        // private
	"100.64.0.0/10",     // shared by carriers
	"127.0.0.0/8",       // loopback
	"169.254.0.0/16",    // link-local, clouds' metadata
	"172.16.0.0/12",     // private
	"192.0.0.0/24",      // protocol assignments
	"192.88.99.0/24",    // relays of 6to4
	"192.168.0.0/16",    // private
	"198.18.0.0/15",     // benchmarks
	"224.0.0.0/4",       // multicast
	"240.0.0.0/4",       // reserved, broadcast
	"2001::/32",         // Teredo, which holds IPv4 addresses
	"2001:2::/48",       // benchmarks
	"2001:10::/28",      // cryptographic identifiers
	"2001:20::/28",      // the same, second version
	"2002::/16",         // 6to4, which holds IPv4 addresses
	"2620:4f:8000::/48", // direct delegation of empty zones
)

var (
	publicIPv6 = netip.MustParsePrefix("2000::/3")
	nat64      = netip.MustParsePrefix("64:ff9b::/96") // an IPv4 address in the last four bytes
)

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

// isPublic says whether an address is one of the public internet, in whatever form it is written.
func isPublic(addr netip.Addr) bool {
	if addr.Zone() != "" {
		return false
	}
	addr = addr.Unmap()
	if nat64.Contains(addr) {
		b := addr.As16()
		addr = netip.AddrFrom4([4]byte(b[12:]))
	}
	if !addr.Is4() && !publicIPv6.Contains(addr) {
		return false
	}
	for _, prefix := range notPublic {
		if prefix.Contains(addr) {
			return false
		}
	}
	return true
}

// isOwn says whether an address is one of this machine's; what cannot be known is taken for own.
func isOwn(addr netip.Addr) bool {
	own, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	addr = addr.Unmap()
	for _, a := range own {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Unmap() == addr {
			return true
		}
	}
	return false
}
