package host

import (
	"context"
	"encoding/base64"
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
	}
	return asked, nil
}

// ownAllowed reports whether they may agree to what they asked for themselves, where a
// person is at the terminal: the owner, as the user of the operating system who runs the host.
func (a Approvals) ownAllowed() bool {
	return a.g.OwnApproval && a.g.administers(a.by) && (a.caller == nil || a.caller.Owns)
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
