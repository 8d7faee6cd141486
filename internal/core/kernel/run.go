package kernel

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/internal/base/fault"
	"github.com/mortise-dev/mortise/plugin"
)

// limit is how long the plugin may take.
func (a *attempt) limit() time.Duration {
	limit := a.target.Operation.Timeout
	if own := a.call.Timeout; own > 0 && own < limit {
		limit = own
	}
	return limit
}

// A tooLate is the error of a call whose time was up: a [plugin.Error], which is only made
// where that comes true.
type tooLate struct {
	target *plugin.Target
	limit  time.Duration
}

func (e *tooLate) Error() string { return e.made().Error() }

// As implements the interface of [errors.As].
func (e *tooLate) As(target any) bool {
	failed, ok := target.(**plugin.Error)
	if ok {
		*failed = e.made()
	}
	return ok
}

func (e *tooLate) made() *plugin.Error {
	return plugin.Errorf(plugin.CodeTimeout, "%s took longer than %s", e.target.Name(), e.limit)
}

// run lets the plugin do it.
func (a *attempt) run(ctx context.Context) (plugin.Result, error) {
	a.late = tooLate{a.target, a.limit()}
	ctx, cancel := context.WithTimeoutCause(ctx, max(a.late.limit-a.waited, time.Millisecond), &a.late)
	defer cancel()
	a.record.Isolation = a.k.Runner.Isolation(a.target)
	a.record.Enforcement = graded(a.target, a.record.Isolation)
	if a.lease != nil {
		var err error
		if a.journal, err = a.k.Ledger.Journal(ctx, *a.lease); err != nil {
			return plugin.Result{}, err
		}
		var stop func()
		ctx, stop = a.k.running.enter(ctx, a.k, callID{a.call.Tenant, a.call.ID})
		defer stop()
		if err := a.k.Ledger.Held(); err != nil && len(a.target.Operation.Effects) > 0 { // paused since its claim: nothing is sent
			a.phase = phaseUnreached
			return plugin.Result{}, plugin.Errorf(plugin.CodeUnavailable, "%s: %w", a.target.Name(), err)
		}
	}
	a.phase, a.begun = phaseReached, true
	a.usage = a.k.Services.For(a.target, a.call, a.journal)
	a.call.Attempt = a.record.Attempt
	res, err := a.k.Runner.Run(ctx, a.target, a.handed(), a.usage)
	a.passed("run")
	fault.At("answer")
	a.account(&res)
	if res.Nondeterminism != nil {
		res.Nondeterminism.Undisclosed = false // the host's to say
	}
	if err != nil {
		if !a.partial(err, len(res.Data)+len(res.Members)) {
			res.Data, res.Members = nil, nil
		}
		a.halted = a.k.admission.open() != nil
		a.phase = a.phaseAfter(err)
		err = a.unsent(err)
	}
	// Of an error's message too. What the runner says adds to that: the host's own
	// operations know what they read.
	a.made = plugin.Labels(res.Labels, a.usage.Labels())
	return res, err
}

// phaseAfter returns the phase of an attempt whose run failed.
func (a *attempt) phaseAfter(err error) phase {
	sent, known := reached(err)
	switch {
	case sent && known:
		return phaseCut
	case sent || a.askedFor():
		return phaseReached
	case known:
		return phaseUnreached
	}
	return phaseNew // by its code, which a plugin may return as well
}

// askedFor reports whether the plugin asked the host for something: then it had
// the call, whatever it says. A plugin too may say that something is unavailable.
func (a *attempt) askedFor() bool {
	return a.journal != nil && a.journal.Asked() || a.usage != nil && a.usage.Used()
}
