// Package storetest is what every engine of package store must pass.
package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// Run runs the suite. Within one test every call of open must return a store,
// new to the caller, over the same database; a test has a database of its own.
// The suite closes what it opens.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, *bundle)
	}{
		{"entries are linked in the order of commits", linksInOrder},
		{"sixteen writers make one chain", oneChain},
		{"two handles on one database make one chain", twoHandles},
		{"a failing closure leaves no trace and spares its neighbours", failingClosure},
		{"a panic is an error", panickingClosure},
		{"an entry that cannot be kept fails its closure", unstorableEntry},
		{"an error that was passed over still fails the closure", passedOver},
		{"a cancelled caller is not run", cancelledBefore},
		{"a caller cancelled while its closure runs hears the outcome", cancelledDuring},
		{"a key is burnt once", keyRace},
		{"a call comes back as it was put", callRoundTrip},
		{"a lost fence writes nothing", fencing},
		{"calls are listed newest first", callsNewestFirst},
		{"entries are filtered", entryFilters},
		{"bodies are kept under their hash", bodies},
		{"plugins and packages", plugins},
		{"a snapshot is of one moment", snapshot},
		{"a transaction sees its own writes", ownWrites},
		{"writers are on the books until they close", booksClosed},
		{"a last write registers nobody", lastWrite},
		{"books with running calls stay open and are recovered once", recovered},
		{"close commits what was accepted", closeDrains},
		{"after close nothing is accepted", afterClose},
		{"what was written is there after reopening", reopened},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := &bundle{open: open}
			b.Store = b.another(t)
			test.run(t, b)
		})
	}
}

// A bundle is a test's database.
type bundle struct {
	store.Store
	open func(t *testing.T) store.Store
}

// another opens the database once more.
func (b *bundle) another(t *testing.T) store.Store {
	t.Helper()
	st := b.open(t)
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

// checkChain walks the chain and returns it.
func checkChain(t *testing.T, st store.Store) []plugin.Entry {
	t.Helper()
	chain := entries(t, st, store.EntryFilter{})
	var last plugin.Entry
	for _, e := range chain {
		if e.Seq != last.Seq+1 || e.Prev != last.Hash || e.Hash != store.Hash(&e) {
			t.Fatalf("entry %d does not follow entry %d", e.Seq, last.Seq)
		}
		last = e
	}
	heads, err := st.Chains(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(chain) > 0 && (len(heads) != 1 || heads[0].Seq != last.Seq || heads[0].Head != last.Hash || heads[0].MAC == "") {
		t.Fatalf("heads are %+v, and the last entry is %d with hash %s", heads, last.Seq, last.Hash)
	}
	return chain
}

func ctx() context.Context { return context.Background() }
