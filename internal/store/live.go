package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"iter"
	"slices"
)

// LiveTables are the tables whose rows say what is still to be run. The heads of
// all chains together sign the set of those that have not ended: one that is
// added, changed, taken away or put back from outside is not gone on with.
var LiveTables = []string{"calls", "plans"}

// Live reports whether a call may still be run, or how it ended be asked.
func (s CallState) Live() bool { return s != CallSucceeded && s != CallFailed }

// Live reports whether a plan may still go on.
func (s PlanState) Live() bool {
	return s != PlanSucceeded && s != PlanFailed && s != PlanCancelled
}

// Digest returns the hash of what decides what runs when the call goes on: all but
// its lease, its answer and times. An attempt at work writes effects, so that the journal
// of a running call is not in it.
func (r *CallRow) Digest() string {
	h := newRowHash("call")
	h.text(r.Tenant, r.ID, r.Operation, r.Key, r.Fingerprint, r.Principal, r.Actor, r.Agent, r.Origin, r.Parent, r.Plan, r.Session,
		r.Version, r.PackageDigest, r.PolicyVersion, r.InputHash, r.RequestHash, string(r.State), r.Node)
	h.number(r.Attempt, truth(r.Effectful), truth(r.Journalled), int64(len(r.Labels)))
	h.text(r.Labels...)
	if r.Journal != "" && r.State != CallRunning { // calls of earlier releases have none
		h.text(r.Journal)
	}
	return h.sum()
}

// Digest returns the hash of what decides what runs when the plan goes on.
func (r *PlanRow) Digest() string {
	h := newRowHash("plan")
	h.text(r.Tenant, r.ID, r.Key, r.Agent, r.ProposalCall, r.Hash, r.Principal, r.RequestHash, string(r.State), r.Node)
	h.number(int64(len(r.Labels)))
	h.text(r.Labels...)
	return h.sum()
}

// A rowHash hashes the values of a row, each text after its length.
type rowHash struct{ buf []byte }

func newRowHash(what string) *rowHash {
	return &rowHash{append(make([]byte, 0, 1024), "mortise row 1\n"+what+"\n"...)}
}

func (h *rowHash) text(texts ...string) {
	for _, text := range texts {
		h.number(int64(len(text)))
		h.buf = append(h.buf, text...)
	}
}

func (h *rowHash) number(numbers ...int64) {
	for _, n := range numbers {
		h.buf = binary.BigEndian.AppendUint64(h.buf, uint64(n))
	}
}

