package store

import (
	"context"
	"iter"
	"time"
)

// An EffectState is how far an effect got.
type EffectState string

// The states of an effect.
const (
	EffectIntent EffectState = "intent" // it may be on its way
	EffectDone   EffectState = "done"   // it was answered, and the answer is kept
	EffectLate   EffectState = "late"   // it was answered after its attempt was over; a later attempt takes it for its answer

	// EffectNotDone: it was an intent, and reconciliation found that it never happened. It
	// may be sent again.
	EffectNotDone EffectState = "not_done"
)

// An EffectRow is one effect in the journal of a call: put there before it is
// sent, and again before the plugin hears the answer.
type EffectRow struct {
	Tenant      string
	CallID      string
	N           int64 // from 1 within its call, in the order in which they were begun
	Attempt     int64 // of the call, that sent it last
	Method      string
	Class       string // external or local
	Effect      string // its name, such as http_write
	RequestHash string // of method and arguments
	Occurrence  int64  // how many equal requests of the call came before it
	ProviderKey string // by which the other side tells a repetition; "" where it cannot

	State        EffectState
	ResponseHash string // of the body that holds the answer
	At           time.Time
}

// An EffectReader reads the journals of calls.
type EffectReader interface {
	// Effects returns the journal of a call, in its order.
	Effects(ctx context.Context, tenant, call string) ([]EffectRow, error)
	// LiveEffects yields the journals of all calls that have not ended, in no order.
	LiveEffects(ctx context.Context) iter.Seq2[EffectRow, error]
}

// An EffectWriter is what a transaction may do to them.
type EffectWriter interface {
	// InsertEffect adds an effect to the journal of the call at fence, with the
	// next n, and returns it. If an equal one is there - same call, request and
	// occurrence - that is prior and nothing is written. won reports whether
	// the fence held; if not, nothing is written and there is no prior.
	InsertEffect(fence Fence, row EffectRow) (inserted, prior *EffectRow, won bool, err error)
	// UpdateEffect gives effect row.N of the call at fence row's attempt, state,
	// answer and time, and reports whether fence still held.
	UpdateEffect(fence Fence, row EffectRow) (won bool, err error)
	// LateEffect keeps the answer to an effect that is still an intent of the row's
	// attempt although that attempt is over, whatever became of the call, and
	// reports whether there was such an effect.
	LateEffect(row EffectRow) (found bool, err error)
}

// JournalHash returns the hash of the effects of a call, all that is known of each.
func JournalHash(rows []EffectRow) string {
	h := newRowHash("journal")
	for _, r := range rows {
		h.text(r.Tenant, r.CallID, r.Method, r.Class, r.Effect, r.RequestHash, r.ProviderKey, string(r.State), r.ResponseHash)
		h.number(r.N, r.Attempt, r.Occurrence)
		h.time(r.At)
	}
	return h.sum()
}
