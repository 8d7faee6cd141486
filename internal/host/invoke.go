package host

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

// A Kernel makes calls, and brings them to their end.
type Kernel interface {
	Call(ctx context.Context, call plugin.Call) (plugin.Result, error)
	Await(ctx context.Context, tenant, id string) (plugin.Result, error)
	Advance(ctx context.Context, tenant, id string) error
	Changed(id string) (changed <-chan struct{}, leave func())
	Cancel(ctx context.Context, tenant, id, by, reason string) (ledger.State, error)
	Settle(ctx context.Context, tenant, id string, s Settlement) (plugin.Result, error)
	Report(ctx context.Context, tenant, id string, r Report) (*CallRow, error)
	Reserve(ctx context.Context, tenant, id, use string) (bool, error)
	Reconcile(ctx context.Context, tenant, id string) error
}

// The values of [Invocation.Dry].
const (
	DryAll   = "all"   // nothing leaves the host
	DryReads = "reads" // what only reads is asked for
)

// An Invocation is a call as a surface asks for it.
type Invocation struct {
	ID        string         // of the call, from [NewCallID]; one is made where it is empty
	Operation string         // plugin/operation@range
	Target    *plugin.Target // what that means, where [Plugins.Operation] was asked before
	Input     json.RawMessage
	Given     []Attachment // files and artifacts that the input is to name

	Session string // the id of the session that it belongs to
	Joins   bool   // the session was there before, and may have a process that remembers

	Origin plugin.Origin

	Key      string // idempotency key
	Fresh    bool   // do not answer with an earlier result
	Timeout  time.Duration
	Labels   []string
	NoWait   bool
	Whole    bool // see [plugin.Call]
	Stays    bool // it goes on without who made it, once it is on record
	NoWake   bool // with NoWait: it is waited for at once with [Calls.Wait], which resumes it
	Patience time.Duration
	Dry      string // DryAll or DryReads makes it a dry run

	// Begins is told that the call is put together and is made now, and whether its
	// diagnostics are asked for. What it returns hears the events of the call. It may be
	// nil.
	Begins func(debug bool) (observe func(plugin.Event))
}

// NewKey returns an idempotency key that no other request has.
func NewKey() string { return uuid.NewString() }

// NewCallID returns an id for a call that is to be made.
func NewCallID() string { return uuid.Must(uuid.NewV7()).String() }

// Operation returns what a reference means. Where a contract lets the input name the
// operation, the reference is completed by it. A reference that means nothing is
// returned as it is, without a target: the call is refused then, on the record.
func (p Plugins) Operation(ctx context.Context, ref string, input json.RawMessage) (string, *plugin.Target) {
	if t, err := p.registry.Resolve(ctx, ref); err == nil {
		call := p.g.call(p.by)
		if call.Input = input; p.g.Policy.Decide(t, call).Verdict != plugin.Deny {
			return ref, t
		}
	}
	if t, err := p.registry.ResolveFor(ctx, ref, p.sees); err == nil {
		return ref, t
	}
	name, constraint, constrained := strings.Cut(ref, "@")
	if strings.Contains(name, "/") {
		return ref, nil
	}
	shown, err := p.registry.ShowFor(ctx, ref, p.sees) // the call leaves the entry of the refusal
	if err != nil {
		return ref, nil
	}
	preparer, prepares := contract.Of[contract.Preparer](shown.Manifest)
	if !prepares {
		return ref, nil
	}
	op := preparer.Operation(shown.Manifest, input)
	if op == "" {
		return ref, nil
	}
	full := name + "/" + op
	if constrained {
		full += "@" + constraint
	}
	t, err := p.registry.ResolveFor(ctx, full, p.sees)
	if err != nil {
		return ref, nil
	}
	return full, t
}

// Waits reports whether a call of an operation may wait for a person. One that has no effects,
// and that policy allows as it is, does not.
func (p Plugins) Waits(t *plugin.Target, input json.RawMessage) bool {
	call := p.g.call(p.by)
	call.Input = input
	return len(t.Operation.Effects) > 0 || p.g.Policy.Decide(t, call).Verdict != plugin.Allow
}

// Remembers reports whether an operation keeps something in memory for the session of its
// call: a host that ends with the command that opened it would lose it.
func Remembers(t *plugin.Target) bool {
	return t != nil && t.Manifest.Isolation == plugin.IsolationSession
}

