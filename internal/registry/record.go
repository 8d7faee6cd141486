package registry

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// A State is whether a version of a plugin may be called.
type State string

// The states.
const (
	Active      State = "active"
	Disabled    State = "disabled"    // switched off, or never switched on
	Quarantined State = "quarantined" // its files are no longer those that were registered
)

// Where a version came from, where that is not a path.
const (
	SourceBundled = "bundled" // it is part of the host
	SourceConfig  = "config"  // the host's configuration binds it
)

// A Record is what is kept of one version of one plugin.
type Record struct {
	Name         string
	Version      string
	Digest       string // of the package
	Path         string // its directory; of a linked source file, the file
	Dev          bool   // linked, not copied
	Manifest     []byte // JSON of a plugin.Manifest
	State        State
	RegisteredAt time.Time
	Source       string // bundled, or the path it was registered from
}

// A Catalog keeps the records, and writes each change of them together with
// its entry in the ledger. Records are told apart by name and version.
type Catalog interface {
	Plugins(ctx context.Context) ([]Record, error)

	// Put inserts or replaces a record.
	Put(ctx context.Context, r Record, kind plugin.EntryKind) error
	SetState(ctx context.Context, name, version string, state State, kind plugin.EntryKind) error
	Delete(ctx context.Context, name, version string) error
}
