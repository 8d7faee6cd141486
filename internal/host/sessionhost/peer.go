package sessionhost

import (
	"net"
	"os"

	"github.com/mortise-dev/mortise/internal/base/socket"
	"github.com/mortise-dev/mortise/plugin"
)

// checkPeer refuses the peer of a connection, unless it is the same user, or root.
func checkPeer(conn net.Conn) error {
	uid, known, err := socket.Peer(conn)
	if err != nil {
		return plugin.Errorf(plugin.CodeUnauthenticated, "it cannot be told who is at the other end: %w", err)
	}
	if !known {
		return nil
	}
	return allowed(uid, os.Getuid())
}

// allowed refuses another user than our own, but for root.
func allowed(peer, own int) error {
	if peer != own && peer != 0 {
		return plugin.Errorf(plugin.CodeUnauthenticated, "the user %d is at the other end, and this is user %d's", peer, own)
	}
	return nil
}