func (h *rowHash) sum() string {
	sum := sha256.Sum256(h.buf)
	return hex.EncodeToString(sum[:])
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// SetLive makes w what a head signs as its chain's part of the live rows of a table.
func (a *Authority) SetLive(k *Key, table string, w Weight) {
	if a.Live == nil {
		a.Live = map[string]string{}
	}
	a.Live[table] = k.HideWeight(table, w)
}

// KeepLive signs the part that was.
func (a *Authority) KeepLive(was *Authority, table string) {
	if a.Live == nil {
		a.Live = map[string]string{}
	}
	a.Live[table] = was.Live[table]
}

// LiveOf returns the part of a chain whose head says a; known is false for a head
// of an earlier release.
func (a *Authority) LiveOf(k *Key, table string) (w Weight, known bool, err error) {
	if a == nil || a.Live[table] == "" {
		return w, false, nil
	}
	w, err = k.ShowWeight(table, a.Live[table])
	return w, err == nil, err
}

// CheckLive holds the rows that have not ended against what the heads of all chains
// sign, and looks each up as it is looked up when it is used. r is of one moment.
// Where key is nil heads are believed, and nothing is checked.
func CheckLive(ctx context.Context, r Reader, key *Key) error {
	journals, err := liveJournals(ctx, r)
	if err != nil {
		return err
	}
	err = checkLive(ctx, r, key, "calls", r.LiveCalls, func(row *CallRow) (string, error) {
		return row.Digest(), journalHolds(row, journals[[2]string{row.Tenant, row.ID}])
	})
	if err != nil {
		return err
	}
	var plans [][2]string
	err = checkLive(ctx, r, key, "plans", r.LivePlans, func(row *PlanRow) (string, error) {
		plans = append(plans, [2]string{row.Tenant, row.ID})
		return row.Digest(), nil
	})
	if err != nil {
		return err
	}
	for _, plan := range plans {
		if steps, err := r.Steps(ctx, plan[0], plan[1]); err != nil {
			return err
		} else if len(steps) == 0 { // those that are left have a MAC each
			return &AuthorityError{"steps"}
		}
	}
	return nil
}

// liveJournals returns the effects of the calls that have not ended, by tenant and call.
func liveJournals(ctx context.Context, r Reader) (map[[2]string][]EffectRow, error) {
	journals := map[[2]string][]EffectRow{}
	for row, err := range r.LiveEffects(ctx) {
		if err != nil {
			return nil, err
		}
		call := [2]string{row.Tenant, row.CallID}
		journals[call] = append(journals[call], row)
	}
	for _, rows := range journals {
		slices.SortFunc(rows, func(a, b EffectRow) int { return cmp.Compare(a.N, b.N) })
	}
	return journals, nil
}

// checkLive refuses a table of which a row that has not ended is not signed, or not found.
// digest returns what the heads sign of a row, or why the row does not hold.
func checkLive[Row any](ctx context.Context, r Reader, key *Key, table string, all func(context.Context) iter.Seq2[Row, error], digest func(*Row) (string, error)) error {
	signed, err := liveDigests(ctx, r, key, table)
	if err != nil || signed == nil {
		return err
	}
	for row, err := range all(ctx) {
		if err != nil {
			return err
		}
		is, err := digest(&row)
		if !signed[is] {
			return &AuthorityError{table}
		}
		if err != nil {
			return err
		}
	}
	hidden, err := r.HiddenLive(ctx, table)
	if err == nil && hidden > 0 {
		err = &AuthorityError{table}
	}
	return err
}

// checkCall refuses a call that is not one of those that have not ended. One that
// has ended is none to check.
func checkCall(ctx context.Context, r Reader, key *Key, row *CallRow) error {
	if !row.State.Live() {
		return nil
	}
	live, err := liveDigests(ctx, r, key, "calls")
	if err == nil && live != nil && !live[row.Digest()] {
		err = &AuthorityError{"calls"}
	}
	if err != nil || live == nil {
		return err
	}
	return checkJournal(ctx, r, row)
}

// checkJournal refuses a call whose effects are not those that the last attempt left:
// with one missing the next attempt sends it again, and one that was added is not sent.
func checkJournal(ctx context.Context, r Reader, row *CallRow) error {
	if !journalSigned(row) {
		return nil
	}
	effects, err := r.Effects(ctx, row.Tenant, row.ID)
	if err != nil {
		return err
	}
	return journalHolds(row, effects)
}

// journalSigned reports whether a call is one whose journal is signed: it waits, and not
// since an attempt of an earlier release.
func journalSigned(row *CallRow) bool {
	return row.State.Live() && row.State != CallRunning && (row.Journal != "" || row.Attempt == 0)
}

// journalHolds is checkJournal for effects that were read.
func journalHolds(row *CallRow, effects []EffectRow) error {
	if !journalSigned(row) || row.Attempt == 0 && len(effects) == 0 || row.Journal == JournalHash(effects) {
		return nil
	}
	return &AuthorityError{"effects"}
}

// checkPlan is checkCall for plans.
func checkPlan(ctx context.Context, r Reader, key *Key, row *PlanRow) error {
	if !row.State.Live() {
		return nil
	}
	live, err := liveDigests(ctx, r, key, "plans")
	if err == nil && live != nil && !live[row.Digest()] {
		err = &AuthorityError{"plans"}
	}
	return err
}

// liveDigests returns the digests of the rows of a table that have not ended, which
// are those that the heads of all chains together sign; nil where they sign none.
func liveDigests(ctx context.Context, r Reader, key *Key, table string) (map[string]bool, error) {
	if key == nil {
		return nil, nil
	}
	heads, err := r.Chains(ctx)
	if err != nil {
		return nil, err
	}
	var signed, have Weight
	known := len(heads) == 0
	for _, head := range heads {
		if !key.Signed(head) {
			return nil, unsignedHead(head)
		}
		a, err := ParseAuthority(head.Authority)
		if err != nil {
			return nil, err
		}
		part, has, err := a.LiveOf(key, table)
		if err != nil {
			return nil, err
		}
		signed, known = signed.Plus(part), known || has
	}
	if !known { // an earlier release wrote them; see [Tx.SignAuthority]
		return nil, nil
	}
	digests := map[string]bool{}
	for digest, err := range r.LiveDigests(ctx, table) {
		if err != nil {
			return nil, err
		}
		digests[digest] = true
		have = have.Plus(key.Weigh(table, digest))
	}
	if have != signed {
		return nil, &AuthorityError{table}
	}
	return digests, nil
}
