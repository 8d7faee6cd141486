package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

// errGone stops a run that has lost its plan: the plan was cancelled, or another run
// holds its lease.
var errGone = errors.New("the plan is no longer this run's")

// Run takes a plan as far as it goes and returns its state: ended, or waiting for a
// person, or for a call that another process runs. A plan that has ended, that waits,
// or that another process is running is left alone. Steps that have ended are not run
// again.
//
// If ctx ends, the step that is running is brought to its end, and the plan is left for
// the next run.
func (e *Engine) Run(ctx context.Context, tenant, id string) (*View, error) {
	return e.run(ctx, tenant, id, nil)
}

// run is Run; ended hears of each step that has ended, if it is not nil.
func (e *Engine) run(ctx context.Context, tenant, id string, ended func(step string)) (*View, error) {
	found, err := e.find(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	if e.Hold != nil {
		if err := e.Hold(ctx); err != nil {
			return nil, err
		}
	}
	if e.paused(found) {
		return e.view(ctx, found)
	}
	// Nothing that is under way is given up because the caller has gone; only
	// because the plan was cancelled.
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	if !e.begin(found, cancel) {
		return e.view(ctx, found)
	}
	defer e.end(found)

	r := &run{engine: e, ended: ended, results: map[string]jsontext.Value{}, labels: map[string][]string{}}
	err = e.take(inner, found, r)
	if errors.Is(err, errGone) {
		return e.view(ctx, found)
	}
	if err != nil {
		return nil, err
	}
	if r.taken {
		err = r.proceed(ctx, inner, cancel)
	}
	if err != nil {
		return nil, err
	}
	return e.view(context.WithoutCancel(ctx), found)
}

// A run is one taking up of a plan.
type run struct {
	engine *Engine
	ended  func(step string)

	row      Row  // as this run has it: running, with its lease
	taken    bool // it has it
	steps    []StepRow
	order    *order
	approval string // that covers the gated steps

	results map[string]jsontext.Value // what steps returned
	labels  map[string][]string       // and what that is tainted with
}

// take makes a plan this run's, if it can go on: in one transaction the plan
// becomes running under a new lease, its approval is used up, and what is stored
// is held against what was approved. r.taken reports whether it became that.
func (e *Engine) take(ctx context.Context, found *Row, r *run) error {
	at, lease := e.now(), uuid.NewString()
	signed, err := e.Store.PlanToRun(ctx, found.Tenant, found.ID)
	if err != nil {
		return err
	}
	return e.Store.Write(ctx, func(tx ledger.Tx) error {
		r.row, r.taken, r.steps, r.order, r.approval = Row{}, false, nil, nil, ""
		row, err := tx.Plan(ctx, found.Tenant, found.ID)
		if err != nil {
			return err
		}
		if row == nil || signed == nil {
			return plugin.Errorf(plugin.CodeNotFound, "plan %s is gone", found.ID)
		}
		r.row = *row
		if row.Digest() != signed.Digest() { // it went on meanwhile; what it became is looked at next time
			return errGone
		}
		asked, err := newest(ctx, tx, row.Tenant, approval.SubjectPlan, row.ID)
		if err != nil {
			return err
		}
		can, err := e.canGoOn(ctx, tx, row, asked)
		if err != nil || !can {
			return err
		}
		if r.steps, err = tx.Steps(ctx, row.Tenant, row.ID); err != nil {
			return err
		}
		next := *row
		next.UpdatedAt = at
		if drift := e.drifted(ctx, tx, r, asked); drift != nil {
			return e.void(tx, r, &next, asked, drift, at)
		}
		if asked != nil {
			r.approval = asked.ID
			if asked.State == approval.Approved {
				won, err := approval.Consume(tx, *asked, at)
				if err != nil {
					return err
				}
				if !won {
					return errGone
				}
			}
		}
		next.State, next.Lease, next.Node = Running, lease, e.Store.Node()
		won, err := tx.UpdatePlan(row.Fence(), next)
		if err != nil {
			return err
		}
		if !won {
			return errGone // with the approval as it was
		}
		started, err := e.entry(&next, plugin.EntryPlanStarted, row.Principal, at, func(ev *evidence) { ev.Approval = r.approval })
		if err != nil {
			return err
		}
		tx.Append(started)
		r.row, r.taken = next, true
		return nil
	})
}

// canGoOn reports whether a plan has work to do that no other run is doing.
func (e *Engine) canGoOn(ctx context.Context, r reader, row *Row, asked *approval.Row) (bool, error) {
	switch row.State {
	case Queued:
		return true, nil
	case Running:
		// This process holds the plan, and none of its runs does: one of them
		// could not write how it left it.
		return row.Node == e.Store.Node(), nil
	case Pending:
		if asked != nil && asked.State == approval.Open {
			return false, nil
		}
		calls, err := callsOf(ctx, r, row)
		for _, call := range calls {
			if call.State == ledger.Pending {
				return false, err
			}
		}
		return true, err
	}
	return false, nil
}

// drifted says in what way that which is stored is not what was approved, or
// made, any more; nil if it is.
func (e *Engine) drifted(ctx context.Context, r reader, run *run, asked *approval.Row) error {
	void := func(format string, args ...any) error {
		return plugin.Errorf(plugin.CodeApprovalVoid, "plan %s: "+format+"; nothing of it is run, submit it again", append([]any{run.row.ID}, args...)...)
	}
	now, err := hash(run.steps, run.row.RequestHash)
	if err != nil || now != run.row.Hash {
		return void("its steps are not those that were proposed")
	}
	if run.order, err = e.order(ctx, r, &run.row); err != nil {
		return err
	}
	if who := run.order.Principal; who.Member() != run.row.Principal && who.ID != run.row.Principal { // rows once had the id alone
		return void("it is not for whom it was proposed")
	}
	gated := false
	nodes := make([]node, len(run.steps))
	for i, s := range run.steps {
		gated = gated || s.Gate != GateNone
		nodes[i] = node{s.StepID, s.Needs}
	}
	if _, stuck := sorted(nodes); len(stuck) > 0 {
		return void("the steps %s wait for each other", list(stuck))
	}
	switch {
	case asked == nil && gated:
		return void("it has gates, and no approval was requested")
	case asked == nil:
		return nil
	case asked.Binding != run.row.Hash:
		return void("approval %s is for other steps", asked.ID)
	case asked.State != approval.Approved && asked.State != approval.Consumed:
		return void("approval %s is %s", asked.ID, asked.State)
	case asked.State == approval.Approved && !e.now().Before(asked.ExpiresAt):
		return plugin.Errorf(plugin.CodeApprovalExpired, "approval %s expired at %s, before plan %s began; nothing of it is run, submit it again",
			asked.ID, asked.ExpiresAt.Format(time.RFC3339), run.row.ID)
	}
	return nil
}

// void ends a plan that is not what it was.
func (e *Engine) void(tx ledger.Tx, r *run, next *Row, asked *approval.Row, why error, at time.Time) error {
	failure := plugin.AsError(why)
	if failure.Code == plugin.CodeInternal {
		return why
	}
	fence := r.row.Fence()
	next.State, next.Code, next.Message, next.Lease, next.Node = Failed, string(failure.Code), failure.Message, "", ""
	won, err := tx.UpdatePlan(fence, *next)
	if err != nil || !won {
		return err
	}
	if asked != nil && (asked.State == approval.Open || asked.State == approval.Approved) {
		if err := approval.Void(tx, *asked, failure.Message, at); err != nil {
			return err
		}
	}
	failed, err := e.entry(next, plugin.EntryPlanFailed, next.Principal, at, nil)
	if err != nil {
		return err
	}
	tx.Append(failed)
	r.row = *next
	return nil
}

// proceed runs the steps one after the other and writes the state of the plan after
// each. inner ends when the plan is cancelled, ctx when this process has to stop.
func (r *run) proceed(ctx, inner context.Context, cancel context.CancelCauseFunc) error {
	var watching sync.WaitGroup
	done := make(chan struct{})
	watching.Go(func() { r.watch(inner, cancel, done) })
	defer watching.Wait()
	defer close(done)

	nodes := make([]node, len(r.steps))
	for i, s := range r.steps {
		nodes[i] = node{s.StepID, s.Needs}
	}
	inOrder, _ := sorted(nodes) // drifted has made sure that all are in it
	for _, i := range inOrder {
		if inner.Err() != nil {
			return nil // it is no longer ours to write about
		}
		if ctx.Err() != nil {
			return r.leave(inner, Queued)
		}
		stop, err := r.step(ctx, inner, &r.steps[i])
		if err != nil || stop != nil {
			if err == nil {
				err = stop(inner)
			}
			if errors.Is(err, errGone) {
				return nil
			}
			return err
		}
		if r.ended != nil {
			r.ended(r.steps[i].StepID)
		}
	}
	err := r.finish(inner, Succeeded, plugin.EntryPlanSucceeded, "", nil)
	if errors.Is(err, errGone) {
		return nil
	}
	return err
}

// watch looks now and then whether the plan is still this run's.
func (r *run) watch(ctx context.Context, cancel context.CancelCauseFunc, done <-chan struct{}) {
	tick := time.NewTicker(r.engine.Watch)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		row, err := r.engine.Store.Plan(ctx, r.row.Tenant, r.row.ID)
		if err != nil || row == nil {
			continue // the next write reports it
		}
		if row.Lease == r.row.Lease {
			continue
		}
		select {
		case <-done: // it has ended, by this very run
		default:
			cancel(plugin.Errorf(plugin.CodeCancelled, "the plan was cancelled"))
		}
		return
	}
}

