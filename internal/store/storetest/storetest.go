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
	for _, test := range []struct {
		name string
		run  func(*testing.T, *bundle)
	}{
		{"entries are linked in the order of commits", linksInOrder},
		{"sixteen writers make one chain", oneChain},
		{"handles on one database write at once", handles},
		{"a failing closure leaves no trace and spares its neighbours", failingClosure},
		{"a panic is an error", panickingClosure},
		{"an entry that cannot be kept fails its closure", unstorableEntry},
		{"text that cannot be kept fails its closure", unstorableText},
		{"an error that was passed over still fails the closure", passedOver},
		{"a cancelled caller is not run", cancelledBefore},
		{"a caller cancelled while its closure runs hears the outcome", cancelledDuring},
		{"a key is burnt once", keyRace},
		{"a call comes back as it was put", callRoundTrip},
		{"a lost fence writes nothing", fencing},
		{"calls are listed newest first", callsNewestFirst},
		{"calls are filtered", callFilters},
		{"a call that has not ended can be cancelled", cancelling},
		{"an effect comes back as it was put", effectRoundTrip},
		{"an effect is begun once", effectRace},
		{"an effect needs the fence of its call", effectFence},
		{"the journal of a call ends with it", endedJournal},
		{"an answer after the end of a call is kept", lateEffect},
		{"an approval comes back as it was put", approvalRoundTrip},
		{"an approval is changed in one state only", approvalUpdate},
		{"of many approvers one decides", approversRace},
		{"approvals are filtered", approvalFilters},
		{"a plan comes back as it was put", planRoundTrip},
		{"a plan's key is burnt once", planKeyRace},
		{"a plan's lost fence writes nothing", planFence},
		{"plans are filtered", planFilters},
		{"plans can go on that nothing holds up", plansReady},
		{"policies", policies},
		{"identities", identities},
		{"a session comes back as it was put", sessionRoundTrip},
		{"sessions are listed newest first", sessionsNewestFirst},
		{"an artifact comes back as it was put", artifactRoundTrip},
		{"an artifact is registered once", artifactRace},
		{"artifacts go with their session", artifactsDeleted},
		{"a closed session takes no artifact", closedSession},
		{"labels of artifacts by their ids", labelsOfArtifacts},
		{"bytes of small artifacts are kept with them", bytesOfArtifacts},
		{"a schedule comes back as it was put", scheduleRoundTrip},
		{"a tick comes back as it was put", tickRoundTrip},
		{"of many nodes one makes a tick", tickRace},
		{"values go by the beginning of their keys", kvPrefix},
		{"spenders stay within the limit", spendRace},
		{"what is given back can be spent again", spendGivenBack},
		{"a claim is the first one's", claims},
		{"what plugins keep comes back as it was put", values},
		{"labels only grow", labelsOnlyGrow},
		{"a secret comes back as it was put", secrets},
		{"a key that a secret needs stays", secretKeys},
		{"agents have what they were given", agents},
		{"agents remember", memories},
		{"one has the turn in a conversation", conversations},
		{"messages have their order", messages},
		{"what came in waits for its turn", inbound},
		{"a delivery is taken once", deliveries},
		{"what goes out is tried by one", outbox},
		{"a conversation in which nothing happens can be closed", idle},
		{"a document comes back as it was put", documentRoundTrip},
		{"a vector is of one model and one text", vectorsOfAModel},
		{"passages are found by their words", searched},
		{"a document is replaced as a whole", documentReplaced},
		{"entries are filtered", entryFilters},
		{"newest first is newest first for entries of every writer", newestFirst},
		{"bodies are kept under their hash", bodies},
		{"plugins and packages", plugins},
		{"a snapshot is of one moment", snapshot},
		{"a transaction sees its own writes", ownWrites},
		{"writers are on the books until they close", booksClosed},
		{"a last write registers no node", lastWrite},
		{"books with running calls stay open and are recovered once", recovered},
		{"books with running plans stay open", runningPlan},
		{"close commits what was accepted", closeDrains},
		{"after close nothing is accepted", afterClose},
		{"what was written is there after reopening", reopened},
		{"no row that decides authority can be edited", authorityRows},
		{"rows of approvals that are closed are signed", authorityClosed},
		{"no row of what is still to be run can be edited", liveRows},
		{"several nodes move what is still to be run", liveByMany},
		{"rows of an earlier release that are still to be run are signed once", liveSignedOnce},
		{"sessions and artifacts are what the host wrote", keptRows},
		{"messages, knowledge bases, stored values and memories are what the host wrote", signedKept},
		{"no forged head says that rows bear no signature", noForgedRelease},
		{"rows of a release that did not sign them are signed once", keptSignedOnce},
		{"rows that one release signed are not signed again by the next", keptSignedBefore},
		{"no effect of a call that goes on can be edited", journalOfWaiting},
		{"rows that decide authority need a ledger", authorityWithoutLedger},
		{"rows of an earlier release are signed once", authoritySignedOnce},
		{"several nodes change what decides authority", authorityByMany},
		{"a database of the first schema is brought up to date", upgraded},
	} {
		t.Run(test.name, func(t *testing.T) {
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
