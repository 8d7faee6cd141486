package approval

import (
	"context"

	"github.com/mortise-dev/mortise/internal/store"
)

// A Store is what a [Service] needs of the one that keeps approvals.
type Store interface {
	store.ApprovalReader
	store.Clock
	CallToRun(ctx context.Context, tenant, id string) (*store.CallRow, error)
	PlanToRun(ctx context.Context, tenant, id string) (*store.PlanRow, error)
	Write(ctx context.Context, fn func(store.Tx) error) error
}

// reader is what an answer is held against: the call or the plan that the approval is
// for, and the bodies that the person was shown.
type reader interface {
	store.BodyGetter
	Call(ctx context.Context, tenant, id string) (*store.CallRow, error)
	Plan(ctx context.Context, tenant, id string) (*store.PlanRow, error)
	Steps(ctx context.Context, tenant, plan string) ([]store.StepRow, error)
}

// A Row is an approval as it is kept, and a Filter says which are wanted.
type (
	Row    = store.ApprovalRow
	Filter = store.ApprovalFilter
)

// What an approval is for.
const (
	SubjectCall = store.SubjectCall
	SubjectPlan = store.SubjectPlan
)

// A State is where an approval stands.
type State = store.ApprovalState

// The states of an approval.
const (
	Open     = store.ApprovalOpen
	Approved = store.ApprovalApproved
	Denied   = store.ApprovalDenied
	Expired  = store.ApprovalExpired
	Voided   = store.ApprovalVoid
	Consumed = store.ApprovalConsumed
)

// A planState is where the plan stands that an approval is for.
type planState = store.PlanState

const (
	planPending = store.PlanPending
	planQueued  = store.PlanQueued
	planFailed  = store.PlanFailed
)

// An authorityError says in which table rows that decide authority were changed.
type authorityError = store.AuthorityError

// preview returns what the person who decides on an approval was shown.
func preview(ctx context.Context, r reader, row *Row) ([]byte, error) {
	return store.Preview(ctx, r, row)
}

// neededBody returns the body of a hash, which has to be there; nil for no hash.
func neededBody(ctx context.Context, r reader, tenant, hash string) ([]byte, error) {
	return store.NeededBody(ctx, r, tenant, hash)
}
