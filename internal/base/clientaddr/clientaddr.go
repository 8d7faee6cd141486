// Package clientaddr finds the address of the client that sent a request, also behind reverse
// proxies.
package clientaddr

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// maxHops is how many proxies a request may have passed. The address of the last one that was
// looked at counts for a request with more.
const maxHops = 16

// Proxies are the networks of the reverse proxies whose X-Forwarded-For is believed. The zero
// value believes no one. They are not changed once they are in use.
type Proxies []netip.Prefix

// ParseProxies reads networks in CIDR notation, or single addresses.
func ParseProxies(texts []string) (Proxies, error) {
	var all Proxies
	for _, text := range texts {
		if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
			addr = addr.Unmap()
			all = append(all, netip.PrefixFrom(addr, addr.BitLen()))
			continue
		}
		network, err := netip.ParsePrefix(text)
		if err != nil || network.Addr().Is4In6() {
			return nil, fmt.Errorf("%q is not a network such as 10.0.0.0/8 or fd00::/8", text)
		}
		if network.Bits() == 0 {
			return nil, fmt.Errorf("%q is every address: any client could then claim to be another", text)
		}
		all = append(all, network.Masked())
	}
	return all, nil
}

// trusts reports whether an address is that of a proxy.
func (p Proxies) trusts(addr netip.Addr) bool {
	for _, network := range p {
		if network.Contains(addr) {
			return true
		}
	}
	return false
}

// Of returns the address of the client that sent a request. It is the address of the
// connection, unless that is a trusted proxy. Then X-Forwarded-For is read from the right, each
// trusted proxy vouching for the address before its own: what the client itself wrote there,
// further to the left, is not believed. The address of the proxy counts where it names no
// address.
func (p Proxies) Of(r *http.Request) string {
	addr, known := parse(r.RemoteAddr)
	if !known { // a socket of the file system, or a request of this process
		if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
			return host
		}
		return r.RemoteAddr
	}
	given := r.Header.Values("X-Forwarded-For")
	rest := ""
	if p.trusts(addr) {
		rest = strings.Join(given, ",")
	}
	for hop := 0; hop < maxHops && rest != "" && p.trusts(addr); hop++ {
		last := rest
		if comma := strings.LastIndexByte(rest, ','); comma >= 0 {
			rest, last = rest[:comma], rest[comma+1:]
		} else {
			rest = ""
		}
		before, known := parse(strings.TrimSpace(last))
		if !known {
			break
		}
		addr = before
	}
	return addr.String()
}

// parse reads an address, which may have a port.
func parse(text string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(text)
	if err != nil {
		with, failed := netip.ParseAddrPort(text)
		if failed != nil {
			return netip.Addr{}, false
		}
		addr = with.Addr()
	}
	return addr.Unmap().WithZone(""), true
}

// Group returns the name under which requests from an address are counted: the address, and the
// /64 network of an IPv6 address, because one machine has all addresses of its network. What is
// not an address is its own group.
func Group(address string) string {
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	if addr = addr.Unmap().WithZone(""); addr.Is4() {
		return addr.String()
	}
	network, err := addr.Prefix(64)
	if err != nil {
		return address
	}
	return network.String()
}
