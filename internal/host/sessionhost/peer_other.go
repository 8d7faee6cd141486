//go:build !linux

package sessionhost

import "net"

// checkPeer trusts the directory of the socket, which only its owner can enter:
// this system has no way to ask who is at the other end that is the same
// everywhere.
func checkPeer(net.Conn) error { return nil }
