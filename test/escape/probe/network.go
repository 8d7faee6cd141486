//go:build linux && amd64

package main

import (
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/test/escape/canary"
)

// network are attempts to send something to the host or through it. Connections
// go to listeners of the test, on loopback and on every address of the host.
var network = []probe{
	{"net.tcp4_loopback", func(c canary.Config) result { return tcp("127.0.0.1", c.TCPPort, 0) }},
	{"net.tcp4_any", func(c canary.Config) result { return tcp("0.0.0.0", c.TCPPort, 0) }},
	{"net.tcp4_other_loopback", func(c canary.Config) result { return tcp("127.8.8.8", c.TCPPort, 0) }},
	{"net.tcp6_loopback", func(c canary.Config) result { return tcp("::1", c.TCPPort, 0) }},
	{"net.tcp6_any", func(c canary.Config) result { return tcp("::", c.TCPPort, 0) }},
	{"net.tcp6_mapped", func(c canary.Config) result { return tcp("::ffff:127.0.0.1", c.TCPPort, 0) }},
	{"net.tcp_host_address", func(c canary.Config) result { return toHost(c, false) }},
	{"net.tcp_host_address6", func(c canary.Config) result { return toHost(c, true) }},
	{"net.mptcp4", func(c canary.Config) result { return tcp("127.0.0.1", c.TCPPort, unix.IPPROTO_MPTCP) }},
	{"net.mptcp6", func(c canary.Config) result { return tcp("::1", c.TCPPort, unix.IPPROTO_MPTCP) }},
	{"net.tcp_fast_open", func(c canary.Config) result {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return judge(err)
		}
		_, to := address("127.0.0.1", c.TCPPort)
		return judge(unix.Sendto(fd, []byte("escaped"), unix.MSG_FASTOPEN, to))
	}},
	{"net.tcp_listen", func(canary.Config) result {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return judge(err)
		}
		if err := unix.Bind(fd, &unix.SockaddrInet4{}); err != nil {
			return judge(err)
		}
		return judge(unix.Listen(fd, 1))
	}},
	{"net.tcp_listen_unbound", func(canary.Config) result {
		fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return judge(err)
		}
		return judge(unix.Listen(fd, 1)) // binds to a port by itself
	}},
	{"net.udp4_loopback", func(c canary.Config) result { return udp("127.0.0.1", c.UDPPort, 0) }},
	{"net.udp6_loopback", func(c canary.Config) result { return udp("::1", c.UDPPort, 0) }},
	{"net.udp4_host_address", func(c canary.Config) result {
		for _, a := range c.Addresses {
			if netip.MustParseAddr(a).Is4() {
				return udp(a, c.UDPPort, 0)
			}
		}
		return unavailable("the host has no IPv4 address but loopback")
	}},
	{"net.udp_connected", func(c canary.Config) result {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return judge(err)
		}
		_, to := address("127.0.0.1", c.UDPPort)
		if err := unix.Connect(fd, to); err != nil {
			return judge(err)
		}
		_, err = unix.Write(fd, []byte("escaped"))
		return judge(err)
	}},
	{"net.udp_bind", func(canary.Config) result {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return judge(err)
		}
		return judge(unix.Bind(fd, &unix.SockaddrInet4{}))
	}},
	{"net.udp_multicast", func(c canary.Config) result { return udp("224.0.0.251", 5353, 0) }},
	{"net.udplite", func(c canary.Config) result { return udp("127.0.0.1", c.UDPPort, unix.IPPROTO_UDPLITE) }},
	{"net.name_lookup", func(canary.Config) result { return udp("127.0.0.53", 53, 0) }},
	{"net.icmp_datagram", opens(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP)},
	{"net.icmp_raw", opens(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)},
	{"net.icmp6_raw", opens(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6)},
	{"net.raw_ip", opens(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW)},
	{"net.sctp", opens(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP)},
	{"net.dccp", opens(unix.AF_INET, unix.SOCK_DCCP, unix.IPPROTO_DCCP)},
	{"net.smc", opens(unix.AF_SMC, unix.SOCK_STREAM, 0)},
	{"net.packet_raw", opens(unix.AF_PACKET, unix.SOCK_RAW, 0x0300)},
	{"net.packet_datagram", opens(unix.AF_PACKET, unix.SOCK_DGRAM, 0x0300)},
	{"net.netlink_route", opens(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)},
	{"net.netlink_audit", opens(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT)},
	{"net.netlink_diagnostics", opens(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_SOCK_DIAG)},
	{"net.netlink_netfilter", opens(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER)},
	{"net.netlink_events", opens(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT)},
	{"net.netlink_generic", opens(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_GENERIC)},
	{"net.netlink_crypto", opens(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_CRYPTO)},
	{"net.vsock_stream", opens(unix.AF_VSOCK, unix.SOCK_STREAM, 0)},
	{"net.vsock_datagram", opens(unix.AF_VSOCK, unix.SOCK_DGRAM, 0)},
	{"net.bluetooth", opens(unix.AF_BLUETOOTH, unix.SOCK_RAW, 1)},
	{"net.can", opens(unix.AF_CAN, unix.SOCK_RAW, 1)},
	{"net.kernel_crypto", opens(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)},
	{"net.xdp", opens(unix.AF_XDP, unix.SOCK_RAW, 0)},
	{"net.tipc", opens(unix.AF_TIPC, unix.SOCK_STREAM, 0)},
	{"net.rds", opens(unix.AF_RDS, unix.SOCK_SEQPACKET, 0)},
	{"net.kcm", opens(unix.AF_KCM, unix.SOCK_DGRAM, 0)},
	{"net.key", opens(unix.AF_KEY, unix.SOCK_RAW, 2)},
	{"net.nfc", opens(unix.AF_NFC, unix.SOCK_SEQPACKET, 0)},
	{"net.qipcrtr", opens(unix.AF_QIPCRTR, unix.SOCK_DGRAM, 0)},
	{"net.pppox", opens(unix.AF_PPPOX, unix.SOCK_STREAM, 0)},
	{"net.llc", opens(unix.AF_LLC, unix.SOCK_STREAM, 0)},
	{"net.x25", opens(unix.AF_X25, unix.SOCK_SEQPACKET, 0)},
	{"net.every_other_family", func(canary.Config) result {
		// What the list above forgets, and what kernels will have one day.
		for family := 2; family < 64; family++ {
			for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET, unix.SOCK_RAW} {
				if fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0); err == nil {
					return allowed("family %d, type %d: descriptor %d", family, kind, fd)
				}
			}
		}
		return denied("all 62")
	}},
	{"net.interfaces", func(canary.Config) result {
		addresses, err := net.InterfaceAddrs()
		if err != nil {
			return denied("%v", err)
		}
		for _, a := range addresses {
			if p, err := netip.ParsePrefix(a.String()); err == nil && !p.Addr().IsLoopback() {
				return allowed("%s", a)
			}
		}
		return denied("%v", addresses)
	}},
}