// A stop says how a run leaves its plan.
type stop func(ctx context.Context) error

// step brings one step to its end. stop is nil if it has succeeded.
func (r *run) step(ctx, inner context.Context, s *StepRow) (stop, error) {
	e := r.engine
	prior, err := e.Answers.Lookup(inner, r.row.Tenant, s.Operation, stepKey(r.row.ID, s.StepID))
	if err != nil {
		return nil, err
	}
	switch {
	case prior == nil:
		return r.call(ctx, inner, s)
	case prior.Erased:
		return r.fail(s, plugin.Errorf(plugin.CodeKeyConflict, "what it returned is no longer kept%s", prior.Removed)), nil
	case prior.State == ledger.Succeeded && prior.Result != nil:
		r.keep(s, prior.Result)
		return nil, nil
	case prior.State == ledger.Failed:
		return r.fail(s, prior.Err), nil
	case prior.State == ledger.Unknown:
		return r.unknown(s), nil
	case prior.State == ledger.Pending:
		return r.wait(Pending), nil
	case prior.State == ledger.Queued: // this run may do it
		res, err := e.Kernel.Await(inner, r.row.Tenant, prior.CallID)
		return r.came(ctx, inner, s, res, err)
	default: // another process runs it
		res, err := r.await(ctx, inner, prior.CallID)
		return r.came(ctx, inner, s, res, err)
	}
}

