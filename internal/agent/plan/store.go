package plan

import (
	"context"

	"github.com/mortise-dev/mortise/internal/store"
)

// A Store is what an [Engine] needs of the one that keeps plans.
type Store interface {
	store.PlanReader
	store.Clock
	bodies
	Call(ctx context.Context, tenant, id string) (*store.CallRow, error)
	Node() string
	Snapshot(ctx context.Context, fn func(store.Reader) error) error
	Write(ctx context.Context, fn func(store.Tx) error) error
}

// reader is what a plan is put together from: its row and steps, their calls and what
// was asked about them.
type reader interface {
	store.PlanReader
	store.CallReader
	store.ApprovalReader
	bodies
}

type bodies interface {
	Body(ctx context.Context, tenant, hash string) ([]byte, error)
}

type planReader = store.PlanReader

// An authorityError says in which table rows that decide authority were changed.
type authorityError = store.AuthorityError

// neededBody returns the body of a hash, which has to be there; nil for no hash.
func neededBody(ctx context.Context, r bodies, tenant, hash string) ([]byte, error) {
	return store.NeededBody(ctx, r, tenant, hash)
}

// A Row is a plan as it is kept, a StepRow one of its steps, and a Filter says which
// plans are wanted.
type (
	Row     = store.PlanRow
	StepRow = store.StepRow
	Filter  = store.PlanFilter
)

// A State is where a plan stands.
type State = store.PlanState

// The states of a plan.
const (
	Pending   = store.PlanPending
	Queued    = store.PlanQueued
	Running   = store.PlanRunning
	Succeeded = store.PlanSucceeded
	Failed    = store.PlanFailed
	Unknown   = store.PlanUnknown
	Cancelled = store.PlanCancelled
)
