package storetest

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/store"
)

// an adds a call with an input and an answer of its own, changed at a time.
func an(t *testing.T, b *bundle, who string, state store.CallState, at time.Time, change func(*store.CallRow)) store.CallRow {
	t.Helper()
	row := newCall()
	row.Principal, row.UpdatedAt, row.State = who, at, state
	request, result := []byte(`{"in":"`+row.ID+`"}`), []byte(`{"out":"`+row.ID+`"}`)
	row.RequestHash, row.ResultHash = canon.Sum(request), canon.Sum(result)
	if change != nil {
		change(&row)
	}
	write(t, b, func(tx store.Tx) error {
		for _, data := range [][]byte{request, result} {
			if _, err := tx.PutBody("t", data, time.Time{}); err != nil {
				return err
			}
		}
		return insert(row)(tx)
	})
	return row
}

// body reports whether there are the bytes of a hash.
func (b *bundle) body(t *testing.T, hash string) bool {
	t.Helper()
	data, err := b.Body(ctx(), "t", hash)
	if err != nil {
		t.Fatal(err)
	}
	return data != nil
}

// remove removes all that is older than epoch, and returns how many of it.
func remove(t *testing.T, b *bundle, kind store.Retained) (sum int64) {
	t.Helper()
	for {
		var got store.Removed
		write(t, b, func(tx store.Tx) (err error) {
			got, err = tx.Remove(kind, store.Removal{Tenant: "t", Before: epoch, At: epoch.Add(time.Hour), Limit: 2})
			return err
		})
		if got.Count == 0 {
			return sum
		}
		sum += got.Count
	}
}

func agedBodies(t *testing.T, b *bundle) {
	old := epoch.Add(-time.Hour)
	var gone []store.CallRow
	for range 5 {
		gone = append(gone, an(t, b, "ada", store.CallSucceeded, old, nil))
	}
	kept := []store.CallRow{
		an(t, b, "ada", store.CallSucceeded, epoch.Add(time.Hour), nil),
		an(t, b, "ada", store.CallPending, old, nil), an(t, b, "ada", store.CallUnknown, old, nil), an(t, b, "ada", store.CallRunning, old, nil),
	}
	parent := kept[3]
	kept = append(kept, an(t, b, "ada", store.CallSucceeded, old, func(r *store.CallRow) { r.Parent = parent.ID }))
	due, err := b.Removable(ctx(), store.RetainBodies, "t", epoch)
	if err != nil || due.Count != 5 || !due.Oldest.Equal(old) || due.Bytes == 0 {
		t.Errorf("due is %+v, %v", due, err)
	}
	if n := remove(t, b, store.RetainBodies); n != 5 {
		t.Errorf("%d calls were removed, want 5", n)
	}
	for _, row := range gone {
		if b.body(t, row.RequestHash) || b.body(t, row.ResultHash) {
			t.Errorf("the bodies of call %s are there", row.ID)
		}
		after, err := b.CallByKey(ctx(), "t", row.Operation, row.Key)
		if err != nil || after == nil || after.RemovedBy != store.RemovedByRetention || after.RemovedAt.IsZero() || after.ResultHash != row.ResultHash {
			t.Errorf("the call is %+v, %v", after, err)
		}
	}
	for _, row := range kept {
		if !b.body(t, row.RequestHash) || !b.body(t, row.ResultHash) {
			t.Errorf("a body of the %s call is gone", row.State)
		}
	}
	checkChains(t, b)
}

func neededBodies(t *testing.T, b *bundle) {
	old := epoch.Add(-time.Hour)
	shared := canon.Sum([]byte("shared"))
	write(t, b, func(tx store.Tx) error { _, err := tx.PutBody("t", []byte("shared"), time.Time{}); return err })
	share := func(r *store.CallRow) { r.ResultHash = shared }
	an(t, b, "ada", store.CallSucceeded, old, share)
	younger := an(t, b, "bob", store.CallSucceeded, epoch.Add(time.Hour), share)
	if n := remove(t, b, store.RetainBodies); n != 1 || !b.body(t, shared) {
		t.Errorf("%d calls were removed; what another has too is there: %t", n, b.body(t, shared))
	}
	write(t, b, func(tx store.Tx) error {
		_, err := tx.EraseCalls(store.Aliases{Tenant: "t", ID: "bob", Name: "bob", Typed: "user::bob", Type: "user"}, epoch, 10)
		return err
	})
	if b.body(t, shared) || b.body(t, younger.RequestHash) {
		t.Error("once no row needs it, it is there")
	}
}

