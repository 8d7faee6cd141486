package socket

import (
	"errors"
	"net"
	"syscall"
)

// Peer returns the user at the other end of a connection, as the kernel knows them. known is
// false on systems that have no way to tell.
func Peer(conn net.Conn) (uid int, known bool, err error) {
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, false, errors.New("the connection is no socket of this machine")
	}
	raw, err := unix.SyscallConn()
	if err != nil {
		return 0, false, err
	}
	var who *syscall.Ucred
	var asked error
	if err := raw.Control(func(fd uintptr) {
		who, asked = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil {
		return 0, false, err
	}
	if asked != nil {
		return 0, false, asked
	}
	return int(who.Uid), true, nil
}
