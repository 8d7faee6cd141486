package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/internal/binding"
	"github.com/mortise-dev/mortise/internal/budget"
	"github.com/mortise-dev/mortise/internal/canon"
	"github.com/mortise-dev/mortise/internal/fault"
	"github.com/mortise-dev/mortise/internal/ledger"
	"github.com/mortise-dev/mortise/internal/store"
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
	row     *store.CallRow     // of a call that goes on, until it is claimed again
	lease   *ledger.Lease      // once claimed
	resumed bool               // somebody else made the call, or another process
	waits   bool               // claimed, and not to run now
	needs   bool               // a person's word, before it runs
	given   *store.ApprovalRow // that word, where it was given
	void    string             // why it does not count
	ran     bool               // the plugin may have seen the call
	cut     bool               // it did, and the host itself ended it before there was an answer
	asked   witness            // what the plugin asked of the host; nil where nobody can say
	sampled bool               // the host asked a model on its behalf
	journal *ledger.Journal    // of its effects; nil for a call without
	prior   *ledger.Prior      // the call whose answer this one gets
	input   []byte             // what the caller sent, where the plugin gets more
	open    bool               // the caller's input leaves something to the host
	shown   json.RawMessage    // the input with the paths of the files that it names
	seen    json.RawMessage    // the input as policy judges it and a person is shown it
	bound   json.RawMessage    // the input as the plugin gets it, once the call is equipped
	print   string             // the fingerprint of what the caller sent
	unused  func()             // gives back the process that the call has
	waited  time.Duration      // for that process
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
		return plugin.Errorf(plugin.CodeUnauthenticated, "nobody known is asking")
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
	prior, err := r.k.Ledger.Lookup(ctx, r.call.Tenant, r.target.Name(), ledger.StoredKey(r.call))
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
	if prior.State == store.CallPending || prior.State.Ended() || r.call.NoWait {
		return r.k.answer(r.call.Tenant, r.target.Name(), prior)
	}
	if release := r.unused; release != nil {
		release() // what is reserved may be what the other call waits for
	}
	patient, cancel := context.WithTimeoutCause(ctx, r.limit(), errWaited)
	defer cancel()
	res, err := r.k.AwaitWhile(ctx, patient, r.call.Tenant, prior.CallID)
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
	if kind := r.call.Principal.Type; kind != "" && kind != "user" { // a service of a user's name is somebody else
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
		return plugin.Errorf(plugin.CodeInvalidInput, "%s: input %w", r.target.Name(), err)
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
	case plugin.AllowWithApproval: // nobody is asked about what could not run
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
		bound, err := r.k.Equip(ctx, r.target, &attached)
		if err != nil {
			return err
		}
		r.bound = bound
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
		sent, known := reached(err)
		r.cut = known && sent
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

// checkOut holds what came back against what the operation promises.
func (r *request) checkOut(ctx context.Context, res *plugin.Result) error {
	refuse := func(code plugin.Code, format string, args ...any) error {
		res.Data = nil
		return plugin.Errorf(code, "%s: "+format, append([]any{r.target.Name()}, args...)...)
	}
	if r.journal != nil && !r.journal.Whole() {
		return refuse(plugin.CodeOutcomeUnknown, "it says how it ended, and did something else than in the attempt before")
	}
	if _, most := r.target.Manifest.Bounds(); most > 0 && len(res.Data)+len(res.Members) > most {
		n := len(res.Data) + len(res.Members)
		return sized(refuse(plugin.CodeOutputTooLarge, "the result has %d bytes; its contract allows %d", n, most), n, most)
	}
	if n := len(res.Data) + len(res.Members); n > r.k.MaxOutput {
		return sized(refuse(plugin.CodeOutputTooLarge, "the result has %d bytes; at most %d are accepted", n, r.k.MaxOutput), n, r.k.MaxOutput)
	}
	if res.Status == plugin.InProgress && r.target.Operation.Reconcile && (r.lease != nil || r.call.Dry != nil) {
		res.Data = nil // what it says now is not its answer
		if r.call.Dry != nil {
			res.Status = plugin.Succeeded // nothing goes on
		}
		return nil
	}
	if res.Status != plugin.Succeeded {
		return refuse(plugin.CodeInvalidOutput, "the plugin answered %s; only an operator that can say later how it ended may, and this one cannot", res.Status)
	}
	if len(res.Data) == 0 {
		res.Data = []byte("null")
	}
	if r.target.Operation.Kind == plugin.Agent && r.k.Agents != nil {
		if err := r.k.Agents.Judge(ctx, r.target, r.call, r.call.Input, res.Data); err != nil {
			res.Data = nil
			return err
		}
		r.record.Randomness = randomness(res.Data)
	} else if err := r.target.Output.Check(res.Data); budget.Exceeded(err) {
		return refuse(plugin.CodeOutputTooLarge, "the result %w", err)
	} else if err != nil && !r.verbatim(res) && !r.advised("output", err) {
		return refuse(plugin.CodeInvalidOutput, "output %w", err)
	}
	hash, err := canon.Hash(res.Data)
	if budget.Exceeded(err) {
		return refuse(plugin.CodeOutputTooLarge, "the result %w", err)
	}
	if err != nil {
		return refuse(plugin.CodeInvalidOutput, "output: %w", err)
	}
	r.record.ResultHash = hash
	r.disclose(res)
	fault.At("checked")
	return nil
}

// randomness returns what an agent's answer says of its own randomness: its
// model and parameters; nil where it says nothing.
func randomness(output []byte) json.RawMessage {
	var said struct {
		Randomness json.RawMessage `json:"randomness_disclosure"`
	}
	if json.Unmarshal(output, &said) != nil {
		return nil
	}
	return said.Randomness
}

// finish settles how the call ended, and completes the result. It goes on when
// the caller has hung up, because what happened has happened.
func (r *request) finish(ctx context.Context, res plugin.Result, err error) (plugin.Result, error) {
	ctx = context.WithoutCancel(ctx)
	now := r.k.Now()
	if !r.mayHaveActed() {
		err = noRoom(err)
	}
	failure := plugin.AsError(err)
	if failure != nil {
		own := *failure // more will be said in its message, and others may have it too
		failure = &own
	}
	if failure != nil && failure.Code == plugin.CodeInternal {
		r.k.Log.Error("a call failed inside the host", "call_id", r.call.ID, "operation", r.record.Operation, "correlation_id", r.call.Trace.Correlation, "cause", fmt.Sprint(failure.Err))
	}
	if r.prior == nil {
		res = r.complete(res, now)
	}
	r.note(res, failure)
	r.rehearsed(&res, failure)
	goesOn, recordErr := r.write(ctx, &res, failure, now)
	if recordErr != nil {
		return r.unrecorded(failure, recordErr)
	}
	fault.At("ack")
	if goesOn {
		res.Status, res.Data = plugin.InProgress, nil
		return res, nil
	}
	if failure != nil && r.record.Status == plugin.Unknown {
		res.Status = plugin.Unknown
		return res, open(failure, r.call.ID)
	}
	if failure != nil {
		heard := r.masked(failure)
		if plugin.CodeOf(heard) != failure.Code {
			res.DryRun = nil // it tells of an operation that there is not
		}
		return res, heard
	}
	if r.target != nil && r.prior == nil && res.Status == plugin.Succeeded && !res.Cached && r.call.Dry == nil && !r.open && cacheable(r.target, r.call) && !isNondeterministic(&res) {
		r.k.cache.put(r.cacheKey(), res)
	}
	return res, nil
}

// masked returns what the caller hears of a refusal. Whoever may not even know
// of an operation hears that there is none; the ledger keeps the reason.
func (r *request) masked(failure *plugin.Error) error {
	if r.target == nil || r.ran || r.lease != nil || r.row != nil || r.prior != nil {
		return failure
	}
	if d := r.record.Decision; d != nil && d.Verdict != plugin.Deny {
		return failure
	}
	operations, whole := r.k.Policy.Visible(r.target.Manifest, r.call)
	if whole || slices.Contains(operations, r.target.Operation) {
		return failure
	}
	return plugin.Errorf(plugin.CodeNotFound, "no plugin is called %s", printable(r.call.Operation, 300))
}

// complete fills in what the host knows better than the plugin.
func (r *request) complete(res plugin.Result, now time.Time) plugin.Result {
	res.CallID = r.call.ID
	res.Correlation = r.call.Trace.Correlation
	res.SchemaVersion = plugin.SchemaVersion
	if r.target != nil {
		res.Operation, res.Version = r.target.Name(), r.target.Manifest.Version
	}
	if res.Metrics == nil {
		res.Metrics = plugin.Metrics{}
	}
	if own, ok := res.Metrics["latency_ms"].(float64); ok { // the plugin's part of it
		res.Metrics["plugin_latency_ms"] = own
	}
	res.Metrics["latency_ms"] = float64(now.Sub(r.started).Microseconds()) / 1000
	return res
}

// note takes down how it ended.
func (r *request) note(res plugin.Result, failure *plugin.Error) {
	rec := &r.record
	rec.Metrics, rec.Nondeterminism, rec.Cached = res.Metrics, res.Nondeterminism, res.Cached
	rec.Status = res.Status
	if r.prior != nil {
		rec.Replays = r.prior.CallID
		rec.Metrics = plugin.Metrics{}
	}
	if failure != nil {
		rec.Status, rec.ResultHash = plugin.Failed, ""
		rec.Error = &plugin.ErrorRecord{Code: failure.Code, PluginCode: failure.PluginCode, Message: failure.Message}
	} else if rec.ResultHash == "" && len(res.Data) > 0 {
		rec.ResultHash, _ = canon.Hash(res.Data) // a cached or replayed answer, checked when it was new
	}
}

// write puts the end of the call into the ledger. goesOn reports that it has
// not ended: it will run again.
func (r *request) write(ctx context.Context, res *plugin.Result, failure *plugin.Error, now time.Time) (goesOn bool, err error) {
	switch {
	case r.lease != nil:
		return r.settle(ctx, res, failure, now)
	case r.row != nil:
		return r.refuse(ctx, failure, now)
	case r.waits:
		return false, nil // its claim is on record, and more there is not yet
	}
	kind := plugin.EntryCallSucceeded
	switch {
	case r.prior != nil:
		kind = plugin.EntryCallReplayed
	case failure != nil && !r.ran:
		kind = plugin.EntryCallRefused
	case failure != nil:
		kind = plugin.EntryCallFailed
	}
	outside := r.call.Dry != nil || r.open || r.asked != nil && r.asked.Used() // such a call waits for its entry
	return false, r.k.Ledger.Record(ctx, r.tenant(), kind, &r.record, now, outside)
}

// tenant is where the entry of this call belongs, also of one that named none.
func (r *request) tenant() string {
	if r.call.Tenant == "" {
		return "-"
	}
	return r.call.Tenant
}

// isNondeterministic reports whether the plugin said so of its answer.
func isNondeterministic(res *plugin.Result) bool {
	return res.Nondeterminism != nil && res.Nondeterminism.Is
}
