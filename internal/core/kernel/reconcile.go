package kernel

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/core/placeholder"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// Reconcile asks the operator how a call ended that is unknown or in progress.
// It asks and changes nothing else: what the operator finds out closes the
// question, with its evidence; what it cannot find out is asked again later.
func (k *Kernel) Reconcile(ctx context.Context, tenant, id string) error {
	ctx, in, err := k.admission.enter(ctx, id)
	defer in.leave()
	if err == nil {
		err = k.admission.open()
	}
	if err != nil {
		return err
	}
	w, err := k.Ledger.ToRun(ctx, tenant, id)
	if err != nil {
		return err
	}
	if w == nil || w.Row.State != ledger.Unknown && w.Row.State != ledger.InProgress {
		return nil
	}
	row := w.Row
	t, err := k.Registry.Resolve(ctx, row.Operation+"@="+row.Version)
	if err != nil {
		return k.later(ctx, &row, err)
	}
	if isReported(t) {
		return k.lapse(ctx, &row)
	}
	if !t.Operation.Reconcile {
		return k.never(ctx, &row, plugin.Errorf(plugin.CodeInvalidInput, "%s cannot find out how a call ended; a person has to say, with 'mortise calls settle %s'", t.Name(), id))
	}
	if t.Package.Digest != row.PackageDigest {
		return k.never(ctx, &row, plugin.Errorf(plugin.CodeApprovalVoid, "%s is not the package any more that call %s ran in; a person has to say how it ended", t.Name(), id))
	}
	var s stored
	if err := json.Unmarshal(w.Request, &s); err != nil {
		return plugin.Errorf(plugin.CodeInternal, "what call %s was made with cannot be read: %w", id, err)
	}
	effects, err := k.effects(ctx, &row)
	if err != nil {
		return err
	}
	call := s.call(&row)
	call.Attempt = row.Attempt
	ctx, cancel := context.WithTimeoutCause(ctx, t.Operation.Timeout, plugin.Errorf(plugin.CodeTimeout, "%s did not find out within %s how call %s ended", t.Name(), t.Operation.Timeout, id))
	defer cancel()
	if err := k.reattach(ctx, call); err != nil {
		return k.later(ctx, &row, err)
	}
	var filled []string
	if gaps, _ := placeholder.Gaps(t.Operation, call.Input); len(gaps) > 0 && k.Equip != nil {
		if call.Input, filled, err = k.Equip(ctx, t, call); err != nil {
			return k.later(ctx, &row, err)
		}
	}
	if won, err := k.Ledger.Ask(ctx, &row, k.Now(), k.Now().Add(t.Operation.Timeout+askAfter)); err != nil || !won {
		return err
	}
	services := k.Services.Reading(t, call)
	found, err := k.Runner.Reconcile(ctx, t, call, effects, services)
	if err != nil {
		return k.later(ctx, &row, err)
	}
	labels := plugin.Labels(plugin.Labels(row.Labels, t.Operation.Labels), filled)
	labels = plugin.Labels(labels, services.Labels())
	if len(effects) > 0 { // it was told what came back from outside
		labels = plugin.Labels(labels, []string{plugin.Untrusted})
	}
	return k.found(ctx, t, &row, found, labels)
}

// effects are the journal of a call, with the answers that came.
func (k *Kernel) effects(ctx context.Context, row *ledger.CallRow) ([]protocol.Effect, error) {
	rows, answers, err := k.Ledger.Effects(ctx, row.Tenant, row.ID)
	if err != nil {
		return nil, err
	}
	effects := make([]protocol.Effect, 0, len(rows))
	for i, e := range rows {
		effects = append(effects, protocol.Effect{
			Method: e.Method, Effect: e.Effect, RequestHash: e.RequestHash, Occurrence: int(e.Occurrence),
			State: string(e.State), ProviderKey: e.ProviderKey, Response: answers[i],
		})
	}
	return effects, nil
}

