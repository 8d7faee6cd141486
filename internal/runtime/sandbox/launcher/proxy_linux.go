package launcher

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/runtime/sandbox/wire"
)

// Bounds of the listener, whose connections inherit them. What waits in sockets is memory of no
// process.
const (
	backlog    = 16
	bufferSize = 64 << 10
)

// offer opens the way to the host's proxy: it sets up the loopback interface of our own network
// namespace, opens the listener there, and hands that to the host. Nothing else listens in the
// namespace, and nothing leads out of it.
func offer(spec *wire.Spec, layers []wire.Layer) error {
	if !slices.ContainsFunc(layers, func(l wire.Layer) bool { return l.Name == titles["net"] && l.On }) {
		return errors.New("there is no network namespace of its own")
	}
	if err := loopback(); err != nil {
		return fmt.Errorf("setting up loopback: %w", err)
	}
	listener, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return err
	}
	defer unix.Close(listener)
	for _, option := range []int{unix.SO_RCVBUF, unix.SO_SNDBUF} {
		if err := unix.SetsockoptInt(listener, unix.SOL_SOCKET, option, bufferSize); err != nil {
			return err
		}
	}
	if err := unix.Bind(listener, &unix.SockaddrInet4{Port: wire.ProxyPort, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	if err := unix.Listen(listener, backlog); err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	defer unix.Close(spec.Proxy)
	if err := unix.Sendmsg(spec.Proxy, []byte{0}, unix.UnixRights(listener), nil, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("handing the listener to the host: %w", err)
	}
	return nil
}

// loopback sets up the interface by which a network namespace reaches itself.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, lo); err != nil {
		return err
	}
	lo.SetUint16(lo.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

// portRule is struct landlock_net_port_attr, and ruleOfPort its kind.
type portRule struct{ access, port uint64 }

const ruleOfPort = 2

// allowProxy adds a rule for connections to the proxy; a kernel before ABI 4 has none for
// connections at all.
func allowProxy(set int, rules ruleset) error {
	if rules.net == 0 {
		return nil
	}
	rule := portRule{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, wire.ProxyPort}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), ruleOfPort, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// clientCalls are those of the denied system calls that a program needs to connect to the proxy.
var clientCalls = []uint32{unix.SYS_SOCKET, unix.SYS_CONNECT}

// clients judges the calls of a program that may connect to the proxy: sockets of TCP over IPv4
// alone, and options of them that load nothing into the kernel.
func clients() []unix.SockFilter {
	stream := []unix.SockFilter{
		load(atArgs), instruction(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.AF_INET, 1, 0), answer(answerPerm),
		load(atArgs + 8), instruction(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, 0xf, 0, 0), // without SOCK_CLOEXEC and SOCK_NONBLOCK
		instruction(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.SOCK_STREAM, 1, 0), answer(answerPerm),
		load(atArgs + 16),
	}
	stream = append(stream, when(unix.BPF_JEQ, 0, answerAllow)...)
	stream = append(stream, when(unix.BPF_JEQ, unix.IPPROTO_TCP, answerAllow)...)
	option := append([]unix.SockFilter{load(atArgs + 8)}, when(unix.BPF_JEQ, unix.SOL_SOCKET, answerAllow)...)
	option = append(option, instruction(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.SOL_TCP, 1, 0), answer(answerPerm), load(atArgs+16))
	option = append(option, when(unix.BPF_JEQ, unix.TCP_ULP, answerPerm)...)
	option = append(option, when(unix.BPF_JEQ, unix.TCP_REPAIR, answerPerm)...)
	return append(only(unix.SYS_SOCKET, append(stream, answer(answerPerm))...), only(unix.SYS_SETSOCKOPT, append(option, answer(answerAllow))...)...)
}