// agedRows removes each other kind.
func agedRows(t *testing.T, b *bundle) {
	old, young := epoch.Add(-time.Hour), epoch.Add(time.Hour)
	own := an(t, b, "ada", store.CallSucceeded, old, nil)
	keyed := an(t, b, "ada", store.CallFailed, old, func(r *store.CallRow) { r.Key = "k:mine" })
	write(t, b, func(tx store.Tx) error {
		for id, at := range map[string]time.Time{"sess_old": old, "sess_new": young} {
			if err := tx.InsertSession(store.SessionRow{Tenant: "t", ID: id, Kind: "investigation", Owner: "ada", State: store.SessionOpen, CreatedAt: at, UpdatedAt: at}); err != nil {
				return err
			}
			if _, _, _, err := tx.InsertArtifact(store.ArtifactRow{Tenant: "t", SessionID: id, ID: "art_1", Name: "a", SHA256: "abc", Size: 3, Metadata: "{}", CreatedAt: at, Promised: true}, nil); err != nil {
				return err
			}
			if err := tx.InsertSession(store.SessionRow{Tenant: "t", ID: "c" + id, Kind: "conversation", State: store.SessionOpen, CreatedAt: at, UpdatedAt: at}); err != nil {
				return err
			}
			if err := tx.InsertConversation(store.ConversationRow{Tenant: "t", SessionID: "c" + id, Agent: "desk", Peer: "ada", CreatedAt: at, UpdatedAt: at, Open: true}); err != nil {
				return err
			}
			if _, err := tx.InsertMessage(store.MessageRow{Tenant: "t", SessionID: "c" + id, Role: "user", Body: []byte(`{"text":"hello"}`), At: at}); err != nil {
				return err
			}
			if _, err := tx.CloseConversation("t", "c"+id, at); err != nil {
				return err
			}
			if _, err := tx.InsertDelivery("t", "desk/mail", id, at); err != nil {
				return err
			}
			if err := tx.PutKV(store.KVRow{KVKey: store.KVKey{Tenant: "t", Owner: ":host", Scope: "cache", Namespace: "cache", Key: id}, Value: []byte("1"), Labels: []string{}, UpdatedAt: at}); err != nil {
				return err
			}
		}
		return nil
	})
	for kind, want := range map[store.Retained]int64{store.RetainCalls: 1, store.RetainSessions: 1, store.RetainConversations: 1, store.RetainDeliveries: 1, store.RetainCache: 1} {
		due, err := b.Removable(ctx(), kind, "t", epoch)
		if err != nil || due.Count != want || !due.Oldest.Equal(old) {
			t.Errorf("of %s %+v is due, %v", kind, due, err)
		}
		if n := remove(t, b, kind); n != want {
			t.Errorf("of %s %d were removed, want %d", kind, n, want)
		}
	}
	if row, err := b.Call(ctx(), "t", own.ID); row != nil || err != nil {
		t.Errorf("the call is there: %v", err)
	}
	if row, err := b.CallByKey(ctx(), "t", keyed.Operation, "k:mine"); row == nil || err != nil {
		t.Errorf("the key of a caller is free: %v", err)
	}
	for id, want := range map[string]bool{"sess_old": false, "sess_new": true, "csess_old": false, "csess_new": true} {
		row, err := b.Session(ctx(), "t", id)
		if err != nil || (row != nil) != want {
			t.Errorf("session %s is there: %t, %v", id, row != nil, err)
		}
	}
	messages, err := b.Messages(ctx(), "t", "csess_old", 0, 0)
	if err != nil || len(messages) > 0 {
		t.Errorf("%d messages are left, %v", len(messages), err)
	}
	if yes, err := b.Delivered(ctx(), "t", "desk/mail", "sess_new"); !yes || err != nil {
		t.Errorf("a young mark is gone: %v", err)
	}
	checkChains(t, b)
}

