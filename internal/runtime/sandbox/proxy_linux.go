package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// A handover is the socket on which the launcher hands over the listener of a program that has a
// proxy; nil for a program that has none.
type handover struct{ ours, theirs *os.File }

func newHandover(wanted bool) (*handover, error) {
	if !wanted {
		return nil, nil
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return &handover{os.NewFile(uintptr(pair[0]), "handover"), os.NewFile(uintptr(pair[1]), "handover")}, nil
}

func (h *handover) close() {
	if h != nil {
		closeFiles(h.ours, h.theirs)
	}
}

// listener returns what the launcher handed over before it said that it started.
func (h *handover) listener() (net.Listener, error) {
	if h == nil {
		return nil, nil
	}
	rights := make([]byte, unix.CmsgSpace(4))
	_, size, _, _, err := unix.Recvmsg(int(h.ours.Fd()), make([]byte, 1), rights, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("the listener of its proxy did not come: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:size])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(errors.New("the listener of its proxy did not come"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.Join(errors.New("the listener of its proxy did not come"), err)
	}
	file := os.NewFile(uintptr(fds[0]), "proxy")
	defer file.Close()
	return net.FileListener(file)
}
