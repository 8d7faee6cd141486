package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/mortise-dev/mortise/internal/base/fault"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

// claim burns the key of a call that has one, has effects, needs a person's
// word or is to run without its caller. A call that does not run now is done
// with here.
func (a *attempt) claim(ctx context.Context) (first plugin.Result, done bool, err error) {
	call := a.call
	if call.Dry != nil { // which has nothing to claim
		return first, false, a.mayRunDry()
	}
	if call.Key == "" && call.Place == "" && call.Plan == "" && len(a.target.Operation.Effects) == 0 && a.phase != phaseGated && !call.NoWait {
		return first, false, nil
	}
	started, now := a.record, a.k.Now()
	started.Status, started.Attempt = plugin.InProgress, 1
	c := ledger.Claim{
		Call: call, Target: a.target, Fingerprint: a.fingerprint(), InputHash: a.record.InputHash, Request: a.encode(),
		PolicyVersion: a.record.Decision.Policy, Journalled: a.journalled(), Deadline: a.started.Add(a.limit()), Record: &started, At: now,
	}
	var asked *approval.Asked
	switch {
	case a.phase == phaseGated:
		if asked, err = a.ask(ctx, now); err != nil {
			return first, false, err
		}
		started.Status, started.Attempt, started.Approval = plugin.PendingApproval, 0, asked.Row.ID
		c.State, c.WakeAt, c.Also = ledger.Pending, asked.Row.ExpiresAt, asked.Put
	case call.NoWait:
		started.Attempt = 0
		c.State, c.WakeAt = ledger.Queued, now
		if call.After.After(now) {
			c.WakeAt, c.Deadline = call.After, c.Deadline.Add(call.After.Sub(now))
		}
	}
	if call.Plan != "" {
		c.Also = ledger.InPlan(call, c.Also)
	}
	lease, prior, err := a.k.Ledger.Claim(ctx, c)
	switch {
	case err != nil:
		a.doubt(err, c.MayResume())
		return first, false, err
	case prior != nil:
		first, err = a.replay(ctx, prior)
		return first, true, err
	case a.phase == phaseGated:
		a.phase = phaseParked
		fault.At("approval")
		if a.k.Asked != nil {
			a.k.Asked(asked, call)
		}
		first.Status = plugin.PendingApproval
		first.Approval = &plugin.Pending{ID: asked.Row.ID, Why: asked.Row.Why, Preview: asked.Preview, ExpiresAt: asked.Row.ExpiresAt}
		return first, true, nil
	case call.NoWait:
		a.phase = phaseParked
		if a.k.Wake != nil && !call.NoWake && !call.After.After(now) {
			a.k.Wake(ctx, call.Tenant, call.ID)
		}
		first.Status = plugin.InProgress
		return first, true, nil
	}
	a.lease, a.record.Attempt, a.resumed = &lease, lease.Attempt(), call.Stays
	fault.At("claim")
	return first, false, nil
}

// journalled reports whether every effect of the call goes through the journal:
// that is so if the operation says that all of them go through host services.
// Otherwise the dispatch itself counts as one.
func (a *attempt) journalled() bool { return a.target.Operation.Brokered }

// A stored is a call as it is kept to be run again.
type stored struct {
	Principal  plugin.Principal `json:"principal"`
	Actor      string           `json:"actor,omitempty"`
	By         string           `json:"by,omitempty"`
	Asker      string           `json:"asker,omitempty"`
	Agent      string           `json:"agent,omitempty"`
	Origin     plugin.Origin    `json:"origin"`
	Parent     string           `json:"parent,omitempty"`
	Session    string           `json:"session,omitempty"`
	Depth      int              `json:"depth,omitempty"`
	EffectFree bool             `json:"effect_free,omitempty"`
	Labels     []string         `json:"labels,omitempty"`
	Key        string           `json:"key,omitempty"`
	KeyOf      string           `json:"key_of,omitempty"`
	Place      string           `json:"place,omitempty"`
	Plan       string           `json:"plan,omitempty"`
	Approval   string           `json:"approval,omitempty"`
	Filled     []string         `json:"filled,omitempty"`
	Trace      plugin.Trace     `json:"trace"`
	Timeout    time.Duration    `json:"timeout,omitempty"`
	Input      json.RawMessage  `json:"input"`
	Overlay    json.RawMessage  `json:"overlay,omitempty"`
	Files      []plugin.File    `json:"files,omitempty"`
	Definition json.RawMessage  `json:"definition,omitempty"`
}

