package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/base/fault"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/core/binding"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// A request is one call on its way through the kernel, with what the stages
// have found out so far.
type request struct {
	k       *Kernel
	call    *plugin.Call
	started time.Time
	record  plugin.CallRecord

	target  *plugin.Target
	row     *ledger.CallRow // of a call that goes on, until it is claimed again
	lease   *ledger.Lease   // once claimed
	resumed bool            // the call was made by another request or process
	waits   bool            // claimed, and not to run now
	needs   bool            // a person's word, before it runs
	given   *approval.Row   // that word, where it was given
	void    string          // why it does not count
	ran     bool            // the plugin may have seen the call
	halted  bool            // its host closed before it ended
	unbegun bool            // its runner says that no plugin had it
	cut     bool            // it did, and the host itself ended it before there was an answer
	asked   witness         // what the plugin asked of the host; nil where that is not observed
	sampled bool            // the host asked a model on its behalf
	doubt   bool            // its record in the ledger is uncertain: the sweep may have it run again
	journal *ledger.Journal // of its effects; nil for a call without
	prior   *ledger.Prior   // the call whose answer this one gets
	input   []byte          // what the caller sent, where the plugin gets more
	open    bool            // the caller's input leaves something to the host
	misfit  error           // what the schema refuses, to be said after what is missing
	shown   json.RawMessage // the input with the paths of the files that it names
	seen    json.RawMessage // the input as policy judges it and a person is shown it
	bound   json.RawMessage // the input as the plugin gets it, once the call is equipped
	print   string          // the fingerprint of what the caller sent
	unused  func()          // gives back the process that the call has
	waited  time.Duration   // for that process
}

