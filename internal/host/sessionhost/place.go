// Package sessionhost carries calls to the one process that holds a session's
// interpreter, and brings back what they say and how they ended.
//
// What plugins keep in memory during an investigation lives as long as their
// process. Command lines come and go, so the first one of a session starts a
// session host: a host that stays for this session alone, listens on a socket that
// only its owner can reach, and ends when it has been idle for long enough or when it
// is told to. A call that is carried passes the same kernel as any other, in the
// session host instead of at the command line.
//
// A session host that is killed takes what plugins remember with it and nothing else:
// the next call starts another. Whether a call may happen is not decided here.
package sessionhost

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// A Place names the session host of one session.
type Place struct {
	Home    string // the data directory, an absolute path
	Tenant  string
	Session string
}

// maxSocket is how long the path of a socket may be on every system.
const maxSocket = 100

// Names in the directory of a session host's files.
const (
	socketFile = ".sock"
	lockFile   = ".lock"  // held by the session host as long as it lives
	startFile  = ".start" // held by the process that starts one
	logFile    = ".log"
	seenFile   = ".seen" // a session host has taken a call of the session
)

// base returns the path of a session host's files without their endings, in a
// directory that exists and is this user's alone.
func (p Place) base() (string, error) {
	dir := filepath.Join(p.Home, "keep")
	base := filepath.Join(dir, p.short())
	if len(base)+len(socketFile) > maxSocket {
		sum := sha256.Sum256([]byte(p.Home))
		dir = filepath.Join(os.TempDir(), fmt.Sprintf("mortise-%d-%s", os.Getuid(), hex.EncodeToString(sum[:6])))
		base = filepath.Join(dir, p.short())
	}
	if len(base)+len(socketFile) > maxSocket {
		return "", plugin.Errorf(plugin.CodeUnavailable, "no socket can be made for the session: %s is longer than %d bytes; name a shorter data directory with --home, or a shorter TMPDIR", base, maxSocket)
	}
	if err := private(dir); err != nil {
		return "", plugin.Errorf(plugin.CodeUnavailable, "no socket can be made for the session: %w", err)
	}
	return base, nil
}

// short is a name for the session host that is short whatever the tenant is called.
func (p Place) short() string {
	sum := sha256.Sum256([]byte(p.Tenant + "\x00" + p.Session))
	return hex.EncodeToString(sum[:8])
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

// lockEvery is how often a process that waits for a lock tries again.
const lockEvery = 10 * time.Millisecond
