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
	"time"

	"github.com/mortise-dev/mortise/internal/base/socket"
	"github.com/mortise-dev/mortise/plugin"
)

// A Place names the session host of one session.
type Place struct {
	Home    string // the data directory, an absolute path
	Tenant  string
	Session string
}

// Names in the directory of a session host's files.
const (
	socketFile = socket.Ending
	lockFile   = ".lock"  // held by the session host as long as it lives
	startFile  = ".start" // held by the process that starts one
	logFile    = ".log"
	seenFile   = ".seen" // a session host has taken a call of the session
)

// base returns the path of a session host's files without their endings, in a
// directory that exists and is this user's alone.
func (p Place) base() (string, error) {
	base, err := socket.Base(p.Home, "keep", p.short())
	if err != nil {
		return "", plugin.Errorf(plugin.CodeUnavailable, "no socket can be made for the session: %w", err)
	}
	return base, nil
}

// short is a name for the session host that is short whatever the tenant is called.
func (p Place) short() string {
	sum := sha256.Sum256([]byte(p.Tenant + "\x00" + p.Session))
	return hex.EncodeToString(sum[:8])
}

// lockEvery is how often a process that waits for a lock tries again.
const lockEvery = 10 * time.Millisecond
