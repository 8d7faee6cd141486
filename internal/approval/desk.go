package approval

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/ledger"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// A Desk takes answers. It is safe for concurrent use, on any node.
type Desk struct {
	Store store.Store

	// May returns nil if policy lets that principal decide about what the
	// approval is for.
	May func(ctx context.Context, row *store.ApprovalRow, by plugin.Principal) error

	// Wake hears of what may go on now: a call or a plan. It may be nil.
	Wake func(ctx context.Context, kind, tenant, id string)
	// Ended hears of calls that failed for want of an approval. It may be nil.
	Ended func(ctx context.Context, tenant, call string)

	// TrustAs takes an answer for a second person's although it comes from the very
	// one who asked, under another name. Each such answer is on record.
	TrustAs bool

	Now func() time.Time // time.Now where it is nil
}

// An Answer is a person's.
type Answer struct {
	Tenant  string
	ID      string // of the approval, or
	Token   string // what its approvers were given
	Approve bool
	By      plugin.Principal
	Asker   string // who answers is known to be, as for [plugin.Call]
	Reason  string

	// Own lets someone answer their own question: the sole owner, at a terminal,
	// where configuration allows it.
	Own bool
}

// MaxReason bounds what a person may write, in bytes.
const MaxReason = 4 << 10

// Decide takes an answer, once. Of several at a time one is taken; the others
// get approval_used. A refused attempt is on record too.
func (d *Desk) Decide(ctx context.Context, a Answer) (*store.ApprovalRow, error) {
	if len(a.Reason) > MaxReason {
		return nil, plugin.Errorf(plugin.CodeInputTooLarge, "the reason has %d bytes; at most %d are kept", len(a.Reason), MaxReason)
	}
	row, err := d.find(ctx, a)
	if err != nil {
		return nil, err
	}
	if err := d.entitled(ctx, row, a); err != nil {
		return row, d.refused(ctx, row, a, err)
	}
	var decided store.ApprovalRow
	var refusal error
	err = d.Store.Write(ctx, func(tx store.Tx) (err error) {
		decided, refusal, err = d.decide(ctx, tx, a, row.ID)
		return err
	})
	if err != nil {
		return row, err
	}
	if refusal != nil {
		d.ended(ctx, &decided) // its time may have been over just now
		return &decided, d.refused(ctx, &decided, a, refusal)
	}
	if decided.State == store.ApprovalApproved && d.Wake != nil {
		d.Wake(ctx, decided.SubjectKind, decided.Tenant, decided.SubjectID)
	}
	d.ended(ctx, &decided)
	return &decided, nil
}

// find returns the approval that an answer is for.
func (d *Desk) find(ctx context.Context, a Answer) (row *store.ApprovalRow, err error) {
	if a.Token != "" {
		row, err = d.Store.ApprovalByToken(ctx, a.Tenant, HashToken(a.Token))
	} else {
		row, err = d.Store.Approval(ctx, a.Tenant, a.ID)
	}
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, plugin.Errorf(plugin.CodeNotFound, "there is no approval %s; 'mortise approvals list' shows those that wait", a.ID)
	}
	return row, nil
}

// entitled refuses those who may not answer: the requester, agents, and
// principals that policy does not allow.
func (d *Desk) entitled(ctx context.Context, row *store.ApprovalRow, a Answer) error {
	switch {
	case a.By.ID == "":
		return plugin.Errorf(plugin.CodeUnauthenticated, "the answer names no principal: sign in with 'mortise login', or use the owner's socket")
	case a.By.Type == "agent":
		return plugin.Errorf(plugin.CodeApprovalSelf, "agent %s cannot decide approval %s: an agent approves nothing", a.By.ID, row.ID)
	case a.Approve && a.By.Member() == row.Requester && !a.Own:
		return plugin.Errorf(plugin.CodeApprovalSelf, "%s asked for approval %s and cannot give it; another principal can, with 'mortise approvals approve %s --as NAME'", a.By.ID, row.ID, row.ID)
	case a.Approve && !a.Own && !d.TrustAs && sameAsker(row, a):
		return plugin.Errorf(plugin.CodeApprovalSelf, "%s answers as %s, and asked for approval %s as %s: one person under two names is no second approver. Have another user of the operating system approve it, or set approvals.trust_as: true in mortise.yaml to take the name's word",
			known(a.Asker), a.By.ID, row.ID, row.Requester)
	case a.By.Member() == row.Requester && !a.Approve:
		return nil // the requester may withdraw it
	}
	return d.May(ctx, row, a.By)
}