// found closes the question with what an operator found out.
func (k *Kernel) found(ctx context.Context, t *plugin.Target, row *ledger.CallRow, r protocol.Reconciled, labels []string) error {
	now := k.Now()
	f := ledger.Resolution{By: t.Name(), Reason: "reconciled", Evidence: r.Evidence, Labels: append([]string{}, labels...)}
	switch r.Outcome {
	case protocol.OutcomeSucceeded:
		data := []byte(r.Data)
		if len(data) == 0 {
			data = []byte("null")
		}
		if err := t.Output.Check(context.WithoutCancel(ctx), data); err != nil {
			return k.later(ctx, row, plugin.Errorf(plugin.CodeInvalidOutput, "%s: what it found out %w", t.Name(), err))
		}
		if _, err := canon.Hash(data); err != nil {
			return k.later(ctx, row, plugin.Errorf(plugin.CodeInvalidOutput, "%s: what it found out: %w", t.Name(), err))
		}
		f.State = ledger.Succeeded
		f.Result = &plugin.Result{
			Status: plugin.Succeeded, CallID: row.ID, Operation: row.Operation, Version: row.Version, Data: data,
			SchemaVersion: plugin.SchemaVersion, Labels: labels,
		}
	case protocol.OutcomeFailed:
		f.State = ledger.Failed
		f.Err = plugin.Errorf(plugin.CodePluginError, "%s found out that it failed", t.Name())
		if r.Err != nil {
			f.Err = r.Err
		}
	case protocol.OutcomeNotDone:
		f.State, f.WakeAt = ledger.Queued, now
		if row.Attempt >= ledger.MaxAttempts {
			f.State, f.WakeAt = ledger.Failed, time.Time{}
			f.Err = plugin.Errorf(plugin.CodeCrashed, "%s found out that it did not happen, and %d attempts were made", t.Name(), row.Attempt)
		}
	default:
		return k.later(ctx, row, nil)
	}
	won, err := k.Ledger.Resolve(ctx, *row, f, now)
	if err == nil && won {
		k.notify(ctx, row.Tenant, row.ID)
	}
	return err
}

// later asks again after a while, which grows with the age of the question.
func (k *Kernel) later(ctx context.Context, row *ledger.CallRow, why error) error {
	now := k.Now()
	wait := min(max(askAfter, now.Sub(row.UpdatedAt)), time.Hour)
	if _, err := k.Ledger.Resolve(context.WithoutCancel(ctx), *row, ledger.Resolution{State: row.State, WakeAt: now.Add(wait)}, row.UpdatedAt); err != nil {
		return err
	}
	return why
}

// never leaves the question to a person.
func (k *Kernel) never(ctx context.Context, row *ledger.CallRow, why error) error {
	if _, err := k.Ledger.Resolve(ctx, *row, ledger.Resolution{State: row.State}, k.Now()); err != nil {
		return err
	}
	return why
}

// A Settlement is the outcome that a person records for an unknown call.
type Settlement struct {
	State    ledger.State    // succeeded, failed, or queued: it did not happen and may be run again
	Data     json.RawMessage // of one that succeeded
	By       plugin.Principal
	Reason   string // needed
	Evidence json.RawMessage
}

// settleable refuses an answer that the operation could not have given itself,
// and returns the labels that it would have had.
func (k *Kernel) settleable(ctx context.Context, row *ledger.CallRow, data json.RawMessage) ([]string, error) {
	if _, most := k.Limits(); len(data) > most {
		return nil, plugin.Errorf(plugin.CodeInputTooLarge, "the answer has %d bytes; at most %d are accepted", len(data), most)
	}
	if _, err := canon.Hash(data); err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "the answer is not one strict JSON value: %w", err)
	}
	t, err := k.Registry.Resolve(ctx, row.Operation+"@="+row.Version)
	switch code := plugin.CodeOf(err); {
	case code == plugin.CodeNotFound && string(data) == "null":
		return row.Labels, nil // the output schema is gone, and null claims nothing
	case err != nil:
		return nil, plugin.Errorf(code, "the answer cannot be held against the output schema of %s %s: %w; call %s stays as it is", row.Operation, row.Version, err, row.ID)
	}
	if err := t.Output.Check(ctx, data); err != nil && !t.Operation.Advisory {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "the answer does not fit the output schema of %s %s: output %w; call %s stays as it is, and 'mortise plugins show %s' has the schema",
			row.Operation, row.Version, err, row.ID, t.Manifest.Name)
	}
	return plugin.Labels(row.Labels, t.Operation.Labels), nil // as if it had answered itself
}

