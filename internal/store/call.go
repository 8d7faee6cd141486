package store

import (
	"context"
	"time"
)

// A CallState is where a call stands in the store. Outside, some of them read
// alike; see plugin.Status.
type CallState string

// The states of a call.
const (
	CallPending    CallState = "pending_approval"
	CallQueued     CallState = "queued" // it may run, on any node
	CallRunning    CallState = "running"
	CallInProgress CallState = "in_progress" // the operator goes on by itself and is asked later how it ended
	CallSucceeded  CallState = "succeeded"
	CallFailed     CallState = "failed"
	CallUnknown    CallState = "unknown" // an effect may or may not have happened
)

// Ended reports whether nothing more will happen to such a call by itself.
func (s CallState) Ended() bool { return s == CallSucceeded || s == CallFailed || s == CallUnknown }

// A CallRow is the current state of a call that has effects, a caller's key, a
// gate or asynchronous work. The last group is what a transition changes; the
// rest never changes.
type CallRow struct {
	Tenant        string
	ID            string
	Operation     string // plugin/operation
	Key           string // with its prefix
	Fingerprint   string // hash of what the caller asked for
	Principal     string
	Actor         string
	Agent         string
	Origin        string
	Parent        string
	Plan          string
	Session       string
	Labels        []string
	Version       string
	PackageDigest string
	PolicyVersion string
	InputHash     string
	RequestHash   string // of the body with which it can be run again; see package kernel
	Effectful     bool   // its operation declares effects
	Journalled    bool   // and every one of them is in the journal
	CreatedAt     time.Time

	State         CallState
	Attempt       int64
	Lease         string // random, for each attempt
	Node          string // whose attempt it is
	WakeAt        time.Time
	Deadline      time.Time
	ResultHash    string // of the body that holds the answer
	Journal       string // while no attempt is at work, the hash of its effects; the store gives it
	Code          string // of the error, where there is one
	SchemaVersion string // of the answer
	Cancelled     bool   // a cancel is requested; changed by CancelCall alone
	UpdatedAt     time.Time

	RemovedAt time.Time // when its input and answer were removed; zero while they are kept
	RemovedBy string    // [RemovedByRetention] or [RemovedByErasure]
}

// A Fence is what must still be true of a call for a write to it to count.
type Fence struct {
	Tenant  string
	ID      string
	State   CallState
	Attempt int64
	Lease   string

	// What a transition may change as well, as it was; nothing is compared with it.
	Key, Node string
}

// Fence returns the fence of the call as r shows it.
func (r *CallRow) Fence() Fence {
	return Fence{Tenant: r.Tenant, ID: r.ID, State: r.State, Attempt: r.Attempt, Lease: r.Lease, Key: r.Key, Node: r.Node}
}

// A CallFilter says which calls are wanted. Empty fields ask for nothing.
type CallFilter struct {
	Tenant    string // "" for all tenants
	Operation string
	State     CallState
	Principal string
	Decisions bool // only decisions about tools that other programs run
	Session   string
	Plan      string
	Parent    string
	Node      string
	DueBefore time.Time // only calls with a wake_at, and that not after it; the longest waiting come first
	Cancelled bool      // only calls with a requested cancel
	Live      bool      // only calls that have not ended; see [CallState.Live]
	Before    string    // only calls with smaller ids; the last id of one page gives the next
	Limit     int       // 0 for no limit
}

// A CallReader reads calls.
type CallReader interface {
	// Call returns the call of that id.
	Call(ctx context.Context, tenant, id string) (*CallRow, error)
	// CallByKey returns the call that burnt a key; key is the stored form.
	CallByKey(ctx context.Context, tenant, operation, key string) (*CallRow, error)
	// Calls returns calls, newest first; those that are due by when.
	Calls(ctx context.Context, filter CallFilter) ([]CallRow, error)
	// CallToRun is Call for who goes on with it: [Authorised] stores hold the row
	// against the ledger first.
	CallToRun(ctx context.Context, tenant, id string) (*CallRow, error)
}

// A CallWriter is what a transaction may do to them.
type CallWriter interface {
	// InsertCall adds a call. If its key was seen before, prior is the call
	// that burnt it and nothing is written.
	InsertCall(row CallRow) (prior *CallRow, err error)
	// UpdateCall gives the call at fence the changeable values of next (see
	// [CallRow]) and reports whether fence still held; if not, nothing is
	// written.
	UpdateCall(fence Fence, next CallRow) (won bool, err error)
	// CancelCall records a cancel request on a call that has not ended, and reports whether
	// there was such a call. It needs no fencing token.
	CancelCall(tenant, id string) (found bool, err error)
}
