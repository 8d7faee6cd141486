package store

import "time"

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
