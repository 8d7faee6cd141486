package approval

import (
	"context"

	"github.com/mortise-dev/mortise/internal/store"
)

// A Store is what a [Service] needs of the one that keeps approvals.
type Store interface {
	store.ApprovalReader
	CallToRun(ctx context.Context, tenant, id string) (*store.CallRow, error)
	PlanToRun(ctx context.Context, tenant, id string) (*store.PlanRow, error)
	Write(ctx context.Context, fn func(store.Tx) error) error
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
