package kernel

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/plugin"
)

// maxPreview bounds what a person is shown, in bytes.
const maxPreview = 64 << 10

// gate finds out whether the word of a person, which policy wants, was given.
// Where it was not, a new call waits for it, and one that goes on is refused.
func (a *attempt) gate(ctx context.Context) error {
	if covered, err := a.covered(ctx); covered || err != nil {
		return err
	}
	if a.row == nil {
		a.phase = phaseGated
		return nil
	}
	given, err := a.k.Ledger.ApprovalOf(ctx, a.call.Tenant, a.call.ID)
	if err != nil {
		return err
	}
	if given == nil {
		return plugin.Errorf(plugin.CodePolicyDenied, "since call %s was made, policy asks for approval (%s); make it again", a.call.ID, a.record.Decision.Reasons[0])
	}
	a.approval, a.record.Approval = given, given.ID
	switch given.State {
	case approval.Approved, approval.Consumed: // the second by an earlier attempt of this call
	default:
		return plugin.Errorf(plugin.CodeApprovalVoid, "approval %s is %s", given.ID, given.State)
	}
	if !a.k.Now().Before(given.ExpiresAt) {
		a.void = "it expired before the call ran"
		return plugin.Errorf(plugin.CodeApprovalExpired, "approval %s expired at %s, before the call ran", given.ID, given.ExpiresAt.Format(time.RFC3339))
	}
	if binding := a.binding(given.PreviewHash); binding != given.Binding {
		a.void = "what would run is not what was approved"
		return plugin.Errorf(plugin.CodeApprovalVoid, "approval %s was given for other arguments, another plugin or other policies than those that would run now; make the call again", given.ID)
	}
	return nil
}

// covered reports whether the plan that the call is a step of was approved as a
// whole. The arguments that stood in it are covered, whatever they are tainted
// with: they were shown. What was filled in since from outside is not.
func (a *attempt) covered(ctx context.Context) (bool, error) {
	if a.call.Approval == "" || a.call.Plan == "" || slices.Contains(a.call.Filled, plugin.Untrusted) {
		return false, nil
	}
	given, err := a.k.Ledger.Approval(ctx, a.call.Tenant, a.call.Approval)
	if err != nil || given == nil {
		return false, err
	}
	if given.SubjectKind != approval.SubjectPlan || given.SubjectID != a.call.Plan || given.State != approval.Approved && given.State != approval.Consumed {
		return false, nil
	}
	a.record.Approval = given.ID
	return true, nil
}

// ask makes the question for a person ready, with a preview where the operation
// offers one.
func (a *attempt) ask(ctx context.Context, now time.Time) (*approval.Asked, error) {
	var preview json.RawMessage
	if a.target.Operation.Preview {
		limit := a.limit()
		ctx, cancel := context.WithTimeoutCause(ctx, limit, plugin.Errorf(plugin.CodeTimeout, "the preview of %s took longer than %s", a.target.Name(), limit))
		defer cancel()
		var err error
		services := a.k.Services.Reading(a.target, a.call)
		preview, err = a.k.Runner.Preview(ctx, a.target, a.handed(), services)
		a.made = plugin.Labels(a.made, services.Labels())
		if err != nil {
			e := *plugin.AsError(err)
			e.Message = "no approval was requested, because what would happen cannot be shown: the preview of " + a.target.Name() + " failed: " + e.Message
			return nil, &e
		}
		if len(preview) > maxPreview {
			return nil, plugin.Errorf(plugin.CodeOutputTooLarge, "the preview of %s has %d bytes; at most %d are shown", a.target.Name(), len(preview), maxPreview)
		}
	}
	hash := ""
	if len(preview) > 0 {
		hash = canon.Sum(preview)
	}
	return approval.New(approval.Question{
		Tenant: a.call.Tenant, SubjectKind: approval.SubjectCall, SubjectID: a.call.ID, Requester: a.call.Principal.Member(), Asker: a.call.Asker,
		Binding: a.binding(hash), PackageDigest: a.target.Package.Digest, PolicyVersion: a.record.Decision.Policy,
		Why: a.record.Decision.Reasons[0], Preview: preview, At: now, Expires: now.Add(a.k.ApprovalTime),
	}), nil
}

// binding is the hash of everything that an approval is for: whose call of what
// with which arguments, decided how by the host, in which package, with which effects, under which
// policies, as shown.
func (a *attempt) binding(preview string) string {
	of := map[string]any{
		"tenant": a.call.Tenant, "requester": a.call.Principal.Member(), "actor": a.call.Actor,
		"operation": a.target.Name(), "version": a.target.Manifest.Version, "package_digest": a.target.Package.Digest,
		"input_hash": a.record.InputHash, "effects": a.target.Operation.Effects, "labels": a.call.Labels,
		"policy_version": a.record.Decision.Policy, "preview_hash": preview,
	}
	if !bytes.Equal(a.seen, a.call.Input) { // the host fills something in, which the input's hash does not cover
		of["seen_hash"] = canon.Sum(a.seen)
	}
	if a.overlay != "" {
		of["overlay_hash"] = a.overlay
	}
	raw, err := json2.Marshal(of, json2.Deterministic(true))
	if err != nil {
		panic(err) // it is text throughout
	}
	return canon.Sum(raw)
}
