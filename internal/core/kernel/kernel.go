// Package kernel takes one request to one recorded result.
//
// [Kernel.Call] is the only way to run anything: each call, from every caller,
// passes the same stages in the same order, and leaves an entry in the ledger
// however it ends; only a host that is closed refuses without one. The kernel reaches the rest of the host through the small
// interfaces here; package app supplies them.
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
	// ResolveFor is Resolve for one who sees some operations of each plugin: what they
	// do not see is not there, neither as a target nor in what the error says.
	ResolveFor(ctx context.Context, ref string, sees func(m *plugin.Manifest) (operations []*plugin.Operation, whole bool)) (*plugin.Target, error)
}

// A Policy judges calls. It denies what no rule allows.
type Policy interface {
	Decide(t *plugin.Target, call *plugin.Call) plugin.Decision
	// Visible returns the operations of a plugin that the caller may see; whole
	// reports that it may see all of them.
	Visible(m *plugin.Manifest, call *plugin.Call) (operations []*plugin.Operation, whole bool)
}

// A Runner carries calls out.
type Runner interface {
	Run(ctx context.Context, t *plugin.Target, call *plugin.Call, services plugin.Services) (plugin.Result, error)
	// Preview asks what a call would do.
	Preview(ctx context.Context, t *plugin.Target, call *plugin.Call, services plugin.Services) (json.RawMessage, error)
	// Reconcile asks how an earlier run of the call ended.
	Reconcile(ctx context.Context, t *plugin.Target, call *plugin.Call, effects []protocol.Effect, services plugin.Services) (protocol.Reconciled, error)
	// Isolation returns the level that the plugin runs at: full, partial or none.
	Isolation(t *plugin.Target) string
}

// A Reserver is a [Runner] that can be asked for what a call runs in before it is
// claimed: a refusal then burns no key.
type Reserver interface {
	// Reserve waits for it. Pass the context that with returns to Run; release gives
	// the reservation back if it was not used.
	Reserve(ctx context.Context, t *plugin.Target, call *plugin.Call) (with func(context.Context) context.Context, release func(), err error)
}

// Services are what a plugin may ask of the host.
type Services interface {
	// For returns what a call may ask for; its effects go through the journal,
	// where there is one.
	For(t *plugin.Target, call *plugin.Call, journal *ledger.Journal) usage.Grant
	// Reading returns what a call may ask for while it only looks.
	Reading(t *plugin.Target, call *plugin.Call) usage.Grant
}

// Quotas bound how often principals call.
type Quotas interface {
	// Take counts a call that is about to run, or to be put on record, or refuses it. again
	// is of one that was counted when it was put on record, holds of one that runs now. done
	// must be called when the call is over here, and says whether it counts.
	Take(ctx context.Context, t *plugin.Target, call *plugin.Call, again, holds bool) (done func(counts bool), err error)
}

// Agents know what an agent may be told, and which of its answers count.
type Agents interface {
	// Brief returns the whole input of an agent, made from its caller's.
	Brief(ctx context.Context, t *plugin.Target, call *plugin.Call) (json.RawMessage, error)
	// Judge returns nil for an answer that may count.
	Judge(ctx context.Context, t *plugin.Target, call *plugin.Call, input, output json.RawMessage) error
}

// Options are the parts of a kernel. All of the first five are needed.
type Options struct {
	Registry Registry
	Policy   Policy
	Ledger   *ledger.Ledger
	Runner   Runner
	Services Services

	Quotas Quotas // nil bounds nothing

	// Definitions knows how the tools of other programs were described before. It may be nil.
	Definitions interface {
		Changed(ctx context.Context, tenant string, t *plugin.Target) (bool, error)
	}
	ReportTime time.Duration // how long such a program has to say how a tool ended; an hour where it is 0

	Agents Agents // where it is nil, agents are called like any other operation
	Hooks  Hooks  // if nil, events of agent instances have no listener

	// Equip refuses a call for which something is missing that its operation needs
	// and that its caller has to provide, a secret. It returns the input as the
	// plugin gets it, with what the caller's leaves open filled in, and the labels of
	// that. It may be nil.
	Equip func(ctx context.Context, t *plugin.Target, call *plugin.Call) (input json.RawMessage, labels []string, err error)

	// Seen returns the input of a call as policy judges it and a person is shown it:
	// with what the host fills in, and a reference in the place of a secret; and the
	// labels of all that is filled in, secrets too. Where it is nil, placeholders stand
	// for all that the host fills in.
	Seen func(ctx context.Context, t *plugin.Target, call *plugin.Call) (input json.RawMessage, labels []string, err error)

	// Artifact returns the artifact of a call's session that a name, its id or its
	// path, means; false if there is none. It may be nil.
	Artifact func(ctx context.Context, call *plugin.Call, name string) (plugin.File, bool, error)

	// Hold refuses, for the time being, whatever has effects. It may be nil.
	Hold func(ctx context.Context) error

	// Asked hears of each question that is put to people, with the token that
	// answers it. It may be nil.
	Asked func(a *approval.Asked, call *plugin.Call)
	// Expire closes the questions whose time is over, for those who wait for an
	// answer; nil leaves that to others.
	Expire func(ctx context.Context) (int, error)
	// Wake announces a call that is ready to run. It may be nil.
	Wake func(ctx context.Context, tenant, id string)
	// Ended hears of calls that have ended without the one who made them being
	// there: resumed, settled, cancelled. It may be nil.
	Ended func(ctx context.Context, row *ledger.CallRow)

	// Watch is told of each attempt at a call: it returns the context that the attempt goes
	// on in, and what is told of the stages that it has passed (validate, authorize, claim,
	// run) and, once, of its record when it has ended. It may be nil.
	Watch func(ctx context.Context, call *plugin.Call) (inside context.Context, passed func(stage string), ended func(rec *plugin.CallRecord))

	ApprovalTime time.Duration    // how long an approval may take; a day where it is 0
	MaxInput     int              // bytes of an input; 4 MiB where it is 0; see [Kernel.Limit]
	MaxOutput    int              // bytes of a result's data; 4 MiB where it is 0; likewise
	Now          func() time.Time // time.Now where it is nil
	Log          *slog.Logger     // the causes of internal errors; discarded where it is nil
}

// A Kernel runs calls. It is safe for concurrent use.
type Kernel struct {
	Options
	limits     atomic.Pointer[limits] // MaxInput and MaxOutput as they are now
	cache      *cache
	ended      *signals // of calls that ended in this process
	running    *running // the claimed calls that this process runs
	listening  listening
	admission  *admission
	unrecorded unrecorded // the ends of calls that could not be recorded yet
}

// New returns a kernel made of these parts.
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
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	k := &Kernel{Options: o, cache: newCache(), ended: newSignals(), running: newRunning(), admission: newAdmission()}
	k.Limit(o.MaxInput, o.MaxOutput)
	return k
}

// limits are how many bytes an input and a result's data have at most.
type limits struct{ input, output int }

// Limit has calls that begin from now on judged by other limits.
func (k *Kernel) Limit(input, output int) { k.limits.Store(&limits{input, output}) }

// Limits returns how many bytes an input and a result's data have at most.
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
	ctx, leave, err := k.admission.enter(ctx, call.ID)
	defer leave()
	if err != nil {
		return res, err
	}
	ctx, done := budget.Holding(ctx)
	defer done()
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
	// Count: it is within what its principal may call.
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
	ctx, leave, err := k.admission.enter(ctx, id)
	defer leave()
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
	ctx, done := budget.Holding(ctx)
	defer done()
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
