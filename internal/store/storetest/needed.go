package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/store"
)

// BodyColumns are the columns that have the hash of a body, and OtherHashes those that have another
// hash. A column of the schema with "hash" in its name is in one of them.
var (
	BodyColumns = []string{"approvals.preview_hash", "bodies.hash", "calls.request_hash", "calls.result_hash", "effects.response_hash",
		"entry_bodies.hash", "plans.request_hash"}
	OtherHashes = []string{"approvals.binding_hash", "approvals.token_hash", "browser_sessions.hash", "calls.input_hash", "effects.request_hash",
		"entries.hash", "kb_documents.content_hash", "kb_documents.text_hash", "plans.plan_hash", "tokens.hash", "users.invite_hash"}
)

// A referrer puts something that needs the body of a hash: it is of a principal, and was last changed at a time.
type referrer struct {
	column string
	put    func(tx store.Tx, who, hash string, at time.Time) error
}

var referrers = []referrer{
	{"calls.request_hash", func(tx store.Tx, who, hash string, at time.Time) error {
		return ended(tx, who, at, func(r *store.CallRow) { r.RequestHash = hash }, nil)
	}},
	{"calls.result_hash", func(tx store.Tx, who, hash string, at time.Time) error {
		return ended(tx, who, at, func(r *store.CallRow) { r.ResultHash = hash }, nil)
	}},
	{"effects.response_hash", func(tx store.Tx, who, hash string, at time.Time) error {
		return ended(tx, who, at, nil, func(r store.CallRow) error {
			effect := newEffect(r, "sha256:q")
			effect.State, effect.ResponseHash = store.EffectDone, hash
			_, _, _, err := tx.InsertEffect(r.Fence(), effect)
			return err
		})
	}},
	{"approvals.preview_hash", func(tx store.Tx, who, hash string, at time.Time) error {
		return ended(tx, who, at, nil, func(r store.CallRow) error { return previewed(tx, store.SubjectCall, r.ID, hash) })
	}},
	{"approvals.preview_hash of a plan", func(tx store.Tx, who, hash string, at time.Time) error {
		return endedPlan(tx, who, at, "", func(id string) error { return previewed(tx, store.SubjectPlan, id, hash) })
	}},
	{"plans.request_hash", func(tx store.Tx, who, hash string, at time.Time) error {
		return endedPlan(tx, who, at, hash, func(string) error { return nil })
	}},
	{"entry_bodies.hash", func(tx store.Tx, who, hash string, at time.Time) error {
		return ended(tx, who, at, nil, func(r store.CallRow) error {
			return tx.NameBody(store.EntryBodyRow{Tenant: "t", Hash: hash, Subject: r.ID, Principal: who})
		})
	}},
	{"entry_bodies.hash of no call, until a time", func(tx store.Tx, who, hash string, at time.Time) error {
		return tx.NameBody(store.EntryBodyRow{Tenant: "t", Hash: hash, Subject: uuid.NewString(), Principal: who, ExpiresAt: at})
	}},
}

func ended(tx store.Tx, who string, at time.Time, change func(*store.CallRow), while func(store.CallRow) error) error {
	row := newCall()
	row.Principal, row.UpdatedAt = who, at
	if change != nil {
		change(&row)
	}
	if _, err := tx.InsertCall(row); err != nil {
		return err
	}
	if while != nil {
		if err := while(row); err != nil {
			return err
		}
	}
	done := row
	done.State, done.Lease = store.CallSucceeded, ""
	_, err := tx.UpdateCall(row.Fence(), done)
	return err
}

func endedPlan(tx store.Tx, who string, at time.Time, hash string, while func(id string) error) error {
	row := newPlan()
	row.Principal, row.State, row.UpdatedAt, row.RequestHash = who, store.PlanSucceeded, at, hash
	if _, err := tx.InsertPlan(row, []store.StepRow{{N: 1, StepID: "only", Operation: "mail/send"}}); err != nil {
		return err
	}
	return while(row.ID)
}