// erased erases ada, beside whom bob has the same.
func erased(t *testing.T, b *bundle) {
	people := []string{"ada", "bob"}
	calls := map[string]store.CallRow{}
	for _, who := range people {
		calls[who] = an(t, b, who, store.CallSucceeded, epoch, nil)
		write(t, b, func(tx store.Tx) error { return personal(tx, who) })
	}
	// Others are called on their channels what ada is called on hers, or what she is called here.
	strangers := []store.ConversationRow{
		{SessionID: "talk_namesake", Channel: "chat", Peer: "ada@example.org"},
		{SessionID: "talk_typed", Channel: "mail", Peer: "user::ada"},
		{SessionID: "talk_called", Channel: "mail", Peer: "ada"},
	}
	write(t, b, func(tx store.Tx) error {
		for _, c := range strangers {
			if err := tx.InsertSession(store.SessionRow{Tenant: "t", ID: c.SessionID, Kind: "conversation", State: store.SessionOpen, CreatedAt: epoch, UpdatedAt: epoch}); err != nil {
				return err
			}
			c.Tenant, c.Agent, c.CreatedAt, c.UpdatedAt, c.Open = "t", "desk", epoch, epoch, true
			if err := tx.InsertConversation(c); err != nil {
				return err
			}
		}
		return nil
	})
	ada := store.Aliases{Tenant: "t", ID: "ada", Name: "ada", Typed: "user::ada", Type: "user", Peers: []string{store.PeerOn("mail", "ada@example.org")}}
	waits := an(t, b, "ada", store.CallUnknown, epoch, nil)
	if n, err := b.Unsettled(ctx(), ada); n != 1 || err != nil {
		t.Errorf("%d are unsettled, %v", n, err)
	}
	write(t, b, func(tx store.Tx) error {
		if err := tx.PutErasure(store.ErasureRow{Tenant: "t", ID: "e1", Principal: "ada", By: "owner", AskedAt: epoch, Peers: ada.Peers, Counts: "{}"}); err != nil {
			return err
		}
		_, err := tx.EraseAccess(ada)
		return err
	})
	for more := true; more; {
		write(t, b, func(tx store.Tx) error {
			counts, err := tx.EraseRows(ada, 1)
			more = len(counts) > 0
			return err
		})
	}
	write(t, b, func(tx store.Tx) error {
		got, err := tx.EraseSessions(ada, 10)
		if err == nil && got.Count != 2 {
			t.Errorf("%d sessions were erased, want 2", got.Count)
		}
		if err == nil {
			_, err = tx.EraseCalls(ada, epoch, 10)
		}
		return err
	})
	if !b.body(t, waits.RequestHash) || b.body(t, calls["ada"].RequestHash) || !b.body(t, calls["bob"].RequestHash) {
		t.Error("the bodies that are left are others than those of bob and of what is unknown")
	}
	for _, who := range people {
		if n := has(t, b, who); n != map[string]int{"ada": 0, "bob": 8}[who] {
			t.Errorf("%s has %d things, of 8", who, n)
		}
	}
	for _, c := range strangers {
		if s, err := b.Session(ctx(), "t", c.SessionID); s == nil || err != nil {
			t.Errorf("the conversation with %q on %q is %v, %v", c.Peer, c.Channel, s, err)
		}
	}
	if left, err := b.Unerased(ctx(), ada); left["sessions"] != 0 || err != nil {
		t.Errorf("%d sessions are left, %v", left["sessions"], err)
	}
	rows, err := b.Erasures(ctx(), "t", true)
	if err != nil || len(rows) != 1 || !slices.Equal(rows[0].Peers, ada.Peers) || rows[0].Principal != "ada" {
		t.Errorf("the erasures are %+v, %v", rows, err)
	}
	rows[0].DoneAt, rows[0].Peers = epoch, nil
	write(t, b, func(tx store.Tx) error { return tx.PutErasure(rows[0]) })
	if rows, err = b.Erasures(ctx(), "t", true); err != nil || len(rows) != 0 {
		t.Errorf("%d erasures are open, %v", len(rows), err)
	}
	checkChains(t, b)
}

