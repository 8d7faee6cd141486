package ledger

import (
	"context"

	"github.com/mortise-dev/mortise/internal/store"
)

// The ledger's callers write what belongs together with a call in the transaction of its
// transition, and read its row. They know the store by these names.
type (
	Store      = store.Store
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

	errLapsed   = store.ErrLapsed
	errReadOnly = store.ErrReadOnly
	errTampered = store.ErrTampered
)

// The other rows that belong to a call; its own states are in states.go.
type (
	effectRow      = store.EffectRow
	entryBodyRow   = store.EntryBodyRow
	approvalRow    = store.ApprovalRow
	approvalFilter = store.ApprovalFilter
	entryFilter    = store.EntryFilter
)

const (
	effectIntent  = store.EffectIntent
	effectDone    = store.EffectDone
	effectNotDone = store.EffectNotDone
	effectLate    = store.EffectLate

	planRunning = store.PlanRunning
	subjectCall = store.SubjectCall
)

// settling returns a context whose writes may use up the reserve: they record what has
// happened already.
func settling(ctx context.Context) context.Context { return store.Settling(ctx) }

// Preview returns what the person who decides on an approval is shown, nil where that is nothing.
func Preview(ctx context.Context, r Reader, row *approvalRow) ([]byte, error) {
	return store.Preview(ctx, r, row)
}
