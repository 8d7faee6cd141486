package kernel

import (
	"context"
	"errors"

	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

// lookUp answers a key that was seen before.
func (a *attempt) lookUp(ctx context.Context) (first plugin.Result, seen bool, err error) {
	if a.call.Dry != nil || a.call.Key == "" && a.call.Place == "" && a.call.Plan == "" {
		return first, false, nil
	}
	prior, err := a.k.Ledger.LookupCall(ctx, a.call, a.target.Name())
	if prior == nil || err != nil {
		return first, false, err
	}
	first, err = a.replay(ctx, prior)
	return first, true, err
}

// replay gives the answer that an earlier call with the same key got or, while
// that is at work, waits for it.
func (a *attempt) replay(ctx context.Context, prior *ledger.Prior) (plugin.Result, error) {
	if prior.Fingerprint != a.fingerprint() || !a.madeBy(prior.Principal) {
		return plugin.Result{}, plugin.Errorf(plugin.CodeKeyConflict, "the key %s was used before, with another input or by someone else", a.call.Key)
	}
	if a.call.Origin == plugin.OriginDecision && prior.State == ledger.InProgress {
		if err := a.upheld(ctx, prior.CallID); err != nil {
			return plugin.Result{}, err
		}
	}
	a.prior = prior
	if prior.State == ledger.Pending || prior.State.Ended() || a.call.NoWait || a.call.Origin == plugin.OriginDecision {
		return a.k.answer(a.call.Tenant, a.target.Name(), prior)
	}
	if release := a.unused; release != nil {
		release() // what is reserved may be what the other call waits for
	}
	limit := a.limit()
	if own := a.call.Patience; own > 0 && own < limit {
		limit = own
	}
	until, cancel := context.WithTimeoutCause(ctx, limit, errWaited)
	defer cancel()
	// Who waits for another's call cancels the waiting, and not the call.
	res, err := a.k.AwaitWhile(context.WithoutCancel(ctx), until, a.call.Tenant, prior.CallID)
	if context.Cause(until) == errWaited && !res.Status.Ended() {
		err = nil // it is still at work, and this is its answer
	}
	res.Replayed = true
	return res, err
}

// upheld returns nil if policy allows now what an earlier decision allows another program to
// do. That has not been done yet as far as the host knows, so the word of the policies that
// are in force counts. A question that a person has approved stays approved.
func (a *attempt) upheld(ctx context.Context, decision string) error {
	if err := a.admit(ctx); err != nil || a.phase != phaseGated {
		return err
	}
	given, err := a.k.Ledger.ApprovalOf(ctx, a.call.Tenant, decision)
	if err != nil {
		return err
	}
	if given == nil || given.State != approval.Consumed {
		return plugin.Errorf(plugin.CodePolicyDenied, "since decision %s was given, policy asks for approval (%s); ask again with another key", decision, a.record.Decision.Reasons[0])
	}
	a.phase = phaseNew
	return nil
}

// madeBy reports whether name, from the row of an earlier call, is the principal of this call.
// Rows of earlier releases have the id only; their fingerprint has the type.
func (a *attempt) madeBy(name string) bool {
	return name == a.call.Principal.Member() || name == a.call.Principal.ID
}

// errWaited is the end of a caller's patience with another call.
var errWaited = errors.New("the call it waits for is still at work")
