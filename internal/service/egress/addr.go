package egress

import (
	"encoding/binary"
	"net/netip"
)

// refused are the addresses that are not of the public Internet, after the
// registries of special-purpose addresses (RFC 6890), and a few that are but
// belong to a machine's own surroundings.
var refused = table(map[string]string{
	"0.0.0.0/8":        "unspecified",
	"10.0.0.0/8":       "private",
	"100.64.0.0/10":    "shared with a carrier",
	"127.0.0.0/8":      "loopback",
	"168.63.129.16/32": "a cloud's own service", // answers every machine of one provider
	"169.254.0.0/16":   "link-local",            // 169.254.169.254 too, where clouds keep credentials
	"172.16.0.0/12":    "private",
	"192.0.0.0/24":     "reserved",
	"192.0.2.0/24":     "for documentation",
	"192.88.99.0/24":   "a 6to4 relay",
	"192.168.0.0/16":   "private",
	"198.18.0.0/15":    "for benchmarks",
	"198.51.100.0/24":  "for documentation",
	"203.0.113.0/24":   "for documentation",
	"224.0.0.0/4":      "multicast",
	"240.0.0.0/4":      "reserved",

	"::/128":        "unspecified",
	"::1/128":       "loopback",
	"fc00::/7":      "private",
	"fe80::/10":     "link-local",
	"fec0::/10":     "private",
	"ff00::/8":      "multicast",
	"2001::/23":     "reserved", // Teredo and ORCHID among them
	"2001:db8::/32": "for documentation",
	"2002::/16":     "a 6to4 tunnel",
	"3fff::/20":     "for documentation",
})

var (
	global = netip.MustParsePrefix("2000::/3")     // all of IPv6 that is given out
	nat64  = netip.MustParsePrefix("64:ff9b::/96") // an IPv4 address in its last four bytes
)

type special struct {
	prefix netip.Prefix
	what   string
}

func table(ranges map[string]string) []special {
	var all []special
	for text, what := range ranges {
		all = append(all, special{netip.MustParsePrefix(text), what})
	}
	return all
}

// Refusal returns why addr may not be reached, in words that follow "it is",
// and "" for a unicast address of the public Internet. An IPv4 address inside an
// IPv6 one counts as itself.
func Refusal(addr netip.Addr) string {
	if !addr.IsValid() {
		return "no address"
	}
	if addr.Zone() != "" {
		return "of this machine's own network"
	}
	addr = addr.Unmap()
	if nat64.Contains(addr) {
		bytes := addr.As16()
		return Refusal(netip.AddrFrom4([4]byte(bytes[12:])))
	}
	for _, r := range refused {
		if r.prefix.Contains(addr) {
			return r.what
		}
	}
	if addr.Is6() && !global.Contains(addr) {
		return "reserved"
	}
	if inner, ok := isatap(addr); ok {
		return Refusal(inner)
	}
	return ""
}

// isatap returns the IPv4 address at the end of an ISATAP address (RFC 5214),
// under whatever prefix.
func isatap(addr netip.Addr) (netip.Addr, bool) {
	if !addr.Is6() {
		return netip.Addr{}, false
	}
	bytes := addr.As16()
	id := binary.BigEndian.Uint32(bytes[8:12])
	return netip.AddrFrom4([4]byte(bytes[12:])), id&^0x02000000 == 0x00005efe
}
