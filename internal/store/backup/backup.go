// Package backup keeps a host's files in one file: a compressed tar, encrypted
// if recipients are named.
//
// The last member is the manifest, with the size and SHA-256 of every other one.
// A backup is believed only once it was read to its end and all of it is as the
// manifest says; [Extract] writes nothing before that. What belongs into a
// backup is not known here.
package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"
	"unicode/utf8"
)

// Format is what the manifest of a backup says that it is.
const Format = "mortise backup 1"

// manifestName is the name of the last member.
const manifestName = "MANIFEST.json"

// Bounds of what is read.
const (
	maxMembers  = 1 << 20
	maxManifest = 256 << 20
	maxName     = 1024
)

// A Manifest is what a backup says of itself.
type Manifest struct {
	Format   string    `json:"format"`
	Version  string    `json:"version"`  // of the host that made it
	MadeAt   time.Time `json:"made_at"`  // the moment that the database is of
	Database string    `json:"database"` // sqlite, or postgresql
	Schema   int64     `json:"schema"`   // of the database
	Key      string    `json:"ledger_key"`
	Heads    []Head    `json:"heads"`            // the ends of the ledger's chains
	Tables   []Table   `json:"tables,omitempty"` // of PostgreSQL; none in a backup that does not have the database
	Notes    []string  `json:"notes"`            // what is not in here, in sentences
	Members  []Member  `json:"members"`
}

// A Head is the end of a chain.
type Head struct {
	Chain int64  `json:"chain"`
	Seq   int64  `json:"seq"`
	Head  string `json:"head"`
}

// A Table is one of a PostgreSQL database, whose rows are a member.
type Table struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"` // in the order of the values
	Rows    int64    `json:"rows"`
}

// A Member is a file or a directory, by its slash path.
type Member struct {
	Name   string      `json:"name"`
	Dir    bool        `json:"dir,omitempty"`
	Mode   fs.FileMode `json:"mode"` // permissions
	Size   int64       `json:"size"`
	SHA256 string      `json:"sha256,omitempty"`
}

// ErrDamaged is wrapped by every refusal of a file that is no whole backup.
var ErrDamaged = errors.New("nothing was restored")

func damaged(format string, args ...any) error {
	return fmt.Errorf("the backup cannot be used: %w; %w", fmt.Errorf(format, args...), ErrDamaged)
}

// checkName refuses a name that could lead out of a directory, or anywhere
// twice.
func checkName(name string) error {
	switch {
	case name == "" || len(name) > maxName || !utf8.ValidString(name) || strings.ContainsAny(name, "\x00\\"):
	case path.IsAbs(name) || path.Clean(name) != name || name == "." || name == ".." || strings.HasPrefix(name, "../"):
	case !fs.ValidPath(name):
	default:
		return nil
	}
	return damaged("it has a member called %.100q", name)
}
