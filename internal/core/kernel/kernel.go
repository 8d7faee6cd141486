// Package kernel takes one request to one recorded result.
//
// [Kernel.Call] is the only way to run anything: each call, from every caller, passes the
// same stages in the same order and leaves an entry in the ledger however it ends. Only a
// host that is shutting down refuses without one. The kernel reaches the rest of the host
// through the small interfaces here; package app supplies them.
package kernel

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/internal/base/fault"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/core/usage"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// A Registry knows every plugin.
type Registry interface {
	// Resolve returns the one operation of one version that a reference such as
	// name/op@1.x means.
	Resolve(ctx context.Context, ref string) (*plugin.Target, error)
	// ResolveFor is Resolve limited to the operations that sees returns for each plugin.
	// All others do not exist for this caller, neither as a target nor in an error message.
	ResolveFor(ctx context.Context, ref string, sees func(m *plugin.Manifest) (operations []*plugin.Operation, whole bool)) (*plugin.Target, error)
}

// A Policy decides about calls. It denies what no rule allows.
type Policy interface {
	Decide(t *plugin.Target, call *plugin.Call) plugin.Decision
	// Visible returns the operations of a plugin that the caller may see; whole is true if
	// these are all of them.
	Visible(m *plugin.Manifest, call *plugin.Call) (operations []*plugin.Operation, whole bool)
}

// A Runner executes calls.
type Runner interface {
	Run(ctx context.Context, t *plugin.Target, call *plugin.Call, services plugin.Services) (plugin.Result, error)
	// Preview returns what a call would do, without doing it.
	Preview(ctx context.Context, t *plugin.Target, call *plugin.Call, services plugin.Services) (json.RawMessage, error)
	// Reconcile determines how an earlier attempt of the call ended.
	Reconcile(ctx context.Context, t *plugin.Target, call *plugin.Call, effects []protocol.Effect, services plugin.Services) (protocol.Reconciled, error)
	// Isolation returns the sandbox level of the plugin: full, partial or none.
	Isolation(t *plugin.Target) string
}

// A Reserver is a [Runner] that can reserve a process before the call is claimed, so that a
// refusal does not use up the idempotency key.
type Reserver interface {
	// Reserve waits for a process. Pass the context that with returns to Run; release
	// returns an unused reservation.
	Reserve(ctx context.Context, t *plugin.Target, call *plugin.Call) (with func(context.Context) context.Context, release func(), err error)
}

// A Roomy is a [Runner] that knows when it has no room for a call, so that the call is
// refused before it is claimed.
type Roomy interface {
	// Room returns nil while the call may wait for a process, or [plugin.CodeOverloaded].
	Room(t *plugin.Target, call *plugin.Call) error
}

// Services grants the host services of calls.
type Services interface {
	// For returns the services that a call was granted. Its effects go through the
	// journal, if there is one.
	For(t *plugin.Target, call *plugin.Call, journal *ledger.Journal) usage.Grant
	// Reading returns the services that a call may use without effects.
	Reading(t *plugin.Target, call *plugin.Call) usage.Grant
}

// Quotas limit the number of calls of principals.
type Quotas interface {
	// Take counts a call that is about to run or to be queued, or refuses it. again is true
	// for a call that was counted when it was queued, holds for one that runs now. The caller
	// must call done at the end of the attempt, with counts false to take the count back.
	Take(ctx context.Context, t *plugin.Target, call *plugin.Call, again, holds bool) (done func(counts bool), err error)
}

// Agents builds the input of agents and validates their proposals.
type Agents interface {
	// Brief returns the complete input of an agent, built from the caller's.
	Brief(ctx context.Context, t *plugin.Target, call *plugin.Call) (json.RawMessage, error)
	// Judge returns nil for an acceptable proposal.
	Judge(ctx context.Context, t *plugin.Target, call *plugin.Call, input, output json.RawMessage) error
}