// Invoke makes a call, and returns how it stands: its result, or what it waits for.
func (a API) Invoke(ctx context.Context, in Invocation) (res plugin.Result, err error) {
	if in.Target == nil {
		in.Operation, in.Target = a.Plugins().Operation(ctx, in.Operation, in.Input)
	}
	if err := a.mayCall(ctx, in.Operation, in.Target); err != nil {
		return res, err
	}
	input, files, err := a.attach(ctx, &in)
	if err != nil {
		return res, err
	}
	input, overlay, debug, err := contract.Prepare(in.Target, input)
	if err != nil {
		return res, err
	}
	if len(overlay) > 0 && in.Origin != plugin.OriginCLI && in.Origin != plugin.OriginAPI { // a model may have written it
		return res, plugin.Errorf(plugin.CodeInvalidInput, "%s: input at /%s: only the host decides what stands there; leave it out, or have a person give it with 'mortise run' or 'mortise feeds create'",
			in.Target.Name(), in.Target.Manifest.Contract.HostMember)
	}
	call := plugin.Call{
		ID: in.ID, Tenant: a.Tenant(), Principal: a.by, By: a.onBehalf(), Asker: a.asker(), Origin: in.Origin, Session: in.Session, Operation: in.Operation,
		Input: input, Overlay: overlay, Files: files, Key: in.Key, Fresh: in.Fresh, Timeout: in.Timeout,
		Labels: plugin.Labels(nil, in.Labels), NoWait: in.NoWait, NoWake: in.NoWake, Stays: in.Stays, Whole: in.Whole, Patience: in.Patience,
	}
	if in.Dry != "" {
		call.Dry = &plugin.DryRecorder{Reads: in.Dry == DryReads}
	}
	if in.Begins != nil {
		call.Observe = in.Begins(debug)
	}
	if res, err = a.host.parts.Kernel.Call(ctx, call); err != nil || res.Status.Ended() {
		return res, err
	}
	return a.Calls().current(context.WithoutCancel(ctx), res) // an interrupted caller still hears how to continue
}

// CatchUp takes up what other processes changed: the plugins that there are, and the policies.
func (a API) CatchUp(ctx context.Context) error { return a.host.parts.CatchUp(ctx) }

// Flush writes what the ledger has behind: what a caller has been answered is then on record,
// whatever happens next. stands says that the answer stands where that fails: a call that
// was claimed is settled before it is answered, and an error is one in any case.
func (a API) Flush(ctx context.Context, stands bool) error {
	if err := a.host.parts.Ledger.Flush(context.WithoutCancel(ctx)); err != nil && !stands {
		return err
	}
	return nil
}

// Standing returns how a call stands that has not ended.
func (c Calls) Standing(ctx context.Context, id string) (plugin.Result, error) {
	row, err := c.Get(ctx, id, "see")
	if row == nil && err == nil {
		err = MissingCall(id)
	}
	if err != nil {
		return plugin.Result{}, err
	}
	return c.current(context.WithoutCancel(ctx), standing(row))
}

// current completes the result of a call that has not ended: the answer to a repeated
// idempotency key does not say what the call waits for.
func (c Calls) current(ctx context.Context, res plugin.Result) (plugin.Result, error) {
	call, err := c.host.parts.Ledger.Call(ctx, c.g.Tenant, res.CallID)
	if err != nil || call == nil {
		return res, err
	}
	res.Version = call.Version
	if res.Status != plugin.PendingApproval {
		res.Approval = nil
		return res, nil
	}
	row, err := c.host.parts.Ledger.ApprovalOf(ctx, c.g.Tenant, res.CallID)
	if err != nil || row == nil {
		return res, err
	}
	res.Approval = &plugin.Pending{ID: row.ID, Why: row.Why, ExpiresAt: row.ExpiresAt}
	if res.Approval.Preview, err = ledger.Preview(ctx, c.g.Store, row); len(res.Approval.Preview) > 0 { // its labels are not kept
		res.Labels = plugin.Labels(res.Labels, []string{plugin.Untrusted})
	}
	return res, err
}

// Envelopes returns the contracts in whose envelope an answer can be.
func Envelopes() []string { return contract.Names[contract.Enveloper]() }

// Envelope spells how a call ended in the envelope of a contract, one of [Envelopes].
func Envelope(name string, t *plugin.Target, res plugin.Result, err error, debug bool) any {
	var op *plugin.Operation
	if t != nil {
		op = t.Operation
	}
	return contract.Named(name).(contract.Enveloper).Envelope(op, res, err, debug)
}

// Spelled returns the members that the contract of an operation gives an answer, beside
// the host's own; nil if it has none.
func Spelled(t *plugin.Target, session string, res plugin.Result, err error) map[string]any {
	if t != nil {
		if s, spells := contract.Of[contract.Speller](t.Manifest); spells {
			return s.Spell(session, res, err)
		}
	}
	return nil
}
