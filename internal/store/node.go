package store

import (
	"context"
	"time"
)

// A NodeRow is a process that writes to the store and has not closed its books.
// How a dead one is told from a live one is the engine's affair: by a lock it
// holds, or by a lease it keeps renewing.
type NodeRow struct {
	ID         string
	Addr       string // where others reach it; "" where they do not
	Epoch      int64
	StartedAt  time.Time
	LeaseUntil time.Time // zero where liveness is a lock
}

// A NodeReader reads the processes that write.
type NodeReader interface {
	// Nodes returns the processes that are on the books, oldest first.
	Nodes(ctx context.Context) ([]NodeRow, error)
}

// A NodeWriter is what a transaction may do to them.
type NodeWriter interface {
	// InsertNode puts a process on the books.
	InsertNode(row NodeRow) error
	// DeleteNode takes it off and reports whether it was there.
	DeleteNode(id string) (found bool, err error)
	// Claim gives name to value, unless it was given before, and returns what
	// has it.
	Claim(name, value string) (holder string, err error)
}
