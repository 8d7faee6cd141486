package storetest

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// passing are the columns of what is still to be run that decide nothing of it, or
// that an edit of finds nothing to run.
var passing = map[string][]string{
	"calls": {"lease", "wake_at", "deadline", "result_hash", "code", "schema_version", "cancelled", "created_at", "updated_at", "removed_at", "removed_by"},
	"plans": {"lease", "code", "message", "created_at", "updated_at", "removed_at"},
}

// live checks in one snapshot what is still to be run.
func live(t *testing.T, b *bundle) error {
	t.Helper()
	key, err := store.ReadKey(b.home)
	if err != nil {
		t.Fatal(err)
	}
	return b.Snapshot(t.Context(), func(r store.Reader) error { return store.CheckLive(t.Context(), r, key) })
}

// toRun returns what stands in the way of going on with a call and a plan.
func toRun(t *testing.T, b *bundle, call, plan string) map[string]error {
	t.Helper()
	st := store.Authorised(b, b.home)
	_, calls := st.CallToRun(t.Context(), "t", call)
	_, plans := st.PlanToRun(t.Context(), "t", plan)
	return map[string]error{"calls": calls, "plans": plans}
}

// moved moves a call through states, each in a transaction of its own.
func moved(t *testing.T, st store.Store, row store.CallRow, states ...store.CallState) store.CallRow {
	t.Helper()
	for _, state := range states {
		next := row
		next.State = state
		if state == store.CallRunning {
			next.Attempt++
			next.Node, next.Lease = "node", "lease again"
		}
		write(t, st, func(tx store.Tx) error {
			won, err := tx.UpdateCall(row.Fence(), next)
			if err == nil && !won {
				err = fmt.Errorf("the call is not %s", row.State)
			}
			tx.Append(note(string(state)))
			return err
		})
		row = next
	}
	return row
}

// ran inserts a call and a plan that have ended and some that have not.
func ran(t *testing.T, b *bundle) (call store.CallRow, plan store.PlanRow) {
	t.Helper()
	call = newCall()
	call.State, call.Attempt, call.Lease, call.Labels = store.CallPending, 0, "", []string{"untrusted"}
	write(t, b, insert(call))
	for _, state := range []store.CallState{store.CallPending, store.CallQueued, store.CallInProgress, store.CallUnknown} {
		other := newCall()
		other.State = state
		write(t, b, insert(other))
	}
	plan = newPlan()
	insertPlan(t, b, plan)
	insertPlan(t, b, newPlan())
	return call, plan
}