// begin takes note of what was asked.
func (k *Kernel) begin(call *plugin.Call) *request {
	if call.ID == "" {
		call.ID = newID()
	}
	if call.Trace.Correlation == "" {
		call.Trace.Correlation = call.ID
	}
	if len(call.Input) == 0 {
		call.Input = []byte("{}")
	}
	return &request{k: k, call: call, started: k.Now(), record: plugin.CallRecord{
		CallID:        call.ID,
		Operation:     printable(call.Operation, 300),
		Correlation:   call.Trace.Correlation,
		Workflow:      call.Trace.Workflow,
		Step:          call.Trace.Step,
		Principal:     call.Principal.ID,
		Actor:         call.Actor,
		Origin:        call.Origin,
		Parent:        call.Parent,
		Session:       call.Session,
		Agent:         call.Agent,
		Plan:          call.Plan,
		Labels:        call.Labels,
		Key:           printable(call.Key, 255),
		SchemaVersion: plugin.SchemaVersion,
		Dry:           call.Dry != nil,
	}}
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// printable cuts what a caller sent to a length and to printable ASCII.
func printable(text string, most int) string {
	text = text[:min(len(text), most)]
	return string(slices.DeleteFunc([]byte(text), func(c byte) bool { return c < ' ' || c > '~' }))
}

// resolve finds the target, and refuses what no target is needed to refuse.
func (r *request) resolve(ctx context.Context) error {
	if r.call.Tenant == "" || r.call.Principal.ID == "" {
		return plugin.Errorf(plugin.CodeUnauthenticated, "the call names no principal or no tenant: authenticate, then call again")
	}
	if r.call.Depth > plugin.MaxDepth {
		return plugin.Errorf(plugin.CodeLimitExceeded, "calls are nested more than %d deep", plugin.MaxDepth)
	}
	if key := r.call.Key; key != printable(key, 255) {
		return plugin.Errorf(plugin.CodeInvalidInput, "the key is not 1 to 255 printable ASCII characters")
	}
	if n := len(r.call.Input); n > r.k.MaxInput {
		return sized(plugin.Errorf(plugin.CodeInputTooLarge, "the input has %d bytes; at most %d are accepted", n, r.k.MaxInput), n, r.k.MaxInput)
	}
	t, err := r.k.Registry.Resolve(ctx, r.call.Operation)
	if err != nil {
		return err
	}
	if r.call.Digest != "" && t.Package.Digest != r.call.Digest {
		r.void = t.Name() + " is not the package any more that it was meant for"
		return plugin.Errorf(plugin.CodeApprovalVoid, "%s; it was %s and is %s", r.void, r.call.Digest, t.Package.Digest)
	}
	if most, _ := t.Manifest.Bounds(); most > 0 && len(r.call.Input) > most {
		return sized(plugin.Errorf(plugin.CodeInputTooLarge, "the input has %d bytes; the contract of %s allows %d", len(r.call.Input), t.Manifest.Name, most), len(r.call.Input), most)
	}
	r.target = t
	r.record.Operation = t.Name()
	r.record.Plugin, r.record.Version = t.Manifest.Name, t.Manifest.Version
	r.record.PackageDigest = t.Package.Digest
	r.record.Kind, r.record.Effects = t.Operation.Kind, t.Operation.Effects
	for _, scope := range t.Operation.Permissions {
		if !slices.Contains(r.call.Principal.Scopes, scope) && !slices.Contains(r.call.Principal.Scopes, "*") {
			return plugin.Errorf(plugin.CodeScopeDenied, "%s asks for the permission %s, which %s does not have", t.Name(), scope, r.call.Principal.ID)
		}
	}
	// Strict JSON first: what has two readings has no hash.
	r.record.InputHash, err = canon.Hash(r.call.Input)
	if budget.Exceeded(err) {
		return plugin.Errorf(plugin.CodeInputTooLarge, "the input %w", err)
	}
	if err != nil {
		return plugin.Errorf(plugin.CodeInvalidInput, "the input is not one strict JSON value: %w", err)
	}
	if protocol.TooDeep(r.call.Input) {
		return plugin.Errorf(plugin.CodeInvalidInput, "the input is nested deeper than %d", protocol.MaxDepth)
	}
	r.print = r.fingerprint()
	return r.assigned(ctx)
}

// lookUp answers a key that was seen before.
func (r *request) lookUp(ctx context.Context) (first plugin.Result, seen bool, err error) {
	if r.call.Dry != nil || r.call.Key == "" && r.call.Place == "" && r.call.Plan == "" {
		return first, false, nil
	}
	prior, err := r.k.Ledger.LookupCall(ctx, r.call, r.target.Name())
	if prior == nil || err != nil {
		return first, false, err
	}
	first, err = r.replay(ctx, prior)
	return first, true, err
}

// replay gives the answer that an earlier call with the same key got or, while
// that is at work, waits for it.
func (r *request) replay(ctx context.Context, prior *ledger.Prior) (plugin.Result, error) {
	if prior.Fingerprint != r.print || prior.Principal != r.call.Principal.ID {
		return plugin.Result{}, plugin.Errorf(plugin.CodeKeyConflict, "the key %s was used before, with another input or by someone else", r.call.Key)
	}
	r.prior = prior
	if prior.State == ledger.Pending || prior.State.Ended() || r.call.NoWait {
		return r.k.answer(r.call.Tenant, r.target.Name(), prior)
	}
	if release := r.unused; release != nil {
		release() // what is reserved may be what the other call waits for
	}
	limit := r.limit()
	if own := r.call.Patience; own > 0 && own < limit {
		limit = own
	}
	patient, cancel := context.WithTimeoutCause(ctx, limit, errWaited)
	defer cancel()
	// Who waits for another's call cancels the waiting, and not the call.
	res, err := r.k.AwaitWhile(context.WithoutCancel(ctx), patient, r.call.Tenant, prior.CallID)
	if context.Cause(patient) == errWaited && !res.Status.Ended() {
		err = nil // it is still at work, and this is its answer
	}
	res.Replayed = true
	return res, err
}

// errWaited is the end of a caller's patience with another call.
var errWaited = errors.New("the call it waits for is still at work")

// fingerprint identifies what the caller asked for: the input for one major
// version of one operation.
func (r *request) fingerprint() string {
	major, _, _ := strings.Cut(r.target.Manifest.Version, ".")
	text := r.target.Name() + "@" + major + " " + r.record.InputHash
	if kind := r.call.Principal.Type; kind != "" && kind != "user" { // a service with a user's name is a different principal
		text += " " + kind
	}
	return canon.Sum([]byte(text))
}

// checkIn holds the input against the operation's schema. One that leaves
// something to the host is held against it when that is filled in.
func (r *request) checkIn() error {
	gaps, err := binding.Gaps(r.target.Operation, r.call.Input)
	if err != nil {
		return plugin.Errorf(plugin.CodeInvalidInput, "%s: input: %w", r.target.Name(), err)
	}
	r.open = len(gaps) > 0
	err = r.target.Input.Check(r.shown)
	if budget.Exceeded(err) {
		return plugin.Errorf(plugin.CodeInputTooLarge, "%s: the input %w", r.target.Name(), err)
	}
	if err != nil && !r.open && !r.advised("input", err) {
		err = plugin.Errorf(plugin.CodeInvalidInput, "%s: input %w", r.target.Name(), err)
		if !r.schemaLast() {
			return err
		}
		r.misfit = err
	}
	if len(r.target.Operation.Effects) > 0 {
		if at, found := canon.BigNumber(r.call.Input); found {
			return plugin.Errorf(plugin.CodeInvalidInput, "%s: input at %s: a number above 2^53 does not mean the same to every program; send it as text", r.target.Name(), at)
		}
	}
	fault.At("validate")
	return nil
}

// advised reports whether a schema that what stands here does not fit is advice
// alone, and keeps that in the log: the plugin's own code decides.
func (r *request) advised(what string, misfit error) bool {
	if !r.target.Operation.Advisory {
		return false
	}
	r.k.Log.Info("what a call carries does not fit the schema, which is advice", "call_id", r.call.ID, "operation", r.target.Name(), "part", what, "misfit", misfit.Error())
	return true
}

// brief completes the input of an agent.
func (r *request) brief(ctx context.Context) error {
	if r.target.Operation.Kind != plugin.Agent || r.k.Agents == nil {
		return nil
	}
	input, err := r.k.Agents.Brief(ctx, r.target, r.call)
	if err != nil {
		return err
	}
	r.input, r.call.Input = r.call.Input, input
	return nil
}

// decide asks policy.
func (r *request) decide(ctx context.Context) error {
	if r.call.EffectFree && len(r.target.Operation.Effects) > 0 {
		return plugin.Errorf(plugin.CodeEffectUndeclared, "%s has effects (%s), and was asked for by a tool or an agent, below which nothing has", r.target.Name(), strings.Join(r.target.Operation.Effects, ", "))
	}
	if err := r.see(ctx); err != nil {
		return err
	}
	judged := *r.call
	judged.Input = r.seen
	d := r.k.Policy.Decide(r.target, &judged)
	r.record.Decision, r.call.Decision = &d, &d
	fault.At("policy")
	switch d.Verdict {
	case plugin.Allow:
		return r.equip(ctx)
	case plugin.AllowWithApproval: // a call that could not run is not put up for approval
		if err := r.equip(ctx); err != nil || r.call.Dry != nil {
			return err
		}
		return r.gate(ctx)
	default:
		return plugin.Errorf(plugin.CodePolicyDenied, "%s", d.Reasons[0])
	}
}

// equip refuses what its caller has not provided for, and what is held; and it
// makes the input ready that the plugin gets.
func (r *request) equip(ctx context.Context) error {
	if len(r.target.Operation.Effects) > 0 {
		if err := r.k.hold(ctx); err != nil {
			return err
		}
	}
	r.bound = r.shown
	if r.k.Equip != nil {
		attached := *r.call
		attached.Input = r.shown
		bound, labels, err := r.k.Equip(ctx, r.target, &attached)
		if err != nil {
			return err
		}
		for _, label := range labels {
			if !slices.Contains(r.call.Labels, label) { // it was not judged with that
				return plugin.Errorf(plugin.CodeUnavailable, "%s: a secret that its input stands for was set while the call was judged, by a call with the label %s; make the call again",
					r.target.Name(), label)
			}
		}
		r.bound = bound
	}
	if r.misfit != nil {
		return r.misfit
	}
	if !r.open {
		return nil
	}
	// What does not fit may be a secret, so it is not said how.
	if err := r.target.Input.Check(r.bound); err != nil && !r.target.Operation.Advisory {
		return plugin.Errorf(plugin.CodeInvalidInput, "%s: the input does not fit its schema once the host has filled in what it leaves open; 'mortise plugins show %s' has the schema",
			r.target.Name(), r.target.Manifest.Name)
	}
	return nil
}

// handed returns the call as the plugin gets it.
func (r *request) handed() *plugin.Call {
	handed := *r.call
	handed.Input = r.bound
	if r.target.Manifest.Dialect == "shu" {
		handed.Input = scheduled(handed.Input, r.call.Overlay)
	}
	return &handed
}

// hold refuses what has effects while nothing may have any.
func (k *Kernel) hold(ctx context.Context) error {
	if k.Hold == nil {
		return nil
	}
	return k.Hold(ctx)
}

// reuse looks for the earlier answer of a pure tool to the same input.
func (r *request) reuse() (plugin.Result, bool) {
	if r.call.Fresh || r.open || r.call.Dry != nil || !cacheable(r.target, r.call) {
		return plugin.Result{}, false
	}
	res, found := r.k.cache.get(r.cacheKey())
	if found {
		res.Cached = true
		res.Labels = plugin.Labels(r.call.Labels, r.target.Operation.Labels) // of this call, not of that one
		res.Metrics = plugin.Metrics{}                                       // this call cost nothing of what that one did
	}
	return res, found
}

func (r *request) cacheKey() cacheKey {
	return cacheKey{r.call.Tenant, r.target.Package.Digest, r.target.Name(), r.record.InputHash}
}

// limit is how long the plugin may take.
func (r *request) limit() time.Duration {
	limit := r.target.Operation.Timeout
	if own := r.call.Timeout; own > 0 && own < limit {
		limit = own
	}
	return limit
}

// run lets the plugin do it.
func (r *request) run(ctx context.Context) (plugin.Result, error) {
	limit := r.limit()
	ctx, cancel := context.WithTimeoutCause(ctx, max(limit-r.waited, time.Millisecond), plugin.Errorf(plugin.CodeTimeout, "%s took longer than %s", r.target.Name(), limit))
	defer cancel()
	r.record.Isolation = r.k.Runner.Level()
	if r.lease != nil {
		var err error
		if r.journal, err = r.k.Ledger.Journal(ctx, *r.lease); err != nil {
			return plugin.Result{}, err
		}
		var stop func()
		ctx, stop = r.k.running.enter(ctx, r.k, callID{r.call.Tenant, r.call.ID})
		defer stop()
		if err := r.k.Ledger.Held(); err != nil && len(r.target.Operation.Effects) > 0 { // paused since its claim: nothing is sent
			r.unbegun = true
			return plugin.Result{}, plugin.Errorf(plugin.CodeUnavailable, "%s: %w", r.target.Name(), err)
		}
	}
	r.ran = true
	services := r.k.Services.For(r.target, r.call, r.journal)
	r.asked, _ = services.(witness)
	r.call.Attempt = r.record.Attempt
	res, err := r.k.Runner.Run(ctx, r.target, r.handed(), services)
	fault.At("answer")
	res.Artifacts = r.made(res.Artifacts, services)
	res.Metrics = measured(res.Metrics, services)
	r.sampled = sampled(services)
	if res.Nondeterminism != nil {
		res.Nondeterminism.Undisclosed = false // the host's to say
	}
	if err != nil {
		if !r.partial(err, len(res.Data)+len(res.Members)) {
			res.Data, res.Members = nil, nil
		}
		r.halted = r.k.admission.open() != nil
		sent, known := reached(err)
		r.cut, r.unbegun = known && sent, known && !sent && !r.askedFor()
		r.ran = sent || r.askedFor()
		err = r.unsent(err)
	}
	// Of an error's message too. What the runner says adds to that: the host's own
	// operations know what they read.
	res.Labels = plugin.Labels(res.Labels, plugin.Labels(r.call.Labels, r.target.Operation.Labels))
	if r.asked != nil {
		res.Labels = plugin.Labels(res.Labels, r.asked.Labels())
	}
	return res, err
}

// askedFor reports whether the plugin asked the host for something: then it had
// the call, whatever it says. A plugin too may say that something is unavailable.
func (r *request) askedFor() bool {
	return r.journal != nil && r.journal.Asked() || r.asked != nil && r.asked.Used()
}
