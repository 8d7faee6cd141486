package kernel

import "context"

// count refuses a call beyond the quotas of its principal, before its key is claimed and
// before anything runs. A call that was put on record was counted then. Dry runs do not
// count.
func (a *attempt) count(ctx context.Context) (err error) {
	if a.k.Quotas == nil || a.call.Dry != nil {
		return nil
	}
	a.counted, err = a.k.Quotas.Take(ctx, a.target, a.call, a.row != nil, a.phase != phaseGated && !a.call.NoWait)
	return err
}

// uncount gives back what a call took of the quotas: the room that it had, and its place
// in the count where it is known that nothing of it ran and nothing of it will.
func (a *attempt) uncount() {
	if a.counted != nil {
		a.counted(a.phase == phaseParked || a.phase == phaseUncertain || a.begun && a.phase != phaseUnreached)
	}
}
