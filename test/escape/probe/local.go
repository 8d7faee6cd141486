//go:build linux && amd64

package main

import (
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/test/escape/canary"
)

// local are attempts through UNIX sockets: the host listens at paths and at
// abstract names. A pair of sockets needs no address, and many languages use one
// inside; what a pair can still reach is tried here as well.
var local = []probe{
	{"unix.stream_path", func(c canary.Config) result { return connects(unix.SOCK_STREAM, c.UnixStream) }},
	{"unix.datagram_path", func(c canary.Config) result { return connects(unix.SOCK_DGRAM, c.UnixDatagram) }},
	{"unix.packet_path", func(c canary.Config) result { return connects(unix.SOCK_SEQPACKET, c.UnixPacket) }},
	{"unix.stream_abstract", func(c canary.Config) result { return connects(unix.SOCK_STREAM, "@"+c.Abstract) }},
	{"unix.datagram_abstract", func(c canary.Config) result { return connects(unix.SOCK_DGRAM, "@"+c.AbstractData) }},
	{"unix.bind_path", func(c canary.Config) result { return binds(filepath.Join(c.Outside, "bound")) }},
	{"unix.bind_abstract", func(c canary.Config) result { return binds("@" + c.Mark + "-bound") }},
	{"unix.pair_datagram_to_path", func(c canary.Config) result { return pairSends(unix.SOCK_DGRAM, c.UnixDatagram) }},
	{"unix.pair_datagram_to_abstract", func(c canary.Config) result { return pairSends(unix.SOCK_DGRAM, "@"+c.AbstractData) }},
	{"unix.pair_datagram_reconnects", func(c canary.Config) result { return pairConnects(unix.SOCK_DGRAM, c.UnixDatagram) }},
	{"unix.pair_datagram_reconnects_abstract", func(c canary.Config) result {
		return pairConnects(unix.SOCK_DGRAM, "@"+c.AbstractData)
	}},
	{"unix.pair_stream_reconnects", func(c canary.Config) result { return pairConnects(unix.SOCK_STREAM, c.UnixStream) }},
	{"unix.pair_packet_reconnects", func(c canary.Config) result { return pairConnects(unix.SOCK_SEQPACKET, c.UnixPacket) }},
	{"unix.pair_raw_to_path", func(c canary.Config) result { return pairSends(unix.SOCK_RAW, c.UnixDatagram) }},
	{"unix.pair_sendmsg_to_path", func(c canary.Config) result {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return judge(err)
		}
		return judge(unix.Sendmsg(pair[0], []byte("escaped"), nil, &unix.SockaddrUnix{Name: c.UnixDatagram}, 0))
	}},
	{"unix.pair_binds_path", func(c canary.Config) result {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return judge(err)
		}
		return judge(unix.Bind(pair[0], &unix.SockaddrUnix{Name: filepath.Join(c.Outside, "pair")}))
	}},
	{"unix.by_symlink", func(c canary.Config) result {
		// The path of a socket may be longer than an address holds, or hidden behind a link.
		link := filepath.Join(c.Scratch, "socket")
		if err := unix.Symlink(c.UnixStream, link); err != nil {
			return judge(err)
		}
		return connects(unix.SOCK_STREAM, link)
	}},
	{"unix.system_bus", wellKnown("/run/dbus/system_bus_socket")},
	{"unix.containers", wellKnown("/run/docker.sock")},
	{"unix.system_log", func(canary.Config) result {
		r := connects(unix.SOCK_DGRAM, "/dev/log")
		if r.detail == "ENOENT" {
			return unavailable("this machine has no /dev/log")
		}
		return r
	}},
}

func connects(kind int, name string) result {
	fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return judge(err)
	}
	return judge(say(fd, name))
}

func pairConnects(kind int, name string) result {
	pair, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return judge(err)
	}
	return judge(say(pair[0], name))
}

func say(fd int, name string) error {
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: name}); err != nil {
		return err
	}
	_, _ = unix.Write(fd, []byte("escaped")) // a datagram socket connects without a word
	return nil
}

func pairSends(kind int, name string) result {
	pair, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return judge(err)
	}
	return judge(unix.Sendto(pair[0], []byte("escaped"), 0, &unix.SockaddrUnix{Name: name}))
}

func binds(name string) result {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return judge(err)
	}
	return judge(unix.Bind(fd, &unix.SockaddrUnix{Name: name}))
}

// wellKnown tries a socket that only some machines have.
func wellKnown(path string) func(canary.Config) result {
	return func(canary.Config) result {
		r := connects(unix.SOCK_STREAM, path)
		if r.detail == "ENOENT" {
			return unavailable("this machine has no %s", path)
		}
		return r
	}
}
