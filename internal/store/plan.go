package store

import (
	"context"
	"time"
)

// A PlanState is where a plan stands.
type PlanState string

// The states of a plan.
const (
	PlanPending   PlanState = "pending_approval"
	PlanQueued    PlanState = "queued" // it may go on, on any node
	PlanRunning   PlanState = "running"
	PlanSucceeded PlanState = "succeeded"
	PlanFailed    PlanState = "failed"
	PlanUnknown   PlanState = "unknown" // a step of it may or may not have had its effect
	PlanCancelled PlanState = "cancelled"
)

// A PlanRow is an agent's proposal that was found acceptable. The last group is
// what a transition changes.
type PlanRow struct {
	Tenant       string
	ID           string
	Key          string // unique within the tenant: the caller's own with its prefix, or one that is no other plan's
	Agent        string // the operation that proposed it, plugin/operation
	ProposalCall string // the call that it came from
	Hash         string // of the steps, with everything that is pinned
	Principal    string // who submitted it
	RequestHash  string // of the body that says for whom the steps run
	Labels       []string
	CreatedAt    time.Time

	State     PlanState
	Node      string
	Lease     string // random, for each time it is taken up
	Code      string // of the error, where there is one
	Message   string // of the error
	UpdatedAt time.Time
}

// A PlanFence is what must still be true of a plan for a write to it to count.
type PlanFence struct {
	Tenant string
	ID     string
	State  PlanState
	Lease  string
	Node   string // as it was; nothing is compared with it
}

// Fence returns the fence of the plan as r shows it.
func (r *PlanRow) Fence() PlanFence {
	return PlanFence{Tenant: r.Tenant, ID: r.ID, State: r.State, Lease: r.Lease, Node: r.Node}
}

// A StepRow is one step of a plan. It never changes: how the step stands is
// how the call with the key p:<plan>/<step> stands.
type StepRow struct {
	Tenant        string
	PlanID        string
	N             int64 // from 1, in the order of the proposal
	StepID        string
	Operation     string // plugin/operation
	Version       string // of the plugin, exactly
	PackageDigest string
	Input         string   // JSON: literals, and references to what earlier steps return
	Needs         []string // steps that must have succeeded
	Gate          string   // none or human_apply
	Why           string   // what policy said of the gate
	MAC           string   // of all of it and of how many steps the plan has; the store gives it
}

// A PlanFilter says which plans are wanted. Empty fields ask for nothing.
type PlanFilter struct {
	Tenant string
	State  PlanState
	Node   string
	Before string // only those with smaller ids
	Limit  int
	Live   bool // only plans that have not ended; see [PlanState.Live]

	// Ready asks for those that can go on: no person is asked about the plan, and no
	// step of it waits or is at work. They come oldest first, and After takes the place
	// of Before: only those with larger ids.
	Ready bool
	After string
}

// A PlanReader reads plans and their steps.
type PlanReader interface {
	// Plan returns the plan of that id.
	Plan(ctx context.Context, tenant, id string) (*PlanRow, error)
	// PlanByKey returns the plan that burnt a key.
	PlanByKey(ctx context.Context, tenant, key string) (*PlanRow, error)
	// PlanToRun is Plan likewise.
	PlanToRun(ctx context.Context, tenant, id string) (*PlanRow, error)
	// Plans returns plans, newest first.
	Plans(ctx context.Context, filter PlanFilter) ([]PlanRow, error)
	// Steps returns the steps of a plan, in their order.
	Steps(ctx context.Context, tenant, plan string) ([]StepRow, error)
}

// A PlanWriter is what a transaction may do to them.
type PlanWriter interface {
	// InsertPlan adds a plan with its steps. If its key was seen before, prior is
	// the plan that burnt it and nothing is written.
	InsertPlan(row PlanRow, steps []StepRow) (prior *PlanRow, err error)
	// UpdatePlan gives the plan at fence the changeable values of next (see
	// [PlanRow]) and reports whether fence still held.
	UpdatePlan(fence PlanFence, next PlanRow) (won bool, err error)
}
