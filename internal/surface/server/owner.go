package server

import (
	"fmt"
	"net"
	"os"
	"time"

	"github.com/mortise-dev/mortise/internal/base/socket"
	"github.com/mortise-dev/mortise/plugin"
)

// OwnerSocket returns the path of the socket on which a host answers its owner. The
// directory that it is in exists then and is this user's alone.
func OwnerSocket(home string) (string, error) {
	path, err := socket.Owner(home)
	if err != nil {
		return "", plugin.Errorf(plugin.CodeUnavailable, "the owner's socket cannot be used: %w", err)
	}
	return path, nil
}

// ListenOwner opens that socket. The caller holds the lock of the data directory, so that
// no other host listens there. Connections of another user of the operating system are
// refused, whatever the modes of the files are.
func ListenOwner(home string) (net.Listener, error) {
	path, err := OwnerSocket(home)
	if err != nil {
		return nil, err
	}
	l, err := socket.Listen(path)
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeUnavailable, "the owner's socket cannot be used: %w", err)
	}
	return owners{l}, nil
}

// owners is a listener that lets in the user of this process alone.
type owners struct{ net.Listener }

// ownerAlone is what other users are sent.
const ownerAlone = "this socket answers the user that runs the host, and no other\n"

// Accept returns the next connection of the owner's.
func (l owners) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		uid, known, err := socket.Peer(conn)
		if err == nil && (!known || uid == os.Getuid()) {
			return conn, nil
		}
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second)) // it is shorter than what a socket takes at once
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(ownerAlone), ownerAlone)
		_ = conn.Close()
	}
}