// sameAsker reports whether an answer comes from the one who asked, as far as is
// known: where one of them is not known, they may be.
// deliveredBy stands between the two who ask when one says what another wants.
const deliveredBy = " by "

// Delivered returns who asks when one delivers what another says they want: both,
// and neither is a second person.
func Delivered(asker, by string) string {
	if by == "" {
		return asker
	}
	return asker + deliveredBy + by
}

func sameAsker(row *store.ApprovalRow, a Answer) bool {
	return row.Asker == "" || a.Asker == "" || row.Asker == a.Asker ||
		strings.HasSuffix(row.Asker, deliveredBy+a.Asker) || strings.HasPrefix(row.Asker, a.Asker+deliveredBy)
}

// Same reports whether an answer comes from the one who asked, under another name.
func Same(row *store.ApprovalRow, a Answer) bool {
	return a.Approve && !a.Own && a.By.Member() != row.Requester && sameAsker(row, a)
}

func known(asker string) string {
	if uid, isUser := strings.CutPrefix(asker, "os:"); isUser {
		return "user " + uid + " of the operating system"
	}
	if asker == "" {
		return "a caller without an operating system user"
	}
	return asker
}

// decide takes the answer in a transaction. refusal is why it does not count,
// decided how the approval stands now.
func (d *Desk) decide(ctx context.Context, tx store.Tx, a Answer, id string) (decided store.ApprovalRow, refusal, err error) {
	row, err := tx.Approval(ctx, a.Tenant, id)
	if err != nil {
		return decided, nil, err
	}
	if row == nil {
		return decided, nil, fmt.Errorf("approval %s is gone", id)
	}
	at := d.now()
	if row.State == store.ApprovalOpen && !at.Before(row.ExpiresAt) {
		if err := expire(ctx, tx, *row, at); err != nil {
			return *row, nil, err
		}
		if row, err = tx.Approval(ctx, a.Tenant, id); err != nil {
			return decided, nil, err
		}
	}
	if refusal := closed(row); refusal != nil {
		return *row, refusal, nil
	}
	next := *row
	next.State, next.DecidedBy, next.Reason, next.DecidedAt = store.ApprovalDenied, a.By.ID, a.Reason, at
	kind := plugin.EntryApprovalDenied
	if a.Approve {
		next.State, kind = store.ApprovalApproved, plugin.EntryApprovalApproved
	}
	won, err := tx.UpdateApproval(store.ApprovalOpen, next)
	if err != nil {
		return *row, nil, err
	}
	if !won { // another node was faster, and what it decided is there by now
		if row, err = tx.Approval(ctx, a.Tenant, id); err != nil {
			return decided, nil, err
		}
		return *row, closed(row), nil
	}
	if err := noteOf(tx, kind, &next, a.By.ID, "", a, at); err != nil {
		return *row, nil, err
	}
	if a.Approve {
		err = release(ctx, tx, &next, at)
	} else {
		err = fail(ctx, tx, &next, denied(&next), at)
	}
	return next, nil, err
}

// closed says why an approval takes no answer any more; nil if it does.
func closed(row *store.ApprovalRow) error {
	switch row.State {
	case store.ApprovalOpen:
		return nil
	case store.ApprovalExpired:
		return plugin.Errorf(plugin.CodeApprovalExpired, "approval %s expired at %s; the call has to be made again", row.ID, row.ExpiresAt.Format(time.RFC3339))
	case store.ApprovalVoid:
		return plugin.Errorf(plugin.CodeApprovalVoid, "approval %s is void: %s", row.ID, row.Reason)
	default:
		e := plugin.Errorf(plugin.CodeApprovalUsed, "approval %s was decided before: %s by %s", row.ID, past(row), row.DecidedBy)
		e.Details, _ = json2.Marshal(map[string]any{"state": row.State, "decided_by": row.DecidedBy})
		return e
	}
}

// past is what was decided.
func past(row *store.ApprovalRow) string {
	if row.State == store.ApprovalDenied {
		return "denied"
	}
	return "approved"
}

func denied(row *store.ApprovalRow) *plugin.Error {
	e := plugin.Errorf(plugin.CodeApprovalDenied, "%s did not approve it", row.DecidedBy)
	if row.Reason != "" {
		e.Message += ": " + row.Reason
	}
	return e
}

