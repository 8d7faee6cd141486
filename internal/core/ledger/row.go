package ledger

import "github.com/mortise-dev/mortise/internal/store"

// The ledger's callers write what belongs together with a call in the transaction of its
// transition, and read its row. They know the store by these names.
type (
	Tx         = store.Tx
	Reader     = store.Reader
	CallRow    = store.CallRow
	CallFilter = store.CallFilter
	NodeRow    = store.NodeRow
)

// Why the store did not take a write; see package store.
var (
	ErrFull        = store.ErrFull
	ErrFailed      = store.ErrFailed
	ErrUncertain   = store.ErrUncertain
	ErrStoreClosed = store.ErrClosed
)
