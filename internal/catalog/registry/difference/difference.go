// Package difference says what is different between two versions of a plugin, for the person who approves the second.
//
// It compares the manifests as a whole, member by member, so that nothing a
// manifest may come to hold can change unseen, and the files by their hashes.
// What it finds is put in the order in which it matters: what the plugin may
// do, what it says, what its schemas accept, and which files are others.
//
// It decides nothing: that any difference holds a plugin is up to package
// registry.
package difference

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/plugin"
)

// A Side is one of the two things that are compared: a manifest, and the files
// it came with.
type Side struct {
	Manifest *plugin.Manifest // nil for nothing at all
	Files    []File
	Signer   string // the publisher that signed it, and the key; "" for no one
}

// A File is one file of a package.
type File struct {
	Path       string // slash path within the package
	Hash       string // of its content
	Executable bool
}

// A Difference is all that one side has and the other has not. Its groups are
// never nil, and sorted.
type Difference struct {
	May     []Change `json:"may"`     // what it may do, and how it is run
	Says    []Change `json:"says"`    // texts that people and models read
	Schemas []Change `json:"schemas"` // what its operations accept and promise
	Files   []Change `json:"files"`
}

// A Change is one place where the two sides differ.
type Change struct {
	At     string          `json:"at"` // a JSON pointer into the manifest, operations by name; /signer for who signed it; of a file its path
	What   What            `json:"what"`
	Before json.RawMessage `json:"before,omitzero"`
	After  json.RawMessage `json:"after,omitzero"`
}

// What says how a place differs.
type What string

// How places differ.
const (
	Added   What = "added"
	Removed What = "removed"
	Changed What = "changed"
)

// Between compares what was approved with what came after it.
func Between(before, after Side) (Difference, error) {
	d := Difference{May: []Change{}, Says: []Change{}, Schemas: []Change{}}
	old, err := form(before.Manifest)
	if err != nil {
		return d, err
	}
	now, err := form(after.Manifest)
	if err != nil {
		return d, err
	}
	w := walk{}
	w.members("", old, now)
	if w.err != nil {
		return d, w.err
	}
	for _, c := range w.found {
		switch groupOf(c) {
		case says:
			d.Says = append(d.Says, c)
		case schemas:
			d.Schemas = append(d.Schemas, c)
		default:
			d.May = append(d.May, c)
		}
	}
	slices.SortStableFunc(d.May, func(a, b Change) int {
		return cmp.Or(cmp.Compare(rank(a.At), rank(b.At)), cmp.Compare(a.At, b.At))
	})
	d.May = append(signers(before.Signer, after.Signer), d.May...)
	d.Files = files(before.Files, after.Files)
	return d, nil
}

// signers says that another one signed what came: it comes before all that a manifest says.
func signers(before, after string) []Change {
	if before == after {
		return []Change{}
	}
	c := Change{At: "/signer", What: Changed}
	text := func(signer string) json.RawMessage {
		if signer == "" {
			return nil
		}
		raw, _ := json.Marshal(signer) // a text has always a form
		return raw
	}
	if c.Before, c.After = text(before), text(after); before == "" {
		c.What = Added
	} else if after == "" {
		c.What = Removed
	}
	return []Change{c}
}

// Empty reports whether there is no difference.
func (d Difference) Empty() bool {
	return len(d.May)+len(d.Says)+len(d.Schemas)+len(d.Files) == 0
}

// Hash returns what stands for this difference and no other.
func (d Difference) Hash() (string, error) {
	raw, err := json.Marshal(d)
	if err != nil {
		return "", fmt.Errorf("hashing a difference: %w", err)
	}
	return canon.Sum(raw), nil
}

// files compares two lists of files.
func files(before, after []File) []Change {
	changes := []Change{}
	old := map[string]File{}
	for _, f := range before {
		old[f.Path] = f
	}
	for _, f := range after {
		was, there := old[f.Path]
		delete(old, f.Path)
		switch {
		case !there:
			changes = append(changes, Change{At: f.Path, What: Added, After: f.text()})
		case was != f:
			changes = append(changes, Change{At: f.Path, What: Changed, Before: was.text(), After: f.text()})
		}
	}
	for _, f := range old {
		changes = append(changes, Change{At: f.Path, What: Removed, Before: f.text()})
	}
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.At, b.At) })
	return changes
}

// text is a file as a change shows it.
func (f File) text() json.RawMessage {
	text := f.Hash
	if f.Executable {
		text += " executable"
	}
	raw, _ := json.Marshal(text) // a text has always a form
	return raw
}
