package store

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
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

// A Weight stands for a set of rows, or for one: the sum of what the key makes of
// their digests. To add one and to take one away costs the same, however many
// there are, and in whatever order several chains do it.
type Weight [4]uint64

// Weigh returns what stands for one row of a table. Without the key no digest can be
// found whose weight makes up for that of another.
func (k *Key) Weigh(table, digest string) Weight {
	mac := hmac.New(sha256.New, k[:])
	mac.Write([]byte(liveDomain + table + "\n" + digest))
	return weightOf(mac.Sum(nil))
}

// Plus returns the sum of both.
func (w Weight) Plus(other Weight) (sum Weight) {
	var carry uint64
	for i := range sum {
		sum[i], carry = bits.Add64(w[i], other[i], carry)
	}
	return sum
}

// Minus returns w without other.
func (w Weight) Minus(other Weight) (rest Weight) {
	var borrow uint64
	for i := range rest {
		rest[i], borrow = bits.Sub64(w[i], other[i], borrow)
	}
	return rest
}

func weightOf(raw []byte) (w Weight) {
	for i := range w {
		w[i] = binary.LittleEndian.Uint64(raw[8*i:])
	}
	return w
}

// hideWeight returns a weight as a head has it: under a pad of its own, so that
// what single rows weigh cannot be learnt from one head and the next.
func (k *Key) hideWeight(table string, w Weight) string {
	nonce := make([]byte, 16)
	rand.Read(nonce) // never fails: crypto/rand ends the process rather
	hidden := w.Plus(k.pad(table, nonce))
	for _, part := range hidden {
		nonce = binary.LittleEndian.AppendUint64(nonce, part)
	}
	return hex.EncodeToString(nonce)
}

func (k *Key) showWeight(table, text string) (w Weight, err error) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != 16+32 {
		return w, fmt.Errorf("what a head says of the %s that have not ended cannot be read", table)
	}
	return weightOf(raw[16:]).Minus(k.pad(table, raw[:16])), nil
}

func (k *Key) pad(table string, nonce []byte) Weight {
	mac := hmac.New(sha256.New, k[:])
	mac.Write([]byte(padDomain + table + "\n"))
	mac.Write(nonce)
	return weightOf(mac.Sum(nil))
}

// SetLive makes w what a head signs as its chain's part of the live rows of a table.
func (a *Authority) SetLive(k *Key, table string, w Weight) {
	if a.Live == nil {
		a.Live = map[string]string{}
	}
	a.Live[table] = k.hideWeight(table, w)
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
	w, err = k.showWeight(table, a.Live[table])
	return w, err == nil, err
}

// CheckLive holds the rows that have not ended against what the heads of all chains
// sign, and looks each up as it is looked up when it is used. r is of one moment.
// Where key is nil heads are believed, and nothing is checked.
func CheckLive(ctx context.Context, r Reader, key *Key) error {
	calls, err := liveDigests(ctx, r, key, "calls")
	if err != nil || calls == nil {
		return err
	}
	const page = 500
	for f := (CallFilter{Live: true, Limit: page}); ; {
		rows, err := r.Calls(ctx, f)
		if err != nil {
			return err
		}
		for i := range rows {
			if found, err := callIsFound(ctx, r, &rows[i]); err != nil {
				return err
			} else if !found || !calls[rows[i].Digest()] {
				return &AuthorityError{"calls"}
			}
			if err := checkJournal(ctx, r, &rows[i]); err != nil {
				return err
			}
		}
		if len(rows) < page {
			break
		}
		f.Before = rows[len(rows)-1].ID
	}
	plans, err := liveDigests(ctx, r, key, "plans")
	if err != nil || plans == nil {
		return err
	}
	for f := (PlanFilter{Live: true, Limit: page}); ; {
		rows, err := r.Plans(ctx, f)
		if err != nil {
			return err
		}
		for i := range rows {
			if found, err := planIsFound(ctx, r, &rows[i]); err != nil {
				return err
			} else if !found || !plans[rows[i].Digest()] {
				return &AuthorityError{"plans"}
			}
			if steps, err := r.Steps(ctx, rows[i].Tenant, rows[i].ID); err != nil {
				return err
			} else if len(steps) == 0 { // those that are left have a MAC each
				return &AuthorityError{"steps"}
			}
		}
		if len(rows) < page {
			return nil
		}
		f.Before = rows[len(rows)-1].ID
	}
}

// callIsFound reports whether a call is found as one that is looked up is: by its id,
// and by its key. An index whose bytes were edited hides a row that is there, and its key
// would be free.
func callIsFound(ctx context.Context, r Reader, row *CallRow) (bool, error) {
	byID, err := r.Call(ctx, row.Tenant, row.ID)
	if err != nil || byID == nil {
		return false, err
	}
	byKey, err := r.CallByKey(ctx, row.Tenant, row.Operation, row.Key)
	return byKey != nil && byKey.ID == row.ID, err
}

// planIsFound is callIsFound for plans.
func planIsFound(ctx context.Context, r Reader, row *PlanRow) (bool, error) {
	byID, err := r.Plan(ctx, row.Tenant, row.ID)
	if err != nil || byID == nil {
		return false, err
	}
	byKey, err := r.PlanByKey(ctx, row.Tenant, row.Key)
	return byKey != nil && byKey.ID == row.ID, err
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
	if !row.State.Live() || row.State == CallRunning || row.Journal == "" && row.Attempt > 0 { // an earlier release left the last
		return nil
	}
	effects, err := r.Effects(ctx, row.Tenant, row.ID)
	if err != nil {
		return err
	}
	if row.Attempt == 0 && len(effects) == 0 || row.Journal == JournalHash(effects) {
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