// personal adds what a person has.
func personal(tx store.Tx, who string) error {
	if err := tx.PutToken(store.TokenRow{Tenant: "t", ID: "token-" + who, Hash: who, PrincipalType: "user", PrincipalID: who, CreatedAt: epoch}); err != nil {
		return err
	}
	if err := tx.PutIdentity(store.IdentityRow{Tenant: "t", Provider: "mail", ExternalID: who + "@example.org", PrincipalType: "user", PrincipalID: who, At: epoch}); err != nil {
		return err
	}
	for _, s := range []store.SessionRow{{ID: "sess_" + who, Kind: "investigation", Owner: who}, {ID: "talk_" + who, Kind: "conversation"}} {
		s.Tenant, s.State, s.CreatedAt, s.UpdatedAt = "t", store.SessionOpen, epoch, epoch
		if err := tx.InsertSession(s); err != nil {
			return err
		}
	}
	if err := tx.InsertConversation(store.ConversationRow{Tenant: "t", SessionID: "talk_" + who, Agent: "desk", Channel: "mail", Peer: who + "@example.org", CreatedAt: epoch, UpdatedAt: epoch, Open: true}); err != nil {
		return err
	}
	if err := tx.PutKV(store.KVRow{KVKey: store.KVKey{Tenant: "t", Owner: "notes", Scope: "user::" + who, Namespace: "n", Key: "k"}, Value: []byte("1"), Labels: []string{}, UpdatedAt: epoch}); err != nil {
		return err
	}
	if _, err := tx.InsertKB(store.KBRow{Tenant: "t", ID: "kb-" + who, CreatedBy: who, Labels: []string{}, CreatedAt: epoch}); err != nil {
		return err
	}
	_, err := tx.PutDocument(store.DocumentRow{
		Tenant: "t", KB: "kb-" + who, ID: uuid.NewString(), SourceID: "one", Principal: who, Extraction: "{}", Attributes: "{}", Text: "marmots", TextHash: store.TextHash("marmots"), Chunks: 1, CreatedAt: epoch, UpdatedAt: epoch,
	}, []store.ChunkRow{{N: 1, Text: "marmots of " + who, Terms: "marmots"}})
	return err
}

// has returns how much of that a person has.
func has(t *testing.T, b *bundle, who string) (n int) {
	t.Helper()
	count := func(there bool, err error) {
		if err != nil {
			t.Fatal(err)
		}
		if there {
			n++
		}
	}
	token, err := b.Token(ctx(), "token-"+who)
	count(token != nil, err)
	links, err := b.IdentitiesOf(ctx(), "t", "user", who)
	count(len(links) > 0, err)
	for _, id := range []string{"sess_" + who, "talk_" + who} {
		s, err := b.Session(ctx(), "t", id)
		count(s != nil, err)
	}
	talk, err := b.Conversation(ctx(), "t", "talk_"+who)
	count(talk != nil, err)
	kv, err := b.KV(ctx(), store.KVKey{Tenant: "t", Owner: "notes", Scope: "user::" + who, Namespace: "n", Key: "k"})
	count(kv != nil, err)
	base, err := b.KB(ctx(), "t", "kb-"+who)
	count(base != nil, err)
	documents, err := b.Documents(ctx(), store.DocumentFilter{Tenant: "t", KB: "kb-" + who})
	count(len(documents) > 0, err)
	return n
}

// keptMeanwhile has calls with the same input and answer come while old ones are removed:
// no call is left without what it was made with.
func keptMeanwhile(t *testing.T, b *bundle) {
	const rounds = 40
	request := []byte(`{"in":"the same"}`)
	hash := canon.Sum(request)
	one := func(st store.Store, at time.Time) error {
		row := newCall()
		row.State, row.UpdatedAt, row.RequestHash = store.CallSucceeded, at, hash
		return st.Write(ctx(), func(tx store.Tx) error {
			if err := insert(row)(tx); err != nil {
				return err
			}
			_, err := tx.PutBody("t", request, time.Time{})
			return err
		})
	}
	other := b.another(t)
	var all sync.WaitGroup
	errs := make(chan error, 2*rounds)
	for n := range rounds {
		if err := one(b, epoch.Add(-time.Hour)); err != nil { // nothing else needs it: it is removed while the next comes
			t.Fatal(err)
		}
		all.Go(func() {
			errs <- b.Write(ctx(), func(tx store.Tx) error {
				_, err := tx.Remove(store.RetainBodies, store.Removal{Tenant: "t", Before: epoch, At: epoch, Limit: 10})
				return err
			})
		})
		all.Go(func() { errs <- one(other, epoch.Add(time.Hour)) })
		all.Wait()
		if !b.body(t, hash) {
			t.Fatalf("in round %d the body of a young call is gone", n)
		}
		write(t, b, func(tx store.Tx) error { // back to where nothing is young
			_, err := tx.Remove(store.RetainBodies, store.Removal{Tenant: "t", Before: epoch.Add(2 * time.Hour), At: epoch, Limit: 10})
			return err
		})
		if b.body(t, hash) {
			t.Fatal("the body is there, and no row needs it")
		}
	}
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(fmt.Errorf("a writer: %w", err))
		}
	}
}

