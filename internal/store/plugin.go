package store

import (
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
