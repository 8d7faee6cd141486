package kernel

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/internal/base/waitfor"
	"github.com/mortise-dev/mortise/plugin"
)

// count refuses a call beyond the quotas of its principal, before its key is claimed and
// before anything runs. A call that was put on record was counted then. Dry runs do not
// count. It also refuses what a host that is full has no room for.
func (a *attempt) count(ctx context.Context) (err error) {
	if err := a.fits(ctx); err != nil {
		return err
	}
	if a.k.Quotas == nil || a.call.Dry != nil {
		return nil
	}
	a.counted, err = a.k.Quotas.Take(ctx, a.target, a.call, a.row != nil, a.phase != phaseGated && !a.call.NoWait)
	return err
}

// fits refuses a call that nothing has the room to run. A call that others asked for goes on,
// because they hold room until it ends; so does one that is on record already.
func (a *attempt) fits(ctx context.Context) error {
	if a.row != nil || waitfor.From(ctx).Nested() {
		return nil
	}
	if n := a.k.admission.atWork(); n > a.limits.calls {
		return &plugin.Error{Code: plugin.CodeOverloaded, Retryable: true, RetryAfter: time.Second,
			Message: "the host has as many calls at work as it takes: the call was not made, and its key is free; call again later"}
	}
	if runner, able := a.k.Runner.(Roomy); able && a.phase != phaseGated && !a.call.NoWait && a.call.Dry == nil {
		return runner.Room(a.target, a.call)
	}
	return nil
}

// uncount gives back what a call took of the quotas: the room that it had, and its place
// in the count where it is known that nothing of it ran and nothing of it will.
func (a *attempt) uncount() {
	if a.counted != nil {
		a.counted(a.phase == phaseParked || a.phase == phaseUncertain || a.begun && a.phase != phaseUnreached)
	}
}
