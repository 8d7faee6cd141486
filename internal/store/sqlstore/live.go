package sqlstore

import (
	"context"
	"fmt"
	"iter"

	"github.com/mortise-dev/mortise/internal/store"
)

// liveRows say which rows of [store.LiveTables] have not ended, in the words of
// their index.
var liveRows = map[string]string{
	"calls": "state NOT IN ('succeeded', 'failed')",
	"plans": "state NOT IN ('succeeded', 'failed', 'cancelled')",
}

// LiveDigests implements [store.Reader].
func (r *reader) LiveDigests(ctx context.Context, table string) iter.Seq2[string, error] {
	where, known := liveRows[table]
	if !known {
		return func(yield func(string, error) bool) {
			yield("", fmt.Errorf("the live rows of %s are not signed", table))
		}
	}
	q := selectFrom("digest", table)
	q.where(where)
	return rows(store.Everywhere(ctx), r, q, func(rows *record, digest *string) error { return rows.Scan(digest) })
}

// LiveCalls implements [store.Reader].
func (r *reader) LiveCalls(ctx context.Context) iter.Seq2[store.CallRow, error] {
	q := selectFrom(callColumns, "calls")
	q.where(liveRows["calls"])
	return rows(store.Everywhere(ctx), r, q, scanCall)
}

// LivePlans implements [store.Reader].
func (r *reader) LivePlans(ctx context.Context) iter.Seq2[store.PlanRow, error] {
	q := selectFrom(planColumns, "plans")
	q.where(liveRows["plans"])
	return rows(store.Everywhere(ctx), r, q, scanPlan)
}

// unique are the columns by which a row of a table is looked up besides its id.
var unique = map[string]string{"calls": "f.operation = t.operation AND f.key = t.key", "plans": "f.key = t.key"}

// HiddenLive implements [store.Reader]. Each row is looked up by a correlated subquery,
// which an engine answers from the unique index, and each asks for a column that the
// index does not have.
func (r *reader) HiddenLive(ctx context.Context, table string) (int64, error) {
	q := selectFrom("count(*)", table+" AS t")
	q.where(liveRows[table])
	q.where("(COALESCE((SELECT f.key FROM " + table + " AS f WHERE f.tenant = t.tenant AND f.id = t.id), '') <> t.key" +
		" OR COALESCE((SELECT f.id FROM " + table + " AS f WHERE f.tenant = t.tenant AND " + unique[table] + "), '') <> t.id)")
	n, err := one(rows(store.Everywhere(ctx), r, q, func(rows *record, n *int64) error { return rows.Scan(n) }))
	if err != nil || n == nil {
		return 0, err
	}
	return *n, nil
}

// moved notes that a row whose digest was one is now another, if it is still live.
func (t *tx) moved(table string, wasLive bool, was string, isLive bool, is string) error {
	if !wasLive {
		was = ""
	}
	if !isLive {
		is = ""
	}
	return t.weigh(table, was, is)
}

// weigh notes that the transaction takes one row away and adds another; "" is none.
func (t *tx) weigh(table, was, is string) error {
	if was == is {
		return nil
	}
	key, err := t.signer()
	if err != nil {
		return t.fail(err)
	}
	if t.delta == nil {
		t.delta = map[string]store.Weight{}
	}
	delta := t.delta[table]
	if was != "" {
		delta = delta.Minus(key.Weigh(table, was))
	}
	if is != "" {
		delta = delta.Plus(key.Weigh(table, is))
	}
	t.delta[table] = delta
	return nil
}

// live gives next the part of this chain: what own has, and what the transaction adds.
func (t *tx) live(next, own *store.Authority) error {
	key, err := t.signer()
	if err != nil {
		return err
	}
	for _, table := range store.LiveTables {
		part, known, err := own.LiveOf(key, table)
		if err != nil {
			return err
		}
		if delta, changed := t.delta[table]; changed || !known {
			next.SetLive(key, table, part.Plus(delta))
		} else {
			next.KeepLive(own, table)
		}
	}
	return nil
}

// signEarlier signs what an earlier release left, as it is: the rows that have not
// ended, which become this chain's part, and those that bear a signature each.
// Approvals that were used bore one before, where checked. What that release signed
// is not signed again: it may have been changed since.
func (t *tx) signEarlier(next, own *store.Authority, checked bool) error {
	key, err := t.signer()
	if err != nil {
		return err
	}
	ctx := context.Background()
	life, err := store.UnsignedLife(ctx, &t.reader, key)
	if err != nil {
		return err
	}
	if err := t.signRows(key); err != nil {
		return err
	}
	if !life {
		return t.live(next, own)
	}
	calls, err := t.reader.Calls(ctx, store.CallFilter{Live: true})
	if err != nil {
		return err
	}
	var sum store.Weight
	for i := range calls {
		digest := calls[i].Digest()
		sum = sum.Plus(key.Weigh("calls", digest))
		if _, err := t.Exec(`UPDATE calls SET digest = ? WHERE tenant = ? AND id = ?`, digest, calls[i].Tenant, calls[i].ID); err != nil {
			return err
		}
	}
	next.SetLive(key, "calls", sum)
	plans, err := t.reader.Plans(ctx, store.PlanFilter{Live: true})
	if err != nil {
		return err
	}
	sum = store.Weight{}
	for i := range plans {
		digest := plans[i].Digest()
		sum = sum.Plus(key.Weigh("plans", digest))
		if _, err := t.Exec(`UPDATE plans SET digest = ? WHERE tenant = ? AND id = ?`, digest, plans[i].Tenant, plans[i].ID); err != nil {
			return err
		}
	}
	next.SetLive(key, "plans", sum)
	if err := t.signApprovals(key, checked); err != nil {
		return err
	}
	return t.signKept(key)
}

func (t *tx) signApprovals(key *store.Key, checked bool) error {
	rows, err := t.reader.Approvals(context.Background(), store.ApprovalFilter{})
	if err != nil {
		return err
	}
	for _, row := range rows {
		if !row.State.Closed() {
			continue
		}
		if checked && row.State == store.ApprovalConsumed {
			if err := store.CheckClosed(key, row); err != nil {
				return err
			}
			continue
		}
		// Not by Exec: those that the head signs are not touched.
		if _, err := t.writer.exec(`UPDATE approvals SET mac = ? WHERE tenant = ? AND id = ?`, store.SignClosed(key, row), row.Tenant, row.ID); err != nil {
			return t.fail(err)
		}
	}
	return nil
}

// signKept signs sessions and artifacts.
func (t *tx) signKept(key *store.Key) error {
	ctx := context.Background()
	sessions, err := t.reader.Sessions(ctx, store.SessionFilter{})
	if err != nil {
		return err
	}
	for i := range sessions {
		s := &sessions[i]
		if _, err := t.Exec(setSessionMAC, key.SignKept(s.Digest()), s.Tenant, s.ID); err != nil {
			return err
		}
		artifacts, err := t.reader.Artifacts(ctx, s.Tenant, s.ID)
		if err != nil {
			return err
		}
		for j := range artifacts {
			a := &artifacts[j]
			if _, err := t.Exec(`UPDATE artifacts SET mac = ? WHERE tenant = ? AND session_id = ? AND id = ?`, key.SignKept(a.Digest()), a.Tenant, a.SessionID, a.ID); err != nil {
				return err
			}
		}
	}
	return nil
}
