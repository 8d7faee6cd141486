package kernel

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/base/waitfor"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

// How often a call is looked at that another process may run.
const (
	lookFirst = 10 * time.Millisecond
	lookLast  = 500 * time.Millisecond
)

// Await waits until a call has ended and returns its result. It resumes a
// queued call itself unless another process has claimed it. If ctx ends first,
// the result has the current state of the call and the error is the context's
// cause. It does not wait for a call that this process should be at work on and
// cannot go on with, because the store takes no writes: the result is in progress.
func (k *Kernel) Await(ctx context.Context, tenant, id string) (plugin.Result, error) {
	return k.AwaitWhile(ctx, ctx, tenant, id)
}

// AwaitWhile is Await until wait ends, which is no later than ctx. The end of wait
// cancels nothing: a call that AwaitWhile resumes itself is cancelled only with ctx.
func (k *Kernel) AwaitWhile(ctx, until context.Context, tenant, id string) (plugin.Result, error) {
	ended, leave := k.ended.subscribe(id)
	defer leave()
	// A call that waits for its caller, directly or through others, does not end
	// before the caller does: how it stands is all there is to say.
	wait := waitfor.Begin(waitfor.From(ctx), waitfor.EndOf(id))
	if wait == nil {
		row, err := k.Ledger.Call(ctx, tenant, id)
		return k.snapshot(tenant, id, row), err
	}
	defer wait.End()
	for pause := lookFirst; ; pause = min(2*pause, lookLast) {
		row, err := k.Ledger.Call(ctx, tenant, id)
		switch {
		case ctx.Err() != nil:
			return k.snapshot(tenant, id, row), context.Cause(ctx)
		case until.Err() != nil && (err != nil || row == nil || !row.State.Ended()):
			return k.snapshot(tenant, id, row), context.Cause(until)
		case err != nil:
			return plugin.Result{}, err
		case row == nil:
			return plugin.Result{}, plugin.Errorf(plugin.CodeNotFound, "there is no call %s that could be waited for", id)
		case row.State.Ended():
			return k.end(ctx, row)
		case row.State == ledger.Queued && !row.WakeAt.After(k.Now()):
			res, err := k.Resume(ctx, tenant, id)
			if err != nil && ctx.Err() == nil && !passing(plugin.CodeOf(err)) || res.Status.Ended() {
				return res, err
			}
		case row.State == ledger.Pending && k.Expire != nil && !row.WakeAt.After(k.Now()):
			if _, err := k.Expire(ctx); err != nil {
				return k.snapshot(tenant, id, row), err
			}
		case row.State == ledger.InProgress && !row.WakeAt.IsZero() && !row.WakeAt.After(k.Now()):
			if err := k.Reconcile(ctx, tenant, id); err != nil {
				k.Log.Warn("a call could not be asked how it ended", "call_id", id, "cause", err.Error())
			}
		case k.Ledger.IsOurs(row):
			if err := k.settleOrphan(ctx, row); err != nil { // it goes on once a host can write again
				k.Log.Warn("a call is not waited for: this host is not at work on it, and cannot settle it", "call_id", id, "cause", err.Error())
				return k.snapshot(tenant, id, row), nil
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-ended:
			ended = nil // later changes are found by polling
		case <-timer.C:
		case <-until.Done():
		}
		timer.Stop()
	}
}

// Changed returns a channel that is closed when a call ends or goes on in this process; other
// processes tell nothing. leave must be called.
func (k *Kernel) Changed(id string) (changed <-chan struct{}, leave func()) {
	return k.ended.subscribe(id)
}

// Run calls an operation and waits for its end, for callers who have no use for
// anything else. If ctx ends first, the result says how the call stands.
func (k *Kernel) Run(ctx context.Context, call plugin.Call) (plugin.Result, error) {
	if call.ID == "" {
		call.ID = newID()
	}
	res, err := k.Call(ctx, call)
	if err != nil || res.Status.Ended() {
		return res, err
	}
	done, err := k.Await(ctx, call.Tenant, res.CallID)
	if ctx.Err() != nil && !done.Status.Ended() {
		return res, nil
	}
	return done, err
}

// Enqueue records a call that a worker runs later, for callers who do not look at it again: its
// result is of a call that is on record.
func (k *Kernel) Enqueue(ctx context.Context, call plugin.Call) (plugin.Result, error) {
	call.NoWait = true
	res, err := k.Call(ctx, call)
	if err != nil || res.Status.Ended() {
		return res, err
	}
	row, err := k.Ledger.Call(ctx, call.Tenant, res.CallID)
	if err == nil && row == nil { // its claim was uncertain, see [attempt.doubt]
		e := plugin.Errorf(plugin.CodeUnavailable, "%s: call %s could not be put on record; make it again", call.Operation, res.CallID)
		e.Retryable, err = true, e
	}
	return res, err
}

// status returns how a call stands now, with its answer where it has ended.
func (k *Kernel) status(ctx context.Context, tenant, id string, err error) (plugin.Result, error) {
	if err != nil {
		return plugin.Result{}, err
	}
	row, err := k.Ledger.Call(ctx, tenant, id)
	if err != nil {
		return plugin.Result{}, err
	}
	if row == nil {
		return plugin.Result{}, plugin.Errorf(plugin.CodeNotFound, "there is no call %s", id)
	}
	return k.end(ctx, row)
}

// end returns the answer of a call, or how it stands.
func (k *Kernel) end(ctx context.Context, row *ledger.CallRow) (plugin.Result, error) {
	prior, err := k.Ledger.Prior(ctx, row)
	if err != nil {
		return plugin.Result{}, err
	}
	res, err := k.answer(row.Tenant, row.Operation, prior)
	res.Version = row.Version
	res.Replayed = false
	return res, err
}

// snapshot says how a call stands, as far as a row tells.
func (k *Kernel) snapshot(tenant, id string, row *ledger.CallRow) plugin.Result {
	res := plugin.Result{CallID: id, Status: plugin.InProgress, SchemaVersion: plugin.SchemaVersion}
	if row != nil {
		res.Operation, res.Version, res.Status, res.Labels = row.Operation, row.Version, ledger.Status(row.State), ledger.Labels(row)
	}
	return res
}

// answer returns what an earlier call gave, or how it stands.
func (k *Kernel) answer(tenant, operation string, prior *ledger.Prior) (plugin.Result, error) {
	res := plugin.Result{
		CallID: prior.CallID, Operation: operation, Status: ledger.Status(prior.State), SchemaVersion: plugin.SchemaVersion, Replayed: true,
		Labels: prior.Labels,
	}
	switch {
	case prior.State == ledger.Pending:
		res.Approval = prior.Waits
		return res, nil
	case prior.State == ledger.Unknown:
		if prior.Err != nil {
			return res, unknown(prior)
		}
		return res, plugin.Errorf(plugin.CodeOutcomeUnknown, "call %s may or may not have had its effect; it is not repeated", prior.CallID)
	case !prior.State.Ended():
		return res, nil
	case prior.Erased:
		return res, plugin.Errorf(plugin.CodeKeyConflict, "call %s was made before, and its answer is no longer kept%s: its hash was %s; it is not made again; choose another key for another call", prior.CallID, prior.Removed, prior.ResultHash)
	case prior.Err != nil:
		return res, prior.Err
	}
	first := *prior.Result
	first.Replayed = true
	return first, nil
}

// unknown returns the error of a call whose outcome is unknown, with the
// reason.
func unknown(prior *ledger.Prior) error {
	e := plugin.Errorf(plugin.CodeOutcomeUnknown, "call %s may or may not have had its effect; it is not repeated (%s: %s); when you know how it ended, record it: 'mortise calls settle %s'",
		prior.CallID, prior.Err.Code, prior.Err.Message, prior.CallID)
	e.Details = prior.Err.Details
	return e
}

// open marks a failure after which the outcome of the call is unknown. Its code
// stays that of the failure, which is the reason.
func open(failure *plugin.Error, id string) error {
	e := *failure
	e.Retryable = false
	e.Message += fmt.Sprintf("; call %s may or may not have had its effect, and is not repeated", id)
	return &e
}

// notify wakes those who wait for a call that has changed.
func (k *Kernel) notify(ctx context.Context, tenant, id string) {
	k.ended.notify(id)
	if k.Ended == nil {
		return
	}
	row, err := k.Ledger.Call(ctx, tenant, id)
	if err != nil || row == nil {
		return // waiters poll
	}
	k.Ended(ctx, row)
}

// signals wake those who wait for a call in this process.
type signals struct {
	mu    sync.Mutex
	waits map[string]*signal
}

// A signal is closed once its call has changed.
type signal struct {
	changed chan struct{}
	waiting int
	once    sync.Once
}

func newSignals() *signals { return &signals{waits: map[string]*signal{}} }

// subscribe returns a channel that is closed when the call changes. leave must be called.
func (s *signals) subscribe(id string) (changed <-chan struct{}, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.waits[id]
	if w == nil {
		w = &signal{changed: make(chan struct{})}
		s.waits[id] = w
	}
	w.waiting++
	return w.changed, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if w.waiting--; w.waiting == 0 && s.waits[id] == w {
			delete(s.waits, id)
		}
	}
}

func (s *signals) notify(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.waits[id]; w != nil {
		w.once.Do(func() { close(w.changed) })
		delete(s.waits, id) // a later subscriber waits for the next change
	}
}
