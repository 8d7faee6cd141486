package store

import (
	"context"
	"iter"

	"github.com/mortise-dev/mortise/plugin"
)

// An EntryFilter says which entries are wanted. Empty fields ask for nothing.
type EntryFilter struct {
	Chain   int64 // 0 for all, one after the other
	After   int64 // only those with a larger seq
	Until   int64 // only those with a seq of at most this; 0 for no limit
	Tenant  string
	Kind    string // a kind, or the beginning of one that ends in a dot: "call."
	Subject string
	Limit   int  // 0 for no limit
	Newest  bool // from the end backwards
}

// An EntryReader reads entries and the heads of their chains.
type EntryReader interface {
	// Entry returns one entry by its place.
	Entry(ctx context.Context, chain, seq int64) (*plugin.Entry, error)
	// Entries yields entries one by one, without loading the others, in the
	// order of their chain, and chains one after the other. Newest first they
	// come by time where there are several chains. An error is yielded once
	// and ends the sequence.
	Entries(ctx context.Context, filter EntryFilter) iter.Seq2[plugin.Entry, error]
	// Chains returns the authenticated heads.
	Chains(ctx context.Context) ([]ChainRow, error)
}

// An EntryWriter is what a transaction may do to them.
type EntryWriter interface {
	// Append adds an entry to the chain. Chain, Seq, Prev and Hash are given
	// to it at the commit. An entry that cannot be kept as it is fails the
	// closure when it returns.
	Append(e plugin.Entry)
}