// tcp tries to open a connection and to send a word through it.
func tcp(host string, port, protocol int) result {
	family, to := address(host, port)
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return judge(err)
	}
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 1})
	if err := unix.Connect(fd, to); err != nil {
		return judge(err)
	}
	_, _ = unix.Write(fd, []byte("escaped")) // who answered may have hung up
	return judge(nil)
}

// udp tries to send a datagram.
func udp(host string, port, protocol int) result {
	family, to := address(host, port)
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return judge(err)
	}
	return judge(unix.Sendto(fd, []byte("escaped"), 0, to))
}

// toHost tries every address of the host of one family.
func toHost(c canary.Config, six bool) result {
	tried := unavailable("the host has no such address but loopback")
	for _, a := range c.Addresses {
		if netip.MustParseAddr(a).Is6() != six {
			continue
		}
		if tried = tcp(a, c.TCPPort, 0); tried.outcome == "allowed" {
			return allowed("%s", a)
		}
	}
	return tried
}

// opens tries to have a socket of a kind; what can be sent through it is then a
// matter of addresses.
func opens(family, kind, protocol int) func(canary.Config) result {
	return func(canary.Config) result {
		return judge(closing(unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)))
	}
}

func address(host string, port int) (family int, to unix.Sockaddr) {
	a := netip.MustParseAddr(host)
	if a.Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: a.As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: port, Addr: a.As16()}
}