func deliveries(t *testing.T, b *bundle) {
	var taken atomic.Int64
	var all sync.WaitGroup
	other := b.another(t)
	for i := range 16 {
		all.Go(func() {
			var fresh bool
			if err := []store.Store{b, other}[i%2].Write(t.Context(), func(tx store.Tx) (err error) {
				fresh, err = tx.InsertDelivery("t", "desk/slack", "id:1", epoch)
				return err
			}); err != nil {
				t.Error(err)
			}
			if fresh {
				taken.Add(1)
			}
		})
	}
	all.Wait()
	if taken.Load() != 1 {
		t.Errorf("a delivery was taken %d times", taken.Load())
	}
	write(t, b, func(tx store.Tx) error {
		fresh, err := tx.InsertDelivery("t", "door/slack", "id:1", epoch)
		if !fresh {
			t.Error("at another place it was not taken")
		}
		return err
	})
	write(t, b, func(tx store.Tx) error {
		for i := range 3 {
			if _, err := tx.InsertDelivery("t", "desk/slack", fmt.Sprint("id:later", i), epoch.Add(time.Hour)); err != nil {
				return err
			}
		}
		return nil
	})
	old := func(before time.Time) bool {
		t.Helper()
		tenants, err := b.DeliveredBefore(t.Context(), before, 10)
		if err != nil {
			t.Fatal(err)
		}
		return slices.Equal(tenants, []string{"t"})
	}
	cut := epoch.Add(time.Minute)
	for i, want := range []bool{true, true, false} { // one at a time
		if old(cut) != want {
			t.Errorf("before %d: there is something old: %t", i, !want)
		}
		write(t, b, func(tx store.Tx) error {
			found, err := tx.DeleteDeliveries("t", cut, 1)
			if found != want {
				t.Errorf("forgetting %d: %t, want %t", i, found, want)
			}
			return err
		})
	}
	for mark, want := range map[string]bool{"id:1": false, "id:later0": true} {
		if there, err := b.Delivered(t.Context(), "t", "desk/slack", mark); err != nil || there != want {
			t.Errorf("%s is remembered: %t, %v", mark, there, err)
		}
	}
}

func outbox(t *testing.T, b *bundle) {
	row := store.OutboxRow{Tenant: "t", ID: "o1", Agent: "desk", Plugin: "audit", Event: "tool.after@v1", Body: []byte(`{"a":1}`), CreatedAt: epoch, NextAt: epoch.Add(time.Second)}
	add := func(row store.OutboxRow, most, waiting int) {
		t.Helper()
		write(t, b, func(tx store.Tx) error {
			n, err := tx.InsertOutbox(row, most)
			if n != waiting {
				t.Errorf("%d wait beside %s, want %d", n, row.ID, waiting)
			}
			return err
		})
	}
	add(row, 1, 0)
	due := func(at time.Time, want ...store.OutboxRow) {
		t.Helper()
		got, err := b.Outbox(t.Context(), store.OutboxFilter{Tenant: "t", Due: at, Limit: 10})
		if err != nil || len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("due at %s: %+v, %v\nwant %+v", at, got, err, want)
		}
	}
	due(epoch)
	due(epoch.Add(time.Second), row)
	// What comes later for the same webhook waits for it, and for others not.
	later, other := row, row
	later.ID, later.NextAt = "o2", epoch
	add(later, 1, 1) // too many
	add(later, 2, 1)
	other.ID, other.Agent, other.NextAt = "o3", "door", epoch
	add(other, 2, 0)
	due(epoch, other)
	due(epoch.Add(time.Second), other, row)
	if got, err := b.Outbox(t.Context(), store.OutboxFilter{Tenant: "t", Agent: "desk", Plugin: "audit"}); err != nil || len(got) != 1 || got[0].ID != "o1" {
		t.Errorf("the next of one webhook: %+v, %v", got, err)
	}
	write(t, b, func(tx store.Tx) error { _, err := tx.DeleteOutbox("t", "o3"); return err })
	next := row
	next.Attempt, next.NextAt, next.Problem = 1, epoch.Add(time.Minute), "it answered 500"
	for _, want := range []bool{true, false} { // a second one tried it at the same time
		write(t, b, func(tx store.Tx) error {
			won, err := tx.UpdateOutbox(0, next)
			if won != want {
				t.Errorf("moving it on: %t, want %t", won, want)
			}
			return err
		})
	}
	due(epoch.Add(time.Second))
	due(epoch.Add(time.Minute), next)
	next.Attempt, next.NextAt = 2, time.Time{}
	write(t, b, func(tx store.Tx) error { _, err := tx.UpdateOutbox(1, next); return err })
	due(epoch.Add(24*time.Hour), later)
	write(t, b, func(tx store.Tx) error {
		found, err := tx.DeleteOutbox("t", "o1")
		if !found {
			t.Error("it was gone")
		}
		return err
	})
}
