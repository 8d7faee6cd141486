package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/runtime/sandbox/wire"
)

// An owner is the user that a program runs as under a host that is root: one
// that owns nothing anywhere. Files of root that the program is shown by name
// are mounted so that they look like its own, or a host that is root could not
// give its plugins what only root may read.
type owner struct {
	id    int
	space *os.File // a user namespace in which this is root; nil where there is none
	tried bool     // and there is nothing to be gained by another attempt
}

// owners are used again, one program at a time.
type owners struct {
	mu   sync.Mutex // guards the rest
	free []*owner
	made int
}

// take returns an owner that is not in use.
func (o *owners) take(ctx context.Context, n *forkServer) *owner {
	own := o.next()
	if !own.tried {
		var err error
		own.space, err = userNamespace(ctx, n, own.id) // without one, files keep their owner
		own.tried = err == nil || errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EINVAL)
	}
	return own
}

// next returns one that was given back, or a new one.
func (o *owners) next() *owner {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := len(o.free); n > 0 {
		own := o.free[n-1]
		o.free = o.free[:n-1]
		return own
	}
	o.made++
	return &owner{id: min(firstUID+(os.Getpid()<<4+o.made)%uidCount, largestID())}
}

func (o *owners) give(own *owner) {
	if own == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.free = append(o.free, own)
}

func (o *owners) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, own := range o.free {
		if own.space != nil {
			_ = own.space.Close()
		}
	}
	o.free = nil
}

// userNamespace returns a user namespace in which id is root. It takes a
// process to make one: a launcher that is told nothing.
func userNamespace(ctx context.Context, n *forkServer, id int) (*os.File, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer ours.Close()
	defer theirs.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	root := []wire.Mapping{{Inside: 0, Outside: id}}
	cmd, _, err := n.fork(ctx, wire.Fork{Flags: unix.CLONE_NEWUSER, Users: root, Groups: root}, null, null, null, theirs)
	if err != nil {
		return nil, err
	}
	space, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", cmd.Process.Pid))
	_ = ours.Close() // now it ends
	_ = cmd.Wait()
	return space, err
}

// ofSystem are directories whose files everyone may read.
var ofSystem = []string{"/usr/", "/lib/", "/lib64/", "/bin/", "/etc/", "/opt/"}

// maxHanded is how many mounts are made by the host for one program.
const maxHanded = 64

// hand makes the mounts of what a program is shown by name, with root's files
// as the owner's, and notes them in the tree. Where a file system cannot do
// that, the launcher mounts it as it is.
func (own *owner) hand(tree []wire.Node, first int) []*os.File {
	if own == nil || own.space == nil {
		return nil
	}
	var mounts []*os.File
	for i, n := range tree {
		if n.Kind != "bind" || len(mounts) == maxHanded || anyPrefix(n.Path+"/", ofSystem) {
			continue
		}
		fd, err := unix.OpenTree(unix.AT_FDCWD, n.Path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		if err != nil {
			continue
		}
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP | unix.MOUNT_ATTR_RDONLY, Userns_fd: uint64(own.space.Fd())}
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
			_ = unix.Close(fd)
			continue
		}
		tree[i].FD = first + len(mounts)
		mounts = append(mounts, os.NewFile(uintptr(fd), n.Path))
	}
	return mounts
}

func anyPrefix(path string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}