// call makes the step's call.
func (r *run) call(ctx, inner context.Context, s *StepRow) (stop, error) {
	input, err := resolved(jsontext.Value(s.Input), r.results)
	if err != nil {
		return r.fail(s, plugin.Errorf(plugin.CodeInvalidInput, "%w", err)), nil
	}
	refs, err := references(jsontext.Value(s.Input))
	if err != nil {
		return r.fail(s, plugin.Errorf(plugin.CodeInvalidInput, "%w", err)), nil
	}
	var filled []string
	for _, ref := range refs {
		filled = union(filled, r.labels[ref.step])
	}
	covered := ""
	if s.Gate != GateNone {
		covered = r.approval
	}
	res, err := r.engine.Kernel.Call(inner, plugin.Call{
		Tenant: r.row.Tenant, Principal: r.order.Principal, Actor: r.order.Actor, Asker: r.order.Asker, Origin: plugin.OriginPlan, Parent: r.row.ProposalCall,
		Session: r.order.Session, Agent: r.order.Instance, Labels: union(r.row.Labels, filled), Filled: filled, Operation: s.Operation + "@" + s.Version, Input: json.RawMessage(input),
		Trace: plugin.Trace{Correlation: r.order.Correlation, Workflow: r.row.ID, Step: s.StepID},
		Plan:  r.row.ID, Approval: covered, Digest: s.PackageDigest,
	})
	return r.came(ctx, inner, s, res, err)
}