// What has ended, and what there never was, is not gone on with, and neither is what
// was made another: the whole of what is still to be run is signed.
func liveRows(t *testing.T, b *bundle) {
	db, home := b.engine.Edit(t)
	b.home = home
	call, plan := ran(t, b)
	ids := map[string]string{"calls": call.ID, "plans": plan.ID}
	ready := map[string]string{"calls": "queued", "plans": "queued"}
	check := func(what string) {
		t.Helper()
		if err := errors.Join(live(t, b), toRun(t, b, call.ID, plan.ID)["calls"], toRun(t, b, call.ID, plan.ID)["plans"]); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	check("as the host wrote it")
	forged := func(table, what string) {
		t.Helper()
		var found *store.AuthorityError
		if err := toRun(t, b, call.ID, plan.ID)[table]; !errors.As(err, &found) || found.Table != table {
			t.Errorf("%s: it may go on: %v", what, err)
		}
		if err := live(t, b); !errors.As(err, &found) || found.Table != table {
			t.Errorf("%s: it is not found: %v", what, err)
		}
	}
	for _, table := range store.LiveTables {
		kept := "kept_live_" + table
		edit(t, db, fmt.Sprintf("CREATE TABLE %s AS SELECT * FROM %s", kept, table))
		back := func() {
			t.Helper()
			edit(t, db, "DELETE FROM "+table)
			edit(t, db, fmt.Sprintf("INSERT INTO %s SELECT * FROM %s", table, kept))
			check(table + " put back")
		}
		names, number := signedColumns(t, db, table)
		for _, name := range names {
			if slices.Contains(passing[table], name) || name == "tenant" || name == "id" {
				continue
			}
			value := changedValue(b, table, name, number[name])
			if name == "labels" {
				value = "'[]'"
				if table == "plans" {
					value = `'["private"]'`
				}
			}
			if name == "state" {
				value = "'running'"
			}
			edit(t, db, fmt.Sprintf(`UPDATE %s SET "%s" = %s WHERE id = '%s'`, table, name, value, ids[table]))
			forged(table, table+"."+name)
			back()
		}
		edit(t, db, fmt.Sprintf(`DELETE FROM %s WHERE id <> '%s'`, table, ids[table]))
		forged(table, table+": others taken away")
		back()
	}
	// Now they end, and are put back to each state that they were in, digests and all.
	for _, table := range store.LiveTables {
		edit(t, db, fmt.Sprintf("DELETE FROM kept_live_%s", table))
		edit(t, db, fmt.Sprintf("INSERT INTO kept_live_%s SELECT * FROM %s", table, table))
	}
	call = moved(t, b, call, store.CallQueued, store.CallRunning)
	check("as it runs")
	call = moved(t, b, call, store.CallSucceeded)
	next := plan
	next.State = store.PlanSucceeded
	write(t, b, func(tx store.Tx) error { _, err := tx.UpdatePlan(plan.Fence(), next); return err })
	check("once they ended")
	for _, table := range store.LiveTables {
		edit(t, db, fmt.Sprintf("CREATE TABLE now_live_%s AS SELECT * FROM %s", table, table))
		edit(t, db, fmt.Sprintf("DELETE FROM %s WHERE id = '%s'", table, ids[table]))
		edit(t, db, fmt.Sprintf("INSERT INTO %s SELECT * FROM kept_live_%s WHERE id = '%s'", table, table, ids[table]))
		forged(table, table+": put back to what it was")
		edit(t, db, fmt.Sprintf("UPDATE %s SET state = '%s' WHERE id = '%s'", table, ready[table], ids[table]))
		forged(table, table+": ended, and queued again")
		edit(t, db, "DELETE FROM "+table)
		edit(t, db, fmt.Sprintf("INSERT INTO %s SELECT * FROM now_live_%s", table, table))
		check(table + ", as they ended")
	}
	washed(t, b, db, call)
}

// washed puts a call that has ended back to a state from which the host itself moves
// it on: that does not make it one that the host queued.
func washed(t *testing.T, b *bundle, db *sql.DB, call store.CallRow) {
	t.Helper()
	edit(t, db, fmt.Sprintf("UPDATE calls SET state = 'running', node = 'dead' WHERE id = '%s'", call.ID))
	row, err := b.Call(t.Context(), "t", call.ID)
	if err != nil {
		t.Fatal(err)
	}
	moved(t, b, *row, store.CallQueued)
	if _, err := store.Authorised(b, b.home).CallToRun(t.Context(), "t", call.ID); !errors.Is(err, store.ErrTampered) {
		t.Errorf("a call that the host queued again after an edit may go on: %v", err)
	}
}

// Several nodes move calls at once, and together they sign what is left.
func liveByMany(t *testing.T, b *bundle) {
	_, home := b.engine.Edit(t)
	b.home = home
	nodes := []store.Store{b, b.another(t), b.another(t)}
	var all sync.WaitGroup
	for i, st := range nodes {
		all.Go(func() {
			for n := range 8 {
				row := newCall()
				row.State, row.Attempt, row.Lease = store.CallQueued, 0, ""
				if err := nodes[(i+n)%len(nodes)].Write(t.Context(), func(tx store.Tx) error { _, err := tx.InsertCall(row); return err }); err != nil {
					t.Error(err)
					return
				}
				next := row
				next.State, next.Attempt, next.Lease, next.Node = store.CallRunning, 1, "l", st.Node()
				ended := next
				if ended.State = store.CallSucceeded; n%3 == 0 {
					ended.State = store.CallUnknown
				}
				for _, step := range [][2]store.CallRow{{row, next}, {next, ended}} {
					if err := st.Write(t.Context(), func(tx store.Tx) error { _, err := tx.UpdateCall(step[0].Fence(), step[1]); return err }); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	if err := live(t, b); err != nil {
		t.Error(err)
	}
}

// What an earlier release left to be run is signed once, and what it left of
// approvals, sessions and artifacts with it.
func liveSignedOnce(t *testing.T, b *bundle) {
	db, home := b.engine.Edit(t)
	b.home = home
	call, plan := ran(t, b)
	asked := newApproval()
	asked.State = store.ApprovalDenied
	write(t, b, func(tx store.Tx) error { return tx.InsertApproval(asked) })
	insertSessions(t, b, newSession("sess_1"))
	register(t, b, newArtifact("sess_1", "art_1"))
	write(t, b, appendNote("one"))
	key, err := store.ReadKey(home)
	if err != nil {
		t.Fatal(err)
	}
	heads, err := b.Chains(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"calls", "plans"} {
		edit(t, db, fmt.Sprintf("UPDATE %s SET digest = ''", table))
	}
	for _, table := range []string{"approvals", "sessions", "artifacts"} {
		edit(t, db, fmt.Sprintf("UPDATE %s SET mac = ''", table))
	}
	for _, head := range heads {
		a, err := store.ParseAuthority(head.Authority)
		if err != nil {
			t.Fatal(err)
		}
		a.Live = nil
		delete(a.Tables, "kv")
		head.Authority = a.String()
		edit(t, db, fmt.Sprintf("UPDATE chains SET authority = '%s', mac = '%s' WHERE id = %d", head.Authority, key.Sign(head), head.ID))
	}
	st := store.Authorised(b, home)
	readable := func() error {
		_, approvals := st.Approvals(t.Context(), store.ApprovalFilter{Tenant: "t"})
		_, sessions := st.Sessions(t.Context(), store.SessionFilter{Tenant: "t"})
		_, artifacts := st.Artifacts(t.Context(), "t", "sess_1")
		failed := toRun(t, b, call.ID, plan.ID)
		return errors.Join(approvals, sessions, artifacts, failed["calls"], failed["plans"], live(t, b))
	}
	if none, err := store.Unsigned(t.Context(), b, nil); !none || err != nil || readable() != nil {
		t.Fatalf("unsigned: %t, %v, %v", none, err, readable())
	}
	before := len(checkChains(t, b))
	for range 2 {
		write(t, b, func(tx store.Tx) error { return tx.SignAuthority() })
	}
	entries := checkChains(t, b)
	if none, err := store.Unsigned(t.Context(), b, nil); none || err != nil || readable() != nil || len(entries) != before+1 {
		t.Errorf("unsigned: %t, %v, %d entries, %v", none, err, len(entries)-before, readable())
	}
	if !slices.ContainsFunc(entries, func(e plugin.Entry) bool { return e.Kind == plugin.EntryAuthoritySigned }) {
		t.Error("no entry says that it was signed")
	}
	moved(t, b, call, store.CallQueued)
	if err := live(t, b); err != nil {
		t.Error(err)
	}
	edit(t, db, "UPDATE calls SET principal = 'boss'")
	if err := readable(); !errors.Is(err, store.ErrTampered) {
		t.Errorf("a call of an earlier release that was edited: %v", err)
	}
}

// unsignedColumns are those of sessions and artifacts that decide nothing.
var unsignedColumns = map[string][]string{
	"sessions":  {"name", "pillar", "state", "updated_at", "tenant", "id"},
	"artifacts": {"data", "tenant", "session_id", "id"},
}

// A session is its owner's and an artifact has the labels and the hash that the host
// gave it, or it is not read.
func keptRows(t *testing.T, b *bundle) {
	db, home := b.engine.Edit(t)
	b.home = home
	insertSessions(t, b, newSession("sess_1"), newSession("sess_2"))
	row := register(t, b, newArtifact("sess_1", "art_1"))
	write(t, b, appendNote("one"))
	st := store.Authorised(b, home)
	reads := func(session string) map[string][]error {
		ctx := t.Context()
		_, sessionErr := st.Session(ctx, "t", session)
		_, sessionsErr := st.Sessions(ctx, store.SessionFilter{Tenant: "t"})
		_, artifactErr := st.Artifact(ctx, "t", session, row.ID)
		_, artifactsErr := st.Artifacts(ctx, "t", session)
		within := func(read func(tx store.Tx) error) error { return b.Write(ctx, read) }
		return map[string][]error{
			"sessions": {
				sessionErr, sessionsErr,
				within(func(tx store.Tx) error { _, err := tx.Session(ctx, "t", session); return err }),
				within(func(tx store.Tx) error {
					_, _, _, err := tx.InsertArtifact(newArtifact(session, "art_2"), nil)
					return err
				}),
			},
			"artifacts": {
				artifactErr, artifactsErr,
				within(func(tx store.Tx) error { _, err := tx.Artifact(ctx, "t", session, row.ID); return err }),
				within(func(tx store.Tx) error { _, err := tx.ArtifactLabels(ctx, "t", session, []string{row.ID}); return err }),
			},
		}
	}
	for table, errs := range reads("sess_1") {
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("%s: %v", table, err)
		}
	}
	for _, table := range []string{"sessions", "artifacts"} {
		edit(t, db, fmt.Sprintf("CREATE TABLE kept_%s AS SELECT * FROM %s", table, table))
		back := func() {
			edit(t, db, "DELETE FROM "+table)
			edit(t, db, fmt.Sprintf("INSERT INTO %s SELECT * FROM kept_%s", table, table))
		}
		names, number := signedColumns(t, db, table)
		for _, name := range names {
			if slices.Contains(unsignedColumns[table], name) {
				continue
			}
			value := changedValue(b, table, name, number[name])
			if name == "labels" || name == "parents" {
				value = `'["else"]'`
			}
			edit(t, db, fmt.Sprintf(`UPDATE %s SET "%s" = %s`, table, name, value))
			for i, err := range reads("sess_1")[table] {
				if !errors.Is(err, store.ErrTampered) {
					t.Errorf("%s.%s, read in way %d: %v", table, name, i, err)
				}
			}
			back()
		}
	}
	edit(t, db, "UPDATE artifacts SET session_id = 'sess_2'")
	for i, err := range reads("sess_2")["artifacts"] {
		if !errors.Is(err, store.ErrTampered) {
			t.Errorf("an artifact of another session, read in way %d: %v", i, err)
		}
	}
}

// LiveCalls adds n queued calls to a store, in transactions of 500.
func LiveCalls(t testing.TB, st store.Store, n int) {
	t.Helper()
	for from := 0; from < n; from += 500 {
		err := st.Write(t.Context(), func(tx store.Tx) error {
			for i := from; i < min(from+500, n); i++ {
				id := fmt.Sprintf("%08d", i)
				row := store.CallRow{
					Tenant: "t", ID: id, Operation: "p/send", Key: "k:" + id, Fingerprint: "sha256:f", Principal: "ada", Origin: "cli", Labels: []string{},
					Version: "1.0.0", PackageDigest: "sha256:p", PolicyVersion: "1", InputHash: "sha256:i", CreatedAt: time.UnixMicro(1), State: store.CallQueued, WakeAt: time.UnixMicro(1), UpdatedAt: time.UnixMicro(1),
				}
				if _, err := tx.InsertCall(row); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// What an attempt sent is in the journal of its call when the next one begins: an effect
// that is missing would be sent again, and one that was added not at all.
func journalOfWaiting(t *testing.T, b *bundle) {
	db, home := b.engine.Edit(t)
	b.home = home
	fresh := newCall()
	fresh.State, fresh.Attempt, fresh.Lease = store.CallQueued, 0, ""
	write(t, b, insert(fresh))
	call := newCall()
	write(t, b, insert(call))
	sent := begin(t, b, call, newEffect(call, "sha256:one"))
	open := begin(t, b, call, newEffect(call, "sha256:two"))
	sent.State, sent.ResponseHash = store.EffectDone, "sha256:r"
	write(t, b, func(tx store.Tx) error { _, err := tx.UpdateEffect(call.Fence(), sent); return err })
	call = moved(t, b, call, store.CallUnknown)
	columns := "tenant, call_id, n, attempt, method, class, effect, request_hash, occurrence, provider_key, state, response_hash, at"
	forge := func() {
		t.Helper()
		for name, statement := range map[string]string{
			"all deleted":            "DELETE FROM effects",
			"one deleted":            "DELETE FROM effects WHERE n = 2",
			"another request":        "UPDATE effects SET request_hash = 'sha256:x' WHERE n = 1",
			"another state":          "UPDATE effects SET state = 'late' WHERE n = 2",
			"another answer":         "UPDATE effects SET response_hash = 'sha256:x' WHERE n = 1",
			"another key":            "UPDATE effects SET provider_key = 'x'",
			"another attempt":        "UPDATE effects SET attempt = 7",
			"one added":              "INSERT INTO effects (" + columns + ") SELECT tenant, call_id, 9, attempt, method, class, effect, 'sha256:z', occurrence, provider_key, 'done', response_hash, at FROM effects WHERE n = 1",
			"its hash":               "UPDATE calls SET journal = ''",
			"one of another call":    "UPDATE effects SET call_id = '" + fresh.ID + "' WHERE n = 1",
			"one before any attempt": "UPDATE effects SET call_id = '" + fresh.ID + "'",
		} {
			edit(t, db, "CREATE TABLE kept_effects AS SELECT * FROM effects")
			edit(t, db, "CREATE TABLE kept_calls AS SELECT id, journal FROM calls")
			edit(t, db, statement)
			err := toRun(t, b, call.ID, "")["calls"]
			if !errors.Is(err, store.ErrTampered) {
				t.Errorf("%s, %s: it goes on: %v", call.State, name, err)
			}
			if err := live(t, b); !errors.Is(err, store.ErrTampered) {
				t.Errorf("%s, %s: it is not found: %v", call.State, name, err)
			}
			if name != "its hash" {
				if err := b.Write(t.Context(), func(tx store.Tx) error { _, err := tx.UpdateEffect(call.Fence(), open); return err }); err == nil {
					t.Errorf("%s, %s: an effect that is written signs it", call.State, name)
				}
			}
			edit(t, db, "DELETE FROM effects")
			edit(t, db, "INSERT INTO effects SELECT * FROM kept_effects")
			edit(t, db, "UPDATE calls SET journal = (SELECT journal FROM kept_calls WHERE kept_calls.id = calls.id)")
			edit(t, db, "DROP TABLE kept_effects")
			edit(t, db, "DROP TABLE kept_calls")
		}
		if err := errors.Join(live(t, b), toRun(t, b, call.ID, "")["calls"], toRun(t, b, fresh.ID, "")["calls"]); err != nil {
			t.Fatalf("%s, as the host wrote it: %v", call.State, err)
		}
	}
	forge()
	open.State = store.EffectNotDone // as reconciliation found
	write(t, b, func(tx store.Tx) error { _, err := tx.UpdateEffect(call.Fence(), open); return err })
	forge()
	call = moved(t, b, call, store.CallQueued)
	forge()
	call = moved(t, b, call, store.CallRunning, store.CallQueued)
	forge()
	// What was edited is not signed by what the host moves afterwards.
	edit(t, db, "DELETE FROM effects WHERE n = 1")
	call = moved(t, b, call, store.CallUnknown, store.CallQueued)
	if err := toRun(t, b, call.ID, "")["calls"]; !errors.Is(err, store.ErrTampered) {
		t.Errorf("moved after the edit, it goes on: %v", err)
	}
}