// Options are the parts of a kernel. The first five are required.
type Options struct {
	Registry Registry
	Policy   Policy
	Ledger   *ledger.Ledger
	Runner   Runner
	Services Services

	Quotas Quotas // nil: no limits

	// Definitions detects changed descriptions of tools that other programs run. It may be nil.
	Definitions interface {
		Changed(ctx context.Context, tenant string, t *plugin.Target) (bool, error)
	}
	ReportTime time.Duration // time for such a program to report the outcome of a tool; 0: one hour

	Agents Agents // nil: agents are called like any other operation
	Hooks  Hooks  // nil: events of agent instances have no listeners

	// Equip refuses a call whose caller has not provided a secret or account that the
	// operation needs. It returns the input for the plugin, with placeholders filled in,
	// and the labels of the filled-in values. It may be nil.
	Equip func(ctx context.Context, t *plugin.Target, call *plugin.Call) (input json.RawMessage, labels []string, err error)

	// Seen returns the input as policy and approvers see it: placeholders filled in, and a
	// reference in place of each secret; and the labels of all filled-in values, secrets
	// included. If it is nil, placeholders stay as they are.
	Seen func(ctx context.Context, t *plugin.Target, call *plugin.Call) (input json.RawMessage, labels []string, err error)

	// Artifact returns the artifact of a call's session by its id or path; false if there
	// is none. It may be nil.
	Artifact func(ctx context.Context, call *plugin.Call, name string) (plugin.File, bool, error)

	// Hold refuses calls with effects, for example while the host is in recovery. It may be nil.
	Hold func(ctx context.Context) error

	// Asked is called for each approval that is requested, with its token. It may be nil.
	Asked func(a *approval.Asked, call *plugin.Call)
	// Expire closes approvals whose deadline has passed; nil leaves that to a sweeper.
	Expire func(ctx context.Context) (int, error)
	// Wake announces a call that is ready to run. It may be nil.
	Wake func(ctx context.Context, tenant, id string)
	// Ended is called for calls that ended without their caller: resumed, settled or
	// cancelled ones. It may be nil.
	Ended func(ctx context.Context, row *ledger.CallRow)

	// Watch is called for each attempt at a call. It returns the context of the attempt, a
	// function that is called after each stage (validate, authorize, claim, run), and one
	// that is called once with the record at the end. It may be nil.
	Watch func(ctx context.Context, call *plugin.Call) (inside context.Context, passed func(stage string), ended func(rec *plugin.CallRecord))

	ApprovalTime time.Duration    // lifetime of an approval; 0: one day
	MaxInput     int              // bytes of an input; 0: 4 MiB; see [Kernel.Limit]
	MaxOutput    int              // bytes of a result's data; 0: 4 MiB; likewise
	MaxCalls     int              // calls at work at a time; 0: 4096; likewise
	Now          func() time.Time // nil: the clock of the store
	Log          *slog.Logger     // receives the causes of internal errors; nil discards them
}

// A Kernel runs calls. It is safe for concurrent use.
type Kernel struct {
	Options
	limits     atomic.Pointer[limits] // MaxInput, MaxOutput and MaxCalls as they are now
	cache      *cache
	ended      *signals // of calls that ended in this process
	running    *running // the claimed calls that this process runs
	listening  listening
	admission  *admission
	unrecorded unrecorded // the ends of calls that could not be recorded yet
}

