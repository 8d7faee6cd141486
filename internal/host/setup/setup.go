// Package setup is what stands before a host is open: its configuration, its database,
// its directories, its log, and which process serves it.
package setup

import (
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/service/secret"
)

// An Error says that a host cannot be put together as it was asked for:
// its configuration or its data directory is at fault.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// RestoredFile says, in a data directory that no host was opened in since, that it was
// restored, and of which time the backup is. The first host that opens it takes it up.
const RestoredFile = "restored"

// TimeFormat is how a time is written where nothing but it stands.
const TimeFormat = "2006-01-02T15:04:05.999999Z07:00"

// A Scrubber takes secrets out of what a host writes.
type Scrubber = secret.Scrubber

// NewScrubber returns one that knows of no secret yet.
func NewScrubber() *Scrubber { return secret.NewScrubber() }

// KeyPlace returns where a configuration keeps the master key of secrets.
func KeyPlace(c config.Secrets, home string) secret.Place {
	return secret.Place{Env: c.KeyEnv, File: c.KeyFile, Command: c.KeyCommand, Dir: home}
}
