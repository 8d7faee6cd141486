package approval

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

// A Service decides open approvals. It is safe for concurrent use, and several nodes may
// decide on one database: the update of an approval is a compare-and-set on its state.
type Service struct {
	Store Store

	// May returns nil if policy lets that principal decide about what the
	// approval is for.
	May func(ctx context.Context, row *Row, by plugin.Principal) error

	// Wake announces a call or plan that an approval released. It may be nil.
	Wake func(ctx context.Context, kind, tenant, id string)
	// Ended is called for a call that failed because it was denied or its approval
	// expired. It may be nil.
	Ended func(ctx context.Context, tenant, call string)

	// Closed is told of each approval that was answered or has expired. It may be nil.
	Closed func(ctx context.Context, row *Row)

	// People returns what gives all identities of one person one name. Where it is nil, each
	// identity is a person.
	People func(ctx context.Context, tenant string) (nameOf func(identity string) string, err error)

	// TrustAs accepts the answer of the requester under another name as that of a
	// second person. Each such answer is recorded.
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

	same bool // it may come from who asked; see [Service.same]
}

// MaxReason bounds what a person may write, in bytes.
const MaxReason = 4 << 10

// Decide records an answer. Of several concurrent answers one counts; the others get
// approval_used. A refused answer is recorded too.
func (s *Service) Decide(ctx context.Context, a Answer) (*Row, error) {
	if len(a.Reason) > MaxReason {
		return nil, plugin.Errorf(plugin.CodeInputTooLarge, "the reason has %d bytes; at most %d are kept", len(a.Reason), MaxReason)
	}
	row, err := s.find(ctx, a)
	if err != nil {
		return nil, err
	}
	if a.same, err = s.same(ctx, row, a); err != nil {
		return row, err
	}
	if err := s.entitled(ctx, row, a); err != nil {
		return row, s.refused(ctx, row, a, err)
	}
	seen, err := s.subject(ctx, row)
	if err != nil {
		return row, err
	}
	var decided Row
	var refusal error
	err = s.Store.Write(ctx, func(tx ledger.Tx) (err error) {
		decided, refusal, err = s.decide(ctx, tx, a, row.ID, seen)
		return err
	})
	if err != nil {
		return row, err
	}
	if refusal != nil {
		s.ended(ctx, &decided) // it may have expired just now
		return &decided, s.refused(ctx, &decided, a, refusal)
	}
	if decided.State == Approved && s.Wake != nil {
		s.Wake(ctx, decided.SubjectKind, decided.Tenant, decided.SubjectID)
	}
	s.ended(ctx, &decided)
	return &decided, nil
}

// Entitled returns nil where an answer would be taken from who gives it, as things are;
// nothing is decided, and nothing is recorded.
func (s *Service) Entitled(ctx context.Context, row *Row, a Answer) (err error) {
	if a.same, err = s.same(ctx, row, a); err != nil {
		return err
	}
	return s.entitled(ctx, row, a)
}

