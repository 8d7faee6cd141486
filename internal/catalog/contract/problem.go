package contract

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Problem is one thing that keeps a manifest from being accepted: the file,
// the place in it and the reason. The place is a JSON pointer ("" for the file as
// a whole, in YAML too) or, in source, a line and a column. Row is the row of the
// requirements that it departs from, of a manifest of Event Mill or Shu.
type Problem struct {
	File    string `json:"file"`
	Pointer string `json:"pointer"`
	Line    int    `json:"line,omitempty"` // from 1
	Column  int    `json:"column,omitempty"`
	Reason  string `json:"reason"`
	Row     string `json:"row,omitempty"`
}

// String returns "manifest.yaml: at /name: reason", or "plugin.py:3:1: reason".
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
		}
		b.WriteString(": ")
	}
	if p.Pointer != "" {
		b.WriteString("at " + p.Pointer + ": ")
	}
	b.WriteString(p.Reason)
	return b.String()
}

// Problems is everything that is wrong with one manifest, sorted by file and
// place. It is an error that prints one problem a line.
type Problems []Problem

// Error returns one line for each problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// err returns ps, sorted, as an error, or nil if there are none.
func (ps Problems) err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps.sorted()
}

// sorted returns ps in order and without repetitions.
func (ps Problems) sorted() Problems {
	sorted := slices.Clone(ps)
	slices.SortFunc(sorted, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Reason, b.Reason))
	})
	return slices.Compact(sorted)
}

// Whole returns the one problem of a file as a whole.
func Whole(file, reason string) Problems { return Problems{{File: file, Reason: reason}} }
