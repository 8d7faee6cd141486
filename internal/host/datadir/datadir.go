// Package datadir lists what a data directory holds, and what a backup does with each part of it.
//
// The list is the only place that knows. Backup, restore and doctor go by it, and the table in
// docs/architecture.md is held against it.
package datadir

import (
	"io/fs"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// A Care says what becomes of an entry of a data directory in a backup, and in a restore.
type Care int

// The cares. An entry that is not in the list is in no backup, and in no restore.
const (
	Passing       Care = iota // not in a backup: hosts make it again, or it is over
	Copied                    // in every backup, file by file; a restore puts it back
	Database                  // in every backup, as it was at one moment; a restore puts it back
	Configuration             // in every backup, where the configuration is or names it; a restore puts it back
	Key                       // in a backup with keys alone; a restore keeps the one that is there
	Kept                      // not in a backup; a restore keeps the one that is there
)

// String is how the documentation names a care.
func (c Care) String() string {
	return [...]string{"no", "yes", "yes", "yes", "with keys", "no, kept by a restore"}[c]
}

// An Entry is what is in a data directory under names of one form.
type Entry struct {
	Name string // a directory ends in a slash; * is any text
	Care Care
	Own  bool // the host alone writes the directory: names that begin with a dot, and locks, are passing
}

// Entries are all of them.
var Entries = []Entry{
	{Name: "mortise.yaml", Care: Configuration},
	{Name: "*.cedar", Care: Configuration},
	{Name: "tenants/", Care: Copied},
	{Name: "mounts/", Care: Copied},

	{Name: "mortise.db", Care: Database},
	{Name: "packages/", Care: Copied, Own: true},
	{Name: "blobs/", Care: Copied, Own: true},
	{Name: "reference/", Care: Copied, Own: true},

	{Name: "ledger.key", Care: Key},
	{Name: "secrets.key", Care: Key},
	{Name: "ledger*.anchor", Care: Kept},
	{Name: "erased.jsonl", Care: Kept},

	{Name: "mortise.db-*"},
	{Name: "sessions/"},
	{Name: "jobs.db*"},
	{Name: "run/"},
	{Name: "nodes/"},
	{Name: "runtime/"},
	{Name: "scratch/"},
	{Name: "*.lock"},
	{Name: "reserve"},
	{Name: "backup.tmp/"},
	{Name: "backups.failed"},
	{Name: "restored"},
	{Name: "elsewhere/"},
	{Name: ".secrets.key.*"},
}

// Find returns the entry that a slash-separated path below the data directory belongs to.
func Find(name string) (Entry, bool) {
	first, _, below := strings.Cut(name, "/")
	policies := Entry{}
	for _, e := range Entries {
		form, dir := strings.CutSuffix(e.Name, "/")
		if e.Name == "*.cedar" {
			policies = e
		}
		if below && !dir {
			continue
		}
		if pattern.Glob(form, first) {
			return e, true
		}
	}
	// Policies may be in a directory of their own, which the configuration names.
	return policies, below && strings.HasSuffix(name, ".cedar")
}

// With returns the entries with one of some cares.
func With(cares ...Care) (found []Entry) {
	for _, e := range Entries {
		for _, care := range cares {
			if e.Care == care {
				found = append(found, e)
			}
		}
	}
	return found
}

// Restorable reports whether a restore may put a file of that name into a data directory.
func Restorable(name string) bool {
	if !fs.ValidPath(name) {
		return false
	}
	e, known := Find(name)
	return known && (e.Care == Copied || e.Care == Database || e.Care == Configuration)
}
