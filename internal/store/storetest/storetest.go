// Package storetest is what every engine of package store must pass.
package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/chain"
	"github.com/mortise-dev/mortise/plugin"
)

// An Engine is what is tested.
type Engine struct {
	// Open returns a store, new to the caller: within one test over the same
	// database, which is the test's own. The suite closes what it opens.
	Open func(t *testing.T) store.Store

	// Old returns a store over another database, that had the first schema and
	// nothing newer when statements were run in it. The suite closes it.
	Old func(t *testing.T, statements ...string) store.Store

	// Edit returns the test's database as an attacker reaches it who goes past the host,
	// and the directory with its key.
	Edit func(t *testing.T) (db *sql.DB, home string)

	Chains bool // each node that is on the books has a chain of its own
}

// Run runs the suite.
func Run(t *testing.T, engine Engine) {
	for _, test := range suite {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := &bundle{engine: engine}
			b.Store = b.another(t)
			test.run(t, b)
		})
	}
}

// A bundle is a test's database.
type bundle struct {
	store.Store
	engine Engine
	home   string // of the key, where a test asked for it
}

// another opens the database once more.
func (b *bundle) another(t *testing.T) store.Store {
	t.Helper()
	st := b.engine.Open(t)
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return st
}

var epoch = time.Date(2026, 2, 3, 4, 5, 6, 789012000, time.UTC)

func note(subject string) plugin.Entry {
	return plugin.Entry{At: epoch, Tenant: "t", Kind: plugin.EntryCallSucceeded, Subject: subject, Principal: "user:ada", Body: []byte(`{"a": 1.0}`)}
}

func newCall() store.CallRow {
	id := uuid.Must(uuid.NewV7()).String()
	return store.CallRow{
		Tenant: "t", ID: id, Operation: "mail.send/send", Key: "c:" + id, State: store.CallRunning, Attempt: 1, Lease: "lease",
		CreatedAt: epoch, UpdatedAt: epoch,
	}
}

// write writes or ends the test.
func write(t *testing.T, st store.Store, fn func(store.Tx) error) {
	t.Helper()
	if err := st.Write(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func appendNote(subject string) func(store.Tx) error {
	return func(tx store.Tx) error { tx.Append(note(subject)); return nil }
}

func insert(row store.CallRow) func(store.Tx) error {
	return func(tx store.Tx) error {
		prior, err := tx.InsertCall(row)
		if prior != nil {
			return fmt.Errorf("the key of call %s was seen", row.ID)
		}
		return err
	}
}

func entries(t *testing.T, r store.Reader, f store.EntryFilter) []plugin.Entry {
	t.Helper()
	var got []plugin.Entry
	for e, err := range r.Entries(t.Context(), f) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	return got
}

// checkChains walks the chains and returns them, one after the other.
func checkChains(t *testing.T, st store.Store) []plugin.Entry {
	t.Helper()
	chains := entries(t, st, store.EntryFilter{})
	last := make(map[int64]plugin.Entry)
	for _, e := range chains {
		before := last[e.Chain]
		if e.Seq != before.Seq+1 || e.Prev != before.Hash || e.Hash != chain.Hash(&e) {
			t.Fatalf("entry %d of chain %d does not follow entry %d", e.Seq, e.Chain, before.Seq)
		}
		last[e.Chain] = e
	}
	heads, err := st.Chains(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(heads) != len(last) {
		t.Fatalf("%d chains have entries and %d have heads", len(last), len(heads))
	}
	for _, head := range heads {
		if e := last[head.ID]; head.Seq != e.Seq || head.Head != e.Hash || head.MAC == "" {
			t.Fatalf("a head is %+v, and the last entry is %d with hash %s", head, e.Seq, e.Hash)
		}
	}
	return chains
}

func ctx() context.Context { return context.Background() }
