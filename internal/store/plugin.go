package store

import (
	"context"
	"encoding/json"
	"time"
)

// A PluginState is whether a version of a plugin may be called.
type PluginState string

// The states of a plugin.
const (
	PluginActive      PluginState = "active"
	PluginDisabled    PluginState = "disabled"
	PluginQuarantined PluginState = "quarantined" // changed since it was approved
)

// A PluginRow is one registered version of a plugin.
type PluginRow struct {
	Name          string
	Version       string
	PackageDigest string
	Path          string          // of linked files, absolute; of copied ones, the hash of the body that lists their archive, or ""
	Manifest      json.RawMessage // a plugin.Manifest, byte for byte as it was put
	State         PluginState
	ApprovedBy    string
	Dev           bool // linked to the author's files
	RegisteredAt  time.Time
}

// A PackageRow is one installed set of files.
type PackageRow struct {
	Digest string // sha256:<hex>
	Source string // where it came from, as it was named then
	Signer string // whose signature it carries; "" for none
}

// A PluginReader reads packages and the plugins in them.
type PluginReader interface {
	// Packages returns all packages, by digest.
	Packages(ctx context.Context) ([]PackageRow, error)
	// Plugin returns one version of a plugin.
	Plugin(ctx context.Context, name, version string) (*PluginRow, error)
	// Plugins returns all versions of all plugins, by name and then in the
	// order they were registered.
	Plugins(ctx context.Context) ([]PluginRow, error)
}

// A PluginWriter is what a transaction may do to them.
type PluginWriter interface {
	// PutPackage adds a package or replaces what is known of it.
	PutPackage(row PackageRow) error
	// PutPlugin adds a version of a plugin or replaces it.
	PutPlugin(row PluginRow) error
	// SetPluginState reports whether there was such a version to change.
	SetPluginState(name, version string, state PluginState) (found bool, err error)
	// DeletePlugin reports whether there was such a version to delete.
	DeletePlugin(name, version string) (found bool, err error)
}