// await waits, up to Patience, for a call that another process runs. This run may
// execute a queued call itself.
func (r *run) await(ctx, inner context.Context, call string) (plugin.Result, error) {
	patient, cancel := context.WithTimeout(inner, r.engine.Patience)
	defer cancel()
	stopped := context.AfterFunc(ctx, cancel)
	defer stopped()
	later := plugin.Result{Status: plugin.InProgress, CallID: call}
	for {
		row, err := r.engine.Store.Call(inner, r.row.Tenant, call)
		switch {
		case err != nil:
			return later, err
		case row == nil || row.State.Ended() || row.State == ledger.Queued:
			return r.engine.Kernel.Await(inner, r.row.Tenant, call)
		case row.State == ledger.InProgress: // the kernel asks the operator
			res, err := r.engine.Kernel.AwaitWhile(inner, patient, r.row.Tenant, call)
			if patient.Err() != nil && inner.Err() == nil && !res.Status.Ended() {
				return later, nil
			}
			return res, err
		}
		select { // another process runs it; a context of ours must not cut off what we do in its place
		case <-time.After(poll):
		case <-patient.Done():
			return later, context.Cause(inner)
		}
	}
}

// came judges what a step's call came to.
func (r *run) came(ctx, inner context.Context, s *StepRow, res plugin.Result, err error) (stop, error) {
	if err == nil && res.Status == plugin.InProgress {
		res, err = r.await(ctx, inner, res.CallID)
	}
	if err == nil {
		switch res.Status {
		case plugin.Succeeded:
			r.keep(s, &res)
			return nil, nil
		case plugin.PendingApproval:
			return r.wait(Pending), nil
		case plugin.InProgress:
			return r.wait(Queued), nil
		case plugin.Unknown:
			return r.unknown(s), nil
		}
		return r.fail(s, plugin.Errorf(plugin.CodeInternal, "its call ended %s without an error", res.Status)), nil
	}
	if inner.Err() != nil {
		return nil, errGone
	}
	// The error says why nothing came of it; the row of the call, if there is
	// one, whether something may have happened all the same.
	e := r.engine
	prior, lookErr := e.Answers.Lookup(inner, r.row.Tenant, s.Operation, stepKey(r.row.ID, s.StepID))
	switch {
	case lookErr != nil:
		return nil, lookErr
	case prior != nil && prior.State == ledger.Unknown, plugin.CodeOf(err) == plugin.CodeOutcomeUnknown:
		return r.unknown(s), nil
	case prior != nil && prior.State == ledger.Succeeded && prior.Result != nil:
		r.keep(s, prior.Result)
		return nil, nil
	case prior != nil && !prior.State.Ended():
		return r.wait(Queued), nil
	case prior == nil && plugin.CodeOf(err).Passes() && e.postpone(&r.row): // its plugin never had it
		return r.wait(Queued), nil
	}
	return r.fail(s, plugin.AsError(err)), nil
}

// keep remembers what a step returned, for those that refer to it.
func (r *run) keep(s *StepRow, res *plugin.Result) {
	data := jsontext.Value(res.Data)
	if len(data) == 0 {
		data = jsontext.Value("null")
	}
	r.results[s.StepID], r.labels[s.StepID] = data, res.Labels
	r.engine.unpause(&r.row)
}

func (r *run) fail(s *StepRow, why *plugin.Error) stop {
	if why == nil {
		why = plugin.Errorf(plugin.CodeInternal, "its call failed and does not say why")
	}
	failure := named(fmt.Sprintf("step %s (%s)", s.StepID, s.Operation), why)
	return func(ctx context.Context) error {
		return r.finish(ctx, Failed, plugin.EntryPlanFailed, s.StepID, plugin.AsError(failure))
	}
}

func (r *run) unknown(s *StepRow) stop {
	why := plugin.Errorf(plugin.CodeOutcomeUnknown, "step %s (%s) may or may not have had its effect; find out, settle its call, then 'mortise plans resume %s'", s.StepID, s.Operation, r.row.ID)
	return func(ctx context.Context) error {
		return r.finish(ctx, Unknown, plugin.EntryPlanUnknown, s.StepID, why)
	}
}

func (r *run) wait(state State) stop {
	return func(ctx context.Context) error { return r.leave(ctx, state) }
}