func previewed(tx store.Tx, kind, subject, hash string) error {
	row := newApproval()
	row.SubjectKind, row.SubjectID, row.PreviewHash, row.State = kind, subject, hash, store.ApprovalDenied
	return tx.InsertApproval(row)
}

// neededByOthers has each kind of thing share its content with one of each kind that stays. Whatever
// removes the first, the content goes with the last.
func neededByOthers(t *testing.T, b *bundle) {
	old, young := epoch.Add(-time.Hour), epoch.Add(2*time.Hour)
	shared, alone := map[string]string{}, map[string]string{} // hashes, by who needs them
	for _, goes := range referrers {
		alone[goes.column] = share(t, b, goes.column, map[string]referrer{"ada": goes}, old, young)
		for _, stays := range referrers {
			name := goes.column + ", and " + stays.column
			shared[name] = share(t, b, name, map[string]referrer{"ada": goes, "bob": stays}, old, young)
		}
	}
	for _, column := range BodyColumns {
		if column != "bodies.hash" && !slices.ContainsFunc(referrers, func(r referrer) bool { return strings.HasPrefix(r.column, column) }) {
			t.Errorf("nothing in the table needs a body by %s", column)
		}
	}
	check := func(when string, hashes map[string]string, want bool) {
		t.Helper()
		for name, hash := range hashes {
			if got := b.body(t, hash); got != want {
				t.Errorf("after %s, what %s needs is there: %t, want %t", when, name, got, want)
			}
		}
	}
	check("nothing", shared, true)
	check("nothing", alone, true)
	for _, kind := range []store.Retained{store.RetainBodies, store.RetainCalls} {
		remove(t, b, kind)
		check("retention of "+string(kind), shared, true)
	}
	for more := true; more; {
		write(t, b, func(tx store.Tx) error {
			got, err := tx.RemoveExpired("t", epoch, 3)
			more = got.Count > 0
			return err
		})
	}
	check("expiry", shared, true)
	check("retention and expiry", alone, false)
	eraseAll(t, b, "ada")
	check("the erasure of the other", shared, true)
	eraseAll(t, b, "bob")
	check("both erasures", shared, false)
	checkChains(t, b)
}

// share keeps bytes that things of some people need; those of ada are old.
func share(t *testing.T, b *bundle, name string, of map[string]referrer, old, young time.Time) string {
	t.Helper()
	data := fmt.Appendf(nil, "what %s needs", name)
	write(t, b, func(tx store.Tx) error {
		for who, r := range of {
			at := map[string]time.Time{"ada": old, "bob": young}[who]
			if _, err := tx.PutBody("t", data, at); err != nil {
				return err
			}
			if err := r.put(tx, who, canon.Sum(data), at); err != nil {
				return err
			}
		}
		return nil
	})
	return canon.Sum(data)
}

// eraseAll erases what a person has, a row at a time, until the store counts nothing that is left.
func eraseAll(t *testing.T, b *bundle, name string) {
	t.Helper()
	who := store.Aliases{Tenant: "t", ID: name, Name: name, Typed: "user::" + name, Type: "user"}
	steps := []func(tx store.Tx) (store.Removed, error){
		func(tx store.Tx) (store.Removed, error) { return tx.EraseCalls(who, epoch, 5) },
		func(tx store.Tx) (store.Removed, error) { return tx.ErasePlans(who, epoch, 5) },
		func(tx store.Tx) (store.Removed, error) { return tx.EraseModels(who, 5) },
	}
	for _, step := range steps {
		for more := true; more; {
			write(t, b, func(tx store.Tx) error {
				got, err := step(tx)
				more = got.Count > 0
				return err
			})
		}
	}
	if left, err := b.Unerased(ctx(), who); store.AnyLeft(left) || err != nil {
		t.Errorf("of %s %v is left, %v", name, left, err)
	}
}
