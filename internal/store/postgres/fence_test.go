package postgres_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/postgres"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
	"github.com/mortise-dev/mortise/plugin"
)

// lapse ends a node's lease behind its back.
func lapse(t *testing.T, url, node string) {
	t.Helper()
	pgtest.Exec(t, url, "UPDATE nodes SET lease_until = 1 WHERE id = $1", node)
}

func seqs(t *testing.T, st store.Reader) (sum int64) {
	t.Helper()
	chains, err := st.Chains(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, chain := range chains {
		sum += chain.Seq
	}
	return sum
}

func TestLateWriteBounces(t *testing.T) {
	t.Parallel()
	url, here := pgtest.Open(t), postgres.Options{Home: t.TempDir()}
	st, other := open(t, url, here), open(t, url, here)
	bounces := func(what string) {
		t.Helper()
		before := seqs(t, other)
		if err := st.Write(t.Context(), note); !errors.Is(err, store.ErrLapsed) {
			t.Errorf("%s: a late write ended with %v", what, err)
		}
		if got := seqs(t, other); got != before {
			t.Errorf("%s: it left %d entries", what, got-before)
		}
		write(t, st) // it is on the books again
		if err := st.Held(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	nothing := func(store.Tx, store.NodeRow) error { return nil }

	write(t, st)
	lapse(t, url, st.Node())
	bounces("before recovery")

	lapse(t, url, st.Node())
	if n, err := other.Recover(t.Context(), nothing); n != 1 || err != nil {
		t.Fatalf("recovered %d, %v", n, err)
	}
	bounces("it was recovered")

	// The next node takes over the chain, before any node has recovered it.
	lapse(t, url, st.Node())
	third := open(t, url, here)
	write(t, third)
	chains, err := st.Chains(t.Context())
	if err != nil || len(chains) != 2 || chains[1].Node != third.Node() { // the other has the first
		t.Errorf("the chains are %+v, %v, want the second to be the third node's", chains, err)
	}
	bounces("its chain was taken")
	if chains, err := st.Chains(t.Context()); err != nil || len(chains) != 3 {
		t.Errorf("the chains are %+v, %v", chains, err)
	}

	// Closing after a lapse leaves no row behind.
	lapse(t, url, st.Node())
	if err := st.WriteLast(t.Context(), note); !errors.Is(err, store.ErrLapsed) {
		t.Errorf("a late last write ended with %v", err)
	}
	if err := st.WriteLast(t.Context(), note); err != nil {
		t.Error(err)
	}
	rows, err := other.Nodes(t.Context())
	for _, row := range rows {
		if row.ID == st.Node() {
			t.Errorf("it is on the books: %+v", row)
		}
	}
	if err != nil {
		t.Error(err)
	}
}

func TestLeaseIsRenewed(t *testing.T) {
	t.Parallel()
	const length = 3 * time.Second
	url, here := pgtest.Open(t), postgres.Options{Home: t.TempDir()}
	st, other := open(t, url, postgres.Options{Home: here.Home, Lease: length}), open(t, url, here)
	write(t, st)
	leaseEnd := func() time.Time {
		rows, err := other.Nodes(t.Context())
		if err != nil || len(rows) != 1 || rows[0].ID != st.Node() {
			t.Fatalf("the nodes are %+v, %v, want only %s", rows, err, st.Node())
		}
		return rows[0].LeaseUntil
	}
	for range 3 {
		// The lease of a machine that hangs for a moment must not end here, so it is made longer
		// than any renewal makes it.
		pgtest.Exec(t, url, "UPDATE nodes SET lease_until = "+inMicroseconds+" + $2 WHERE id = $1", st.Node(), time.Hour.Microseconds())
		n, err := other.Recover(t.Context(), func(store.Tx, store.NodeRow) error { return nil })
		if n != 0 || err != nil {
			t.Fatalf("recovered %d, %v while it lives", n, err)
		}
		before := time.Now() // the server has the same clock
		testwait.Until(t, "the lease is renewed", func() bool { return leaseEnd().Before(before.Add(30 * time.Minute)) })
		if end := leaseEnd(); end.Before(before.Add(length)) {
			t.Errorf("the lease was renewed until %s after %s, want %s", end, before, length)
		}
	}
}

// inMicroseconds is the time of the server, as the store keeps times.
const inMicroseconds = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

func TestOlderCopyIsNotBuiltUpon(t *testing.T) {
	t.Parallel()
	url := pgtest.Open(t)
	st := open(t, url, postgres.Options{Home: t.TempDir()})
	write(t, st)
	pgtest.Exec(t, url, "CREATE TABLE before AS SELECT * FROM chains")
	write(t, st)
	pgtest.Exec(t, url, "DELETE FROM entries WHERE seq = 2; UPDATE chains SET seq = b.seq, head = b.head, mac = b.mac FROM before b WHERE b.id = chains.id")
	for range 2 {
		if err := st.Write(t.Context(), note); !errors.Is(err, store.ErrTampered) {
			t.Errorf("appending to it ended with %v", err)
		}
	}
}

func TestForgedHeadIsNotBuiltUpon(t *testing.T) {
	t.Parallel()
	for _, forgery := range []string{
		"UPDATE chains SET seq = 3, head = 'x'",
		"UPDATE chains SET seq = 0, head = ''",
	} {
		url, here := pgtest.Open(t), postgres.Options{Home: t.TempDir()}
		st := open(t, url, here)
		write(t, st)
		write(t, st)
		st.Close()
		pgtest.Exec(t, url, forgery)
		if err := open(t, url, here).Write(t.Context(), note); !errors.Is(err, store.ErrTampered) {
			t.Errorf("appending after %q ended with %v", forgery, err)
		}
	}
}

func running(node string) store.CallRow {
	id := uuid.Must(uuid.NewV7()).String()
	return store.CallRow{
		Tenant: "t", ID: id, Operation: "mail.send/send", Key: "c:" + id, State: store.CallRunning, Attempt: 1, Lease: "lease",
		Node: node, Effectful: true, CreatedAt: time.Now(), UpdatedAt: time.Now(),
	}
}

func claim(row store.CallRow) func(store.Tx) error {
	return func(tx store.Tx) error {
		tx.Append(plugin.Entry{At: time.Now(), Tenant: row.Tenant, Kind: plugin.EntryCallStarted, Subject: row.ID, Body: fmt.Appendf(nil, `{"call_id":%q}`, row.ID)})
		prior, err := tx.InsertCall(row)
		if prior != nil {
			err = errors.New("the key was seen")
		}
		return err
	}
}

func settle(row store.CallRow, won *bool) func(store.Tx) error {
	return func(tx store.Tx) (err error) {
		next := row
		next.State, next.Lease = store.CallSucceeded, ""
		*won, err = tx.UpdateCall(row.Fence(), next)
		return err
	}
}