// find returns the approval that an answer is for.
func (s *Service) find(ctx context.Context, a Answer) (row *Row, err error) {
	if a.Token != "" {
		row, err = s.Store.ApprovalByToken(ctx, a.Tenant, HashToken(a.Token))
	} else {
		row, err = s.Store.Approval(ctx, a.Tenant, a.ID)
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
func (s *Service) entitled(ctx context.Context, row *Row, a Answer) error {
	switch {
	case a.By.ID == "":
		return plugin.Errorf(plugin.CodeUnauthenticated, "the answer names no principal: authenticate, then answer again")
	case a.By.Type == "agent":
		return plugin.Errorf(plugin.CodeApprovalSelf, "%s cannot decide approval %s: an agent approves nothing", a.By.Member(), row.ID)
	case a.Approve && a.By.Member() == row.Requester && !a.Own:
		return plugin.Errorf(plugin.CodeApprovalSelf, "%s asked for approval %s and cannot give it; another principal can, with 'mortise approvals approve %s --as NAME'", a.By.Member(), row.ID, row.ID)
	case a.Approve && !a.Own && !s.TrustAs && a.same:
		return plugin.Errorf(plugin.CodeApprovalSelf, "%s answers as %s, and asked for approval %s as %s: one person under two names is no second approver. Have another user of the operating system approve it, or set approvals.trust_as: true in mortise.yaml to take the name's word",
			known(a.Asker), a.By.Member(), row.ID, row.Requester)
	case a.By.Member() == row.Requester && !a.Approve:
		return nil // the requester may withdraw it
	}
	return s.May(ctx, row, a.By)
}

// deliveredBy separates the two askers of a request that one delivers for another.
const deliveredBy = " by "

// holders separates an asker from who else has seen the secret that proves it is them.
const holders = " from "

// Entrusted returns the asker of a request whose secret by has seen too. What by asks for,
// asker does not approve, and the other way round; others for whom by has made a secret
// are not the same person for that.
func Entrusted(asker, by string) string {
	if by == "" || by == asker {
		return asker
	}
	return asker + holders + by
}

// Linked returns the asker of a request from an account of another system that linker has
// said is principal's. Neither what linker asks for nor what that principal asks for in
// another way can be approved by it, and the other way round.
func Linked(account, linker, principal string) string {
	return Entrusted(Entrusted(account, linker), Principal(principal))
}

// Principal returns the asker who proves to be a principal, as configuration names them, by
// a secret that they alone have seen.
func Principal(name string) string { return "user:" + url.PathEscape(name) }

// Delivered returns the asker of a request that by delivers for asker: both, so that
// neither counts as a second person.
func Delivered(asker, by string) string {
	if by == "" {
		return asker
	}
	return asker + deliveredBy + by
}

// unknown begins an asker of whom it is not known who it is, before the reason.
const unknown = "unknown: "

// Unknown returns an asker of whom it is not known who it is, and why.
func Unknown(why string) string { return unknown + why }

func isUnknown(asker string) bool { return asker == "" || strings.Contains(asker, unknown) }

// sameAsker reports whether an answer may come from the asker of the approval. If one of
// the two is unknown, it may.
func sameAsker(asker, answering string) bool {
	if isUnknown(asker) || isUnknown(answering) {
		return true
	}
	asked := namesOf(append(strings.Split(asker, deliveredBy), asker))
	answers := namesOf([]string{answering})
	return meet(asked.themselves, answers.all) || meet(answers.themselves, asked.all)
}

// same reports whether an answer may come from the person who asked, by whichever of
// their identities.
func (s *Service) same(ctx context.Context, row *Row, a Answer) (bool, error) {
	if s.People == nil || sameAsker(row.Asker, a.Asker) {
		return sameAsker(row.Asker, a.Asker), nil
	}
	nameOf, err := s.People(ctx, row.Tenant)
	if err != nil {
		return false, err
	}
	return sameAsker(renamed(row.Asker, nameOf), renamed(a.Asker, nameOf)), nil
}

// renamed returns an asker with each identity in it named otherwise.
func renamed(asker string, nameOf func(string) string) string {
	delivered := strings.Split(asker, deliveredBy)
	for i, one := range delivered {
		parts := strings.Split(one, holders)
		for k := range parts {
			parts[k] = nameOf(parts[k])
		}
		delivered[i] = strings.Join(parts, holders)
	}
	return strings.Join(delivered, deliveredBy)
}

// names are those who ask, and with them who else has seen their secret.
type names struct{ themselves, all []string }

func namesOf(askers []string) (n names) {
	for _, asker := range askers {
		parts := strings.Split(asker, holders)
		n.themselves = append(n.themselves, parts[0])
		n.all = append(n.all, parts...)
	}
	return n
}

func meet(a, b []string) bool {
	return slices.ContainsFunc(a, func(name string) bool { return slices.Contains(b, name) })
}

// Same reports whether an answer comes from the one who asked, under another name.
func Same(row *Row, a Answer) bool {
	return a.Approve && !a.Own && a.By.Member() != row.Requester && (a.same || sameAsker(row.Asker, a.Asker))
}

func known(asker string) string {
	if uid, isUser := strings.CutPrefix(asker, "os:"); isUser {
		return "user " + uid + " of the operating system"
	}
	if asker == "" {
		return "a caller without an operating system user"
	}
	if why, is := strings.CutPrefix(asker, unknown); is {
		return "a user who cannot be told from others (" + why + ")"
	}
	if name, holder, held := strings.Cut(asker, holders); held {
		return known(name) + ", whose token " + known(holder) + " has seen"
	}
	if name, is := strings.CutPrefix(asker, "user:"); is {
		return "the user " + name
	}
	return asker
}

// decide takes the answer in a transaction. refusal is why it does not count,
// decided how the approval stands now.
func (s *Service) decide(ctx context.Context, tx ledger.Tx, a Answer, id, seen string) (decided Row, refusal, err error) {
	row, err := tx.Approval(ctx, a.Tenant, id)
	if err != nil {
		return decided, nil, err
	}
	if row == nil {
		return decided, nil, fmt.Errorf("approval %s is gone", id)
	}
	at := s.now()
	if row.State == Open && !at.Before(row.ExpiresAt) {
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
	next.State, next.DecidedBy, next.Reason, next.DecidedAt = Denied, a.By.Member(), a.Reason, at
	kind := plugin.EntryApprovalDenied
	if a.Approve {
		next.State, kind = Approved, plugin.EntryApprovalApproved
	}
	won, err := tx.UpdateApproval(Open, next)
	if err != nil {
		return *row, nil, err
	}
	if !won { // another node was faster, and what it decided is there by now
		if row, err = tx.Approval(ctx, a.Tenant, id); err != nil {
			return decided, nil, err
		}
		return *row, closed(row), nil
	}
	if a.Approve { // once no other answer can come in between
		if err := shown(ctx, tx, &next, seen); err != nil {
			return *row, nil, err
		}
	}
	if err := noteOf(tx, kind, &next, a.By.Member(), "", a, at); err != nil {
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
func closed(row *Row) error {
	switch row.State {
	case Open:
		return nil
	case Expired:
		return plugin.Errorf(plugin.CodeApprovalExpired, "approval %s expired at %s; the call has to be made again", row.ID, row.ExpiresAt.Format(time.RFC3339))
	case Voided:
		return plugin.Errorf(plugin.CodeApprovalVoid, "approval %s is void: %s", row.ID, row.Reason)
	default:
		e := plugin.Errorf(plugin.CodeApprovalUsed, "approval %s was decided before: %s by %s", row.ID, past(row), row.DecidedBy)
		e.Details, _ = json2.Marshal(map[string]any{"state": row.State, "decided_by": row.DecidedBy})
		return e
	}
}

// past is what was decided.
func past(row *Row) string {
	if row.State == Denied {
		return "denied"
	}
	return "approved"
}

func denied(row *Row) *plugin.Error {
	e := plugin.Errorf(plugin.CodeApprovalDenied, "%s did not approve it", row.DecidedBy)
	if row.Reason != "" {
		e.Message += ": " + row.Reason
	}
	return e
}

// refused puts on record that an answer did not count, and returns why.
func (s *Service) refused(ctx context.Context, row *Row, a Answer, why error) error {
	e := plugin.AsError(why)
	err := s.Store.Write(ctx, func(tx ledger.Tx) error {
		return noteOf(tx, plugin.EntryApprovalRefused, row, a.By.Member(), string(e.Code)+": "+e.Message, Answer{Asker: a.Asker}, s.now())
	})
	if err != nil {
		return err
	}
	return why
}

// Expire closes the approvals whose time is over, and fails what waited for
// them. It returns how many there were.
func (s *Service) Expire(ctx context.Context) (n int, err error) {
	due, err := s.Store.Approvals(ctx, Filter{State: Open, ExpiresBefore: s.now(), Limit: 100})
	if err != nil {
		return 0, err
	}
	for _, row := range due {
		err := s.Store.Write(ctx, func(tx ledger.Tx) error {
			now, err := tx.Approval(ctx, row.Tenant, row.ID)
			if err != nil || now == nil || now.State != Open {
				return err
			}
			return expire(ctx, tx, *now, s.now())
		})
		if err != nil {
			return n, err
		}
		n++
		row.State = Expired
		s.ended(ctx, &row)
	}
	return n, nil
}

// ended tells of an approval that is over, and of a call that has failed for want of it.
func (s *Service) ended(ctx context.Context, row *Row) {
	if s.Closed != nil && row.State != Open {
		s.Closed(ctx, row)
	}
	if s.Ended != nil && row.SubjectKind == SubjectCall && (row.State == Denied || row.State == Expired) {
		s.Ended(ctx, row.Tenant, row.SubjectID)
	}
}

// expire closes an approval that was not answered in time.
func expire(ctx context.Context, tx ledger.Tx, row Row, at time.Time) error {
	next := row
	next.State, next.DecidedAt = Expired, at
	won, err := tx.UpdateApproval(Open, next)
	if err != nil || !won {
		return err
	}
	if err := note(tx, plugin.EntryApprovalExpired, &next, row.Requester, "", at); err != nil {
		return err
	}
	return fail(ctx, tx, &next, plugin.Errorf(plugin.CodeApprovalExpired, "no approver answered approval %s by %s", row.ID, row.ExpiresAt.Format(time.RFC3339)), at)
}

// release lets go what waited for an approval.
func release(ctx context.Context, tx ledger.Tx, row *Row, at time.Time) error {
	if row.SubjectKind == SubjectPlan {
		return movePlan(ctx, tx, row, planQueued, nil, at)
	}
	return ledger.Release(ctx, tx, row.Tenant, row.SubjectID, at)
}

// fail ends what waited for an approval.
func fail(ctx context.Context, tx ledger.Tx, row *Row, why *plugin.Error, at time.Time) error {
	if row.SubjectKind == SubjectPlan {
		return movePlan(ctx, tx, row, planFailed, why, at)
	}
	return ledger.Refuse(ctx, tx, row.Tenant, row.SubjectID, why, at)
}

// movePlan takes a plan out of its waiting.
func movePlan(ctx context.Context, tx ledger.Tx, row *Row, to planState, why *plugin.Error, at time.Time) error {
	plan, err := tx.Plan(ctx, row.Tenant, row.SubjectID)
	if err != nil || plan == nil || plan.State != planPending {
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

func (s *Service) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}
