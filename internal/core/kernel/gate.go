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
	"github.com/mortise-dev/mortise/internal/core/binding"
	"github.com/mortise-dev/mortise/plugin"
)

// maxPreview bounds what a person is shown, in bytes.
const maxPreview = 64 << 10

// gate finds out whether the word of a person, which policy wants, was given.
// Where it was not, a new call waits for it, and one that goes on is refused.
func (r *request) gate(ctx context.Context) error {
	if covered, err := r.covered(ctx); covered || err != nil {
		return err
	}
	if r.row == nil {
		r.needs = true
		return nil
	}
	given, err := r.k.Ledger.ApprovalOf(ctx, r.call.Tenant, r.call.ID)
	if err != nil {
		return err
	}
	if given == nil {
		return plugin.Errorf(plugin.CodePolicyDenied, "since call %s was made, policy asks for approval (%s); make it again", r.call.ID, r.record.Decision.Reasons[0])
	}
	r.given, r.record.Approval = given, given.ID
	switch given.State {
	case approval.Approved, approval.Consumed: // the second by an earlier attempt of this call
	default:
		return plugin.Errorf(plugin.CodeApprovalVoid, "approval %s is %s", given.ID, given.State)
	}
	if !r.k.Now().Before(given.ExpiresAt) {
		r.void = "it expired before the call ran"
		return plugin.Errorf(plugin.CodeApprovalExpired, "approval %s expired at %s, before the call ran", given.ID, given.ExpiresAt.Format(time.RFC3339))
	}
	if binding := r.binding(given.PreviewHash); binding != given.Binding {
		r.void = "what would run is not what was approved"
		return plugin.Errorf(plugin.CodeApprovalVoid, "approval %s was given for other arguments, another plugin or other policies than those that would run now; make the call again", given.ID)
	}
	return nil
}

// covered reports whether the plan that the call is a step of was approved as a
// whole. The arguments that stood in it are covered, whatever they are tainted
// with: they were shown. What was filled in since from outside is not.
func (r *request) covered(ctx context.Context) (bool, error) {
	if r.call.Approval == "" || r.call.Plan == "" || slices.Contains(r.call.Filled, plugin.Untrusted) {
		return false, nil
	}
	given, err := r.k.Ledger.Approval(ctx, r.call.Tenant, r.call.Approval)
	if err != nil || given == nil {
		return false, err
	}
	if given.SubjectKind != approval.SubjectPlan || given.SubjectID != r.call.Plan || given.State != approval.Approved && given.State != approval.Consumed {
		return false, nil
	}
	r.record.Approval = given.ID
	return true, nil
}

// ask makes the question for a person ready, with a preview where the operation
// offers one.
func (r *request) ask(ctx context.Context, now time.Time) (*approval.Asked, error) {
	var preview json.RawMessage
	if r.target.Operation.Preview {
		limit := r.limit()
		ctx, cancel := context.WithTimeoutCause(ctx, limit, plugin.Errorf(plugin.CodeTimeout, "the preview of %s took longer than %s", r.target.Name(), limit))
		defer cancel()
		var err error
		if preview, err = r.k.Runner.Preview(ctx, r.target, r.handed(), r.k.Services.Reading(r.target, r.call)); err != nil {
			e := *plugin.AsError(err)
			e.Message = "no approval was requested, because what would happen cannot be shown: the preview of " + r.target.Name() + " failed: " + e.Message
			return nil, &e
		}
		if len(preview) > maxPreview {
			return nil, plugin.Errorf(plugin.CodeOutputTooLarge, "the preview of %s has %d bytes; at most %d are shown", r.target.Name(), len(preview), maxPreview)
		}
	}
	hash := ""
	if len(preview) > 0 {
		hash = canon.Sum(preview)
	}
	return approval.New(approval.Question{
		Tenant: r.call.Tenant, SubjectKind: approval.SubjectCall, SubjectID: r.call.ID, Requester: r.call.Principal.Member(), Asker: r.call.Asker,
		Binding: r.binding(hash), PackageDigest: r.target.Package.Digest, PolicyVersion: r.record.Decision.Policy,
		Why: r.record.Decision.Reasons[0], Preview: preview, At: now, Expires: now.Add(r.k.ApprovalTime),
	}), nil
}

// see makes the input ready that policy judges: what the host fills in is in it,
// so that leaving an argument out does not hide it from a policy. What that is
// tainted with, the call is; an approval of the plan that the call is a step of
// does not cover it, since a person is never shown the value of a secret.
func (r *request) see(ctx context.Context) (err error) {
	if r.k.Seen == nil {
		r.seen, err = binding.Seen(r.target.Operation, r.call.Input, nil)
		return err
	}
	var labels []string
	if r.seen, labels, err = r.k.Seen(ctx, r.target, r.call); err != nil || len(labels) == 0 {
		return err
	}
	r.call.Labels = plugin.Labels(r.call.Labels, labels)
	r.record.Labels = r.call.Labels
	if r.call.Plan != "" {
		r.call.Filled = plugin.Labels(r.call.Filled, labels)
	}
	return nil
}

// binding is the hash of everything that an approval is for: whose call of what
// with which arguments, in which package, with which effects, under which
// policies, as shown.
func (r *request) binding(preview string) string {
	of := map[string]any{
		"tenant": r.call.Tenant, "requester": r.call.Principal.ID, "actor": r.call.Actor,
		"operation": r.target.Name(), "version": r.target.Manifest.Version, "package_digest": r.target.Package.Digest,
		"input_hash": r.record.InputHash, "effects": r.target.Operation.Effects, "labels": r.call.Labels,
		"policy_version": r.record.Decision.Policy, "preview_hash": preview,
	}
	if !bytes.Equal(r.seen, r.call.Input) { // the host fills something in, which the input's hash does not cover
		of["seen_hash"] = canon.Sum(r.seen)
	}
	raw, err := json2.Marshal(of, json2.Deterministic(true))
	if err != nil {
		panic(err) // it is text throughout
	}
	return canon.Sum(raw)
}