// New returns a kernel that consists of these parts.
func New(o Options) *Kernel {
	if o.ApprovalTime == 0 {
		o.ApprovalTime = 24 * time.Hour
	}
	if o.ReportTime == 0 {
		o.ReportTime = reportedLife
	}
	if o.MaxInput == 0 {
		o.MaxInput = 4 << 20
	}
	if o.MaxOutput == 0 {
		o.MaxOutput = 4 << 20
	}
	if o.MaxCalls == 0 {
		o.MaxCalls = 4096
	}
	if o.Now == nil {
		o.Now = o.Ledger.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	k := &Kernel{Options: o, cache: newCache(), ended: newSignals(), running: newRunning(), admission: newAdmission()}
	k.Limit(o.MaxInput, o.MaxOutput, o.MaxCalls)
	return k
}

// limits are the maximum sizes of an input and of a result's data, in bytes, and of how many
// calls are at work at a time.
type limits struct{ input, output, calls int }

// Limit sets the limits for calls that begin from now on.
func (k *Kernel) Limit(input, output, calls int) { k.limits.Store(&limits{input, output, calls}) }

// Limits returns the maximum sizes of an input and of a result's data, in bytes.
func (k *Kernel) Limits() (input, output int) { l := k.limits.Load(); return l.input, l.output }

// Call takes one request to one recorded result. Every surface, and every
// plugin that asks for an operation, ends up here; there is no second way in.
//
// On error the result holds no data, and plugin.CodeOf tells which stage refused.
func (k *Kernel) Call(ctx context.Context, call plugin.Call) (res plugin.Result, err error) {
	// Record that we were asked and, on the way out, how it ended: for refused
	// calls too, and for callers who have hung up.
	a := k.begin(&call)
	k.listening.listen(ctx, &call)
	ctx, in, err := k.admission.enter(ctx, call.ID)
	defer in.leave()
	if err != nil {
		return res, err
	}
	ctx, held := budget.Holding(ctx)
	defer held.Done()
	ctx = a.watch(ctx)
	defer func() { res, err = a.finish(ctx, res, err) }()
	fault.At("accept")
	if err := k.admission.open(); err != nil {
		return res, err
	}

	// Resolve: which operation of which version of which plugin is meant?
	if err := a.resolve(ctx); err != nil {
		return res, err
	}
	// Look up: a key seen before gets its first answer and no second effect.
	if first, seen, err := a.lookUp(ctx); seen || err != nil {
		return first, err
	}
	// Hooks: what may change or veto an agent's call comes before what judges it.
	if err := a.hook(ctx); err != nil {
		return res, err
	}
	// Admit: brief, attach, check in, decide. What no policy allows is denied.
	if err := a.admit(ctx); err != nil {
		return res, err
	}
	// Reuse: a pure tool has answered this very input before.
	if earlier, found := a.reuse(); found {
		return earlier, nil
	}
	// Count: it is within what its principal may call, and the host is not full.
	if err := a.count(ctx); err != nil {
		return res, err
	}
	// Reserve: a nested call gets its process before its key is stored. If all processes
	// wait for each other, it is refused and its key stays free.
	ctx, release, err := a.reserve(ctx)
	if err != nil {
		return res, err
	}
	defer release()
	// Claim: from here on a second call with this key finds this one. Where
	// policy requires approval, the call is stored and waits for it.
	first, over, err := a.claim(ctx)
	a.passed("claim")
	if over || err != nil {
		return first, err
	}
	// Run: in a process that is shared as the manifest says, under a deadline, holding
	// only the services it was granted.
	if res, err = a.run(ctx); err != nil {
		return res, err
	}
	// Check out: what a plugin returns counts only if it matches what it promised.
	err = a.checkOut(ctx, &res)
	return res, err
}

// Resume continues a queued call: one that was approved, one that was queued
// for later, or one whose host died with no effect of unknown outcome. It
// passes the same stages again, except the lookup of its idempotency key, the
// hooks of its agent, which have answered already, and the cache. If another
// process has claimed the call, or it is not queued, the result has its current
// state.
func (k *Kernel) Resume(ctx context.Context, tenant, id string) (res plugin.Result, err error) {
	ctx, in, err := k.admission.enter(ctx, id)
	defer in.leave()
	if err == nil {
		err = k.admission.open() // it stays queued
	}
	if err != nil {
		return res, err
	}
	a, err := k.again(ctx, tenant, id)
	if err != nil || a == nil {
		return k.status(ctx, tenant, id, err)
	}
	ctx, held := budget.Holding(ctx)
	defer held.Done()
	ctx = a.watch(ctx)
	defer func() { res, err = a.finish(ctx, res, err) }()

	if err := a.resolve(ctx); err != nil {
		return res, err
	}
	if err := a.admit(ctx); err != nil {
		return res, err
	}
	if err := a.count(ctx); err != nil {
		return res, err
	}
	ctx, release, err := a.reserve(ctx)
	if err != nil {
		return res, err
	}
	defer release()
	// Start: a compare-and-set lets one of the competing nodes go on with the call, and
	// uses up its approval in the same transaction.
	if now, lost, err := a.start(ctx); lost || err != nil {
		return now, err
	}
	a.passed("claim")
	if res, err = a.run(ctx); err != nil {
		return res, err
	}
	err = a.checkOut(ctx, &res)
	return res, err
}