// refused puts on record that an answer did not count, and returns why.
func (d *Desk) refused(ctx context.Context, row *store.ApprovalRow, a Answer, why error) error {
	e := plugin.AsError(why)
	err := d.Store.Write(ctx, func(tx store.Tx) error {
		return noteOf(tx, plugin.EntryApprovalRefused, row, a.By.ID, string(e.Code)+": "+e.Message, Answer{Asker: a.Asker}, d.now())
	})
	if err != nil {
		return err
	}
	return why
}

// Expire closes the approvals whose time is over, and fails what waited for
// them. It returns how many there were.
func (d *Desk) Expire(ctx context.Context) (n int, err error) {
	due, err := d.Store.Approvals(ctx, store.ApprovalFilter{State: store.ApprovalOpen, ExpiresBefore: d.now(), Limit: 100})
	if err != nil {
		return 0, err
	}
	for _, row := range due {
		err := d.Store.Write(ctx, func(tx store.Tx) error {
			now, err := tx.Approval(ctx, row.Tenant, row.ID)
			if err != nil || now == nil || now.State != store.ApprovalOpen {
				return err
			}
			return expire(ctx, tx, *now, d.now())
		})
		if err != nil {
			return n, err
		}
		n++
		row.State = store.ApprovalExpired
		d.ended(ctx, &row)
	}
	return n, nil
}

// ended tells of a call that has failed for want of an approval.
func (d *Desk) ended(ctx context.Context, row *store.ApprovalRow) {
	if d.Ended != nil && row.SubjectKind == store.SubjectCall && (row.State == store.ApprovalDenied || row.State == store.ApprovalExpired) {
		d.Ended(ctx, row.Tenant, row.SubjectID)
	}
}

// expire closes an approval that was not answered in time.
func expire(ctx context.Context, tx store.Tx, row store.ApprovalRow, at time.Time) error {
	next := row
	next.State, next.DecidedAt = store.ApprovalExpired, at
	won, err := tx.UpdateApproval(store.ApprovalOpen, next)
	if err != nil || !won {
		return err
	}
	if err := note(tx, plugin.EntryApprovalExpired, &next, row.Requester, "", at); err != nil {
		return err
	}
	return fail(ctx, tx, &next, plugin.Errorf(plugin.CodeApprovalExpired, "no approver answered approval %s by %s", row.ID, row.ExpiresAt.Format(time.RFC3339)), at)
}

// release lets go what waited for an approval.
func release(ctx context.Context, tx store.Tx, row *store.ApprovalRow, at time.Time) error {
	if row.SubjectKind == store.SubjectPlan {
		return movePlan(ctx, tx, row, store.PlanQueued, nil, at)
	}
	return ledger.Release(ctx, tx, row.Tenant, row.SubjectID, at)
}

// fail ends what waited for an approval.
func fail(ctx context.Context, tx store.Tx, row *store.ApprovalRow, why *plugin.Error, at time.Time) error {
	if row.SubjectKind == store.SubjectPlan {
		return movePlan(ctx, tx, row, store.PlanFailed, why, at)
	}
	return ledger.Refuse(ctx, tx, row.Tenant, row.SubjectID, why, at)
}

// movePlan takes a plan out of its waiting.
func movePlan(ctx context.Context, tx store.Tx, row *store.ApprovalRow, to store.PlanState, why *plugin.Error, at time.Time) error {
	plan, err := tx.Plan(ctx, row.Tenant, row.SubjectID)
	if err != nil || plan == nil || plan.State != store.PlanPending {
		return err
	}
	next := *plan
	next.State, next.UpdatedAt = to, at
	if why != nil {
		next.Code, next.Message = string(why.Code), why.Message
	}
	won, err := tx.UpdatePlan(plan.Fence(), next)
	if err != nil || !won || why == nil {
		return err
	}
	body, err := json2.Marshal(map[string]any{
		"plan": plan.ID, "hash": plan.Hash, "state": next.State, "error": plugin.ErrorRecord{Code: why.Code, Message: why.Message},
	}, json2.Deterministic(true))
	if err != nil {
		return err
	}
	tx.Append(plugin.Entry{At: at.Truncate(time.Microsecond).UTC(), Tenant: plan.Tenant, Kind: plugin.EntryPlanFailed, Subject: plan.ID, Principal: row.DecidedBy, Body: json.RawMessage(body)})
	return nil
}

func (d *Desk) now() time.Time {
	if d.Now != nil {
		return d.Now()
	}
	return time.Now()
}