// Settle records the outcome that a person gives for an unknown call.
func (k *Kernel) Settle(ctx context.Context, tenant, id string, s Settlement) (plugin.Result, error) {
	row, err := k.Ledger.Call(ctx, tenant, id)
	switch {
	case err != nil:
		return plugin.Result{}, err
	case row == nil:
		return plugin.Result{}, plugin.Errorf(plugin.CodeNotFound, "there is no call %s that could be settled", id)
	case row.State != ledger.Unknown && row.State != ledger.InProgress:
		return plugin.Result{}, plugin.Errorf(plugin.CodeKeyConflict, "call %s is %s: only what is unknown, or in progress elsewhere, can be settled", id, row.State)
	case s.Reason == "":
		return plugin.Result{}, plugin.Errorf(plugin.CodeInvalidInput, "settling call %s needs a reason: what is known, and from where", id)
	case s.By.Type == "agent":
		return plugin.Result{}, plugin.Errorf(plugin.CodeApprovalSelf, "%s cannot say how a call ended; a person has to", s.By.Member())
	}
	f := ledger.Resolution{State: s.State, By: s.By.Member(), Reason: s.Reason, Evidence: s.Evidence, Labels: []string{}} // a person says so
	switch s.State {
	case ledger.Succeeded:
		data := s.Data
		if len(data) == 0 {
			data = json.RawMessage("null")
		}
		labels, err := k.settleable(ctx, row, data)
		if err != nil {
			return plugin.Result{}, err
		}
		f.Result = &plugin.Result{Status: plugin.Succeeded, CallID: id, Operation: row.Operation, Version: row.Version, Data: data, SchemaVersion: plugin.SchemaVersion, Labels: labels}
	case ledger.Failed:
		f.Err = plugin.Errorf(plugin.CodeOutcomeUnknown, "%s settled it as failed: %s", s.By.Member(), s.Reason)
		f.Err.Code = plugin.CodePluginError
	case ledger.Queued:
		if row.Origin == string(plugin.OriginDecision) {
			return plugin.Result{}, plugin.Errorf(plugin.CodeInvalidInput, "call %s is of a tool that another program runs; settle it as failed, and let that program ask again", id)
		}
		f.WakeAt = k.Now()
		if row.RequestHash == "" {
			return plugin.Result{}, plugin.Errorf(plugin.CodeInvalidInput, "call %s cannot be run again: what it was made with is not kept", id)
		}
	default:
		return plugin.Result{}, plugin.Errorf(plugin.CodeInvalidInput, "a call is settled as succeeded, failed or not done, not as %s", s.State)
	}
	won, err := k.Ledger.Resolve(ctx, *row, f, k.Now())
	if err != nil {
		return plugin.Result{}, err
	}
	if !won {
		return plugin.Result{}, plugin.Errorf(plugin.CodeKeyConflict, "call %s was settled in the meantime; 'mortise calls show %s' says how, and by whom", id, id)
	}
	k.notify(ctx, tenant, id)
	if s.State == ledger.Queued && k.Wake != nil {
		k.Wake(ctx, tenant, id)
	}
	res, err := k.status(ctx, tenant, id, nil)
	if s.State == ledger.Failed {
		err = nil // that it failed is what was asked for
	}
	return res, err
}
