package registry

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/internal/catalog/signed"
	"github.com/mortise-dev/mortise/plugin"
)

// A State is whether a version of a plugin may be called.
type State string

// The states.
const (
	Active      State = "active"
	Disabled    State = "disabled"    // switched off, or never switched on
	Quarantined State = "quarantined" // it waits for approval, or its files are no longer those that were registered
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
	Path         string // its directory; of a linked source file, the file. Each node derives the place of a copied package from its digest
	Archive      string // where the nodes have a copied package from; "" where there is one node
	Dev          bool   // linked, not copied
	Manifest     []byte // JSON of a plugin.Manifest
	State        State
	RegisteredAt time.Time
	Source       string // bundled, or the path it was registered from
	Signer       signed.Signer

	// ApprovedBy is the principal that first let it be called; "" for none yet, and for
	// what is linked.
	ApprovedBy string

	// Beside means that it waits for approval while an approved one of the
	// same name and version stands.
	Beside bool
}

// approved reports whether these files have been approved for calls.
func (r Record) approved() bool { return r.ApprovedBy != "" && !r.Dev }

// title is what people call it; a package of which nothing is known has no name.
func (r Record) title() string {
	if r.Name == "" || r.Version == "" {
		return "the package"
	}
	return label(r.Name, r.Version)
}

// An Approval is what an approval rests on.
type Approval struct {
	Before     string // digest of the package that was approved before; "" for none
	After      string
	Difference string // hash of the difference that was shown
}

// A Catalog keeps the records, and writes each change of them together with
// its entry in the ledger. Records are told apart by name, version and whether
// they are Beside; there is one of each. The Path of what is not linked need
// not be kept.
type Catalog interface {
	Plugins(ctx context.Context) ([]Record, error)

	// Version returns a number that is another one whenever any process has
	// changed a record since it was asked for last. It is asked often, by one
	// caller at a time.
	Version(ctx context.Context) (int64, error)

	// Put inserts or replaces a record.
	Put(ctx context.Context, r Record, kind plugin.EntryKind) error
	SetState(ctx context.Context, r Record, state State, kind plugin.EntryKind) error
	Delete(ctx context.Context, r Record) error

	// Approve puts a record that is approved now in the place of the one that
	// waited, and of the one that stood under its version.
	Approve(ctx context.Context, waited, now Record, a Approval) error
}
