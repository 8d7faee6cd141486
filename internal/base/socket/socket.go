// Package socket says where the Unix sockets of a data directory are, makes them
// reachable for its owner alone, and tells who is at the other end.
package socket

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// MaxPath is how many bytes the path of a socket may have on every system.
const MaxPath = 100

// Ending is what the paths of sockets end in.
const Ending = ".sock"

// Base returns the path of a socket without its [Ending], in the directory dir of a data
// directory, which exists then and is this user's alone. Where that is too long for a
// socket it is in a directory below TMPDIR, the same for each process of the user.
func Base(home, dir, name string) (string, error) {
	in := filepath.Join(home, dir)
	base := filepath.Join(in, name)
	if len(base)+len(Ending) > MaxPath {
		sum := sha256.Sum256([]byte(home))
		in = filepath.Join(os.TempDir(), fmt.Sprintf("mortise-%d-%s", os.Getuid(), hex.EncodeToString(sum[:6])))
		base = filepath.Join(in, name)
	}
	if len(base)+len(Ending) > MaxPath {
		return "", fmt.Errorf("%s is longer than %d bytes; name a shorter data directory with --home, or a shorter TMPDIR", base, MaxPath)
	}
	return base, private(in)
}

// Owner returns the path of the socket on which a host answers its owner.
func Owner(home string) (string, error) {
	base, err := Base(home, "run", "owner")
	return base + Ending, err
}

// private makes a directory, or checks that this user owns it and no other user can
// enter it.
func private(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case !ok || int(stat.Uid) != os.Getuid():
		return fmt.Errorf("%s belongs to another user of the operating system", dir)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s has mode %04o and others may enter it: chmod 700 %s", dir, info.Mode().Perm(), dir)
	}
	return nil
}

// Listen opens a socket that its owner alone may connect to. What is at the path is removed:
// a lock of the caller's says that no other process listens there.
func Listen(path string) (*net.UnixListener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // of one that was killed
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}
