package host

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// An Asked is an approval as a surface puts it to the one who looks at it.
type Asked struct {
	Row      *ApprovalRow
	Question *Question
	Deciders []string // who may decide it, as the configuration names them; of one that is open
	Owner    string   // the principal that the configuration acts for
	TrustAs  bool     // the configuration takes a name's word for who someone is
	Theirs   bool     // who looks may agree to it themselves, at a terminal
	Same     bool     // it was approved by the user who asked for it, which counts only because of TrustAs

	MayApprove, MayDeny error // nil where who looks may; of one that is open

	Before *Precedent // nil where there is none that they may see
}

// A Precedent is the call of the same operation that was approved last before an approval was
// asked for.
type Precedent struct {
	Call      *CallRow
	DecidedBy string
	DecidedAt time.Time
	Input     json.RawMessage // as a person is shown it
}

// IsApprovalToken reports whether a text has the form of the token that approvers are sent.
func IsApprovalToken(text string) bool {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	return err == nil && len(raw) == tokenBytes
}

// Asked returns the approval that an id means, which may be cut short.
func (a Approvals) Asked(ctx context.Context, given string) (Asked, error) {
	row, q, err := a.Show(ctx, given)
	if err != nil {
		return Asked{}, err
	}
	asked := Asked{Row: row, Question: q, Owner: a.g.Owner, TrustAs: a.engine.TrustAs}
	if row.State == ApprovalOpen {
		asked.Deciders = a.approvers.Deciders(ctx, row)
		asked.Theirs = a.ownAllowed() && a.approvers.MayApprove(ctx, row, a.by) == nil
		asked.MayApprove, asked.MayDeny = a.may(ctx, row, true), a.may(ctx, row, false)
	}
	asked.Before, err = a.precedent(ctx, row, q.Operation)
	return asked, err
}

// may returns nil where their answer would be taken.
func (a Approvals) may(ctx context.Context, row *ApprovalRow, approve bool) error {
	if a.caller != nil {
		name, ref, err := a.lets(ctx, row)
		if err != nil {
			return err
		}
		if !a.caller.Has(ScopeApprove) || approve && !a.caller.Covers(name) {
			return plugin.Errorf(plugin.CodeScopeDenied, "what you are known by is not for approving %s", ref)
		}
	}
	return a.engine.Entitled(ctx, row, Decision{Tenant: a.g.Tenant, ID: row.ID, Approve: approve, By: a.by, Asker: a.asker()})
}

// lookedAt is how many earlier calls of an operation are looked at for one that was approved.
const lookedAt = 50

// precedent returns the call of an operation that was approved last before row, among the last
// 50 calls of it. One whose approval they may not see is passed over.
func (a Approvals) precedent(ctx context.Context, row *ApprovalRow, operation string) (*Precedent, error) {
	if row.SubjectKind != SubjectCall || operation == "" {
		return nil, nil
	}
	calls, err := a.g.Store.Calls(ctx, CallFilter{Tenant: a.g.Tenant, Operation: operation, Before: row.SubjectID, Limit: lookedAt})
	if err != nil {
		return nil, err
	}
	for i := range calls {
		asked, err := a.g.Store.Approvals(ctx, ApprovalFilter{Tenant: a.g.Tenant, SubjectKind: SubjectCall, SubjectID: calls[i].ID, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(asked) == 0 || asked[0].State != ApprovalConsumed && asked[0].State != ApprovalApproved {
			continue
		}
		if !a.all(CallsPlugin) {
			if sees, err := permitted(a.approvers.MaySee(ctx, &asked[0], a.by)); err != nil || !sees {
				if err != nil {
					return nil, err
				}
				continue
			}
		}
		input, err := a.approvers.inputShown(ctx, &calls[i])
		if err != nil || input == nil {
			return nil, err
		}
		return &Precedent{&calls[i], asked[0].DecidedBy, asked[0].DecidedAt, input}, nil
	}
	return nil, nil
}

// ownAllowed reports whether they may agree to what they asked for themselves, where a
// person is at the terminal: the owner, as the user of the operating system who runs the host.
func (a Approvals) ownAllowed() bool {
	return a.g.now().own && a.g.administers(a.by) && (a.caller == nil || a.caller.Owns)
}

// Answer is [Approvals.Decide], and returns how the approval stands then. own says that a
// person is at a terminal, and counts for no one but the owner.
func (a Approvals) Answer(ctx context.Context, given string, approve, own bool, reason string) (Asked, error) {
	row, answer, err := a.Decide(ctx, given, approve, own && a.ownAllowed(), reason)
	if err != nil {
		return Asked{}, err
	}
	q, err := a.approvers.Question(ctx, row)
	return Asked{Row: row, Question: q, Owner: a.g.Owner, TrustAs: a.engine.TrustAs, Same: a.engine.TrustAs && SamePerson(row, answer)}, err
}