// encode returns the call as it is kept.
func (a *attempt) encode() []byte {
	c := a.call
	input := c.Input
	if a.input != nil {
		input = a.input // an agent is briefed again
	}
	raw, err := json.Marshal(stored{
		c.Principal, c.Actor, c.By, c.Asker, c.Agent, c.Origin, c.Parent, c.Session, c.Depth, c.EffectFree, c.Labels,
		c.Key, c.KeyOf, c.Place, c.Plan, c.Approval, c.Filled, c.Trace, c.Timeout, input, c.Overlay, handedOn(c.Files), c.Definition,
	})
	if err != nil {
		panic(err) // it was read as JSON before
	}
	return raw
}

// again returns the next attempt of a call that is queued; nil if it is not.
func (k *Kernel) again(ctx context.Context, tenant, id string) (*attempt, error) {
	w, err := k.Ledger.ToRun(ctx, tenant, id)
	if err != nil || w == nil || w.Row.State != ledger.Queued {
		return nil, err
	}
	if w.Row.Cancelled { // while it ran, and then it was to be run again
		_, err := k.Cancel(ctx, tenant, id, "a caller", "while an earlier attempt ran")
		return nil, err
	}
	if w.Row.Effectful { // it stays queued
		if err := k.hold(ctx); err != nil {
			return nil, err
		}
	}
	var s stored
	if err := json.Unmarshal(w.Request, &s); err != nil {
		return nil, plugin.Errorf(plugin.CodeInternal, "what call %s was made with cannot be read: %w", id, err)
	}
	call := s.call(&w.Row)
	call.Observe = k.listening.to(tenant, id)
	a := k.begin(call)
	a.row, a.resumed = &w.Row, true
	a.record.Attempt = w.Row.Attempt
	return a, nil
}

// call returns the call of a row.
func (s *stored) call(row *ledger.CallRow) *plugin.Call {
	return &plugin.Call{
		ID: row.ID, Tenant: row.Tenant, Principal: s.Principal, Actor: s.Actor, By: s.By, Asker: s.Asker, Agent: s.Agent, Origin: s.Origin, Parent: s.Parent, Session: s.Session,
		Depth: s.Depth, EffectFree: s.EffectFree, Labels: s.Labels, Operation: row.Operation + "@=" + row.Version, Input: s.Input, Key: s.Key, KeyOf: s.KeyOf,
		Place: s.Place, Plan: s.Plan, Approval: s.Approval, Filled: s.Filled, Digest: row.PackageDigest, Trace: s.Trace, Timeout: s.Timeout, Overlay: s.Overlay,
		Files: s.Files, Definition: s.Definition,
	}
}

// doubt notes that it is unknown whether the store wrote the claim of the call, and whether
// the call goes on if it did.
func (a *attempt) doubt(err error, goesOn bool) {
	if errors.Is(err, ledger.ErrUncertain) {
		a.phase, a.goesOn = phaseUncertain, goesOn
	}
}

// start claims a queued call for this attempt. lost reports that another attempt
// has claimed it, or has ended it; now then has its state.
func (a *attempt) start(ctx context.Context) (now plugin.Result, lost bool, err error) {
	started := a.record
	started.Status = plugin.InProgress
	var also func(tx ledger.Tx) (bool, error)
	if given := a.approval; given != nil && given.State == approval.Approved && given.SubjectID == a.call.ID {
		also = func(tx ledger.Tx) (bool, error) { return approval.Consume(tx, *given, a.k.Now()) }
	}
	at := a.k.Now()
	lease, won, err := a.k.Ledger.Start(ctx, *a.row, &started, a.record.Decision.Policy, at.Add(a.limit()), at, also)
	if err != nil {
		a.doubt(err, true)
		return now, false, err
	}
	if !won {
		a.row, a.phase = nil, phaseParked
		now, err = a.k.status(ctx, a.call.Tenant, a.call.ID, nil)
		return now, true, err
	}
	a.lease, a.row, a.record.Attempt = &lease, nil, lease.Attempt()
	fault.At("claim")
	return now, false, nil
}
