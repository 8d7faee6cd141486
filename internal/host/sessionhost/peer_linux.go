package sessionhost

import (
	"net"
	"os"
	"syscall"

	"github.com/mortise-dev/mortise/plugin"
)

// checkPeer refuses the peer of a connection, unless it is the same user, or root.
func checkPeer(conn net.Conn) error {
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return plugin.Errorf(plugin.CodeUnauthenticated, "the connection is no socket of this machine")
	}
	raw, err := unix.SyscallConn()
	if err != nil {
		return err
	}
	var who *syscall.Ucred
	var asked error
	if err := raw.Control(func(fd uintptr) {
		who, asked = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil {
		return err
	}
	if asked != nil {
		return asked
	}
	return allowed(int(who.Uid), os.Getuid())
}
