package storetest

import (
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

func keyRace(t *testing.T, b *bundle) {
	const n = 50
	var winners atomic.Int32
	won, priors := make([]string, n), make([]string, n)
	together(n, func(i int) {
		row := newCall()
		row.Key = "k:same"
		var prior *store.CallRow
		err := b.Write(ctx(), func(tx store.Tx) (err error) {
			prior, err = tx.InsertCall(row)
			return err
		})
		switch {
		case err != nil:
			t.Error(err)
		case prior == nil:
			winners.Add(1)
			won[i] = row.ID
		default:
			priors[i] = prior.ID
		}
	})
	if winners.Load() != 1 {
		t.Fatalf("%d callers burnt the key", winners.Load())
	}
	winner := slices.Max(won)
	for i, prior := range priors {
		if won[i] == "" && prior != winner {
			t.Errorf("caller %d was told of %q, want %q", i, prior, winner)
		}
	}
	// The key is one operation's and one tenant's.
	for _, change := range []func(*store.CallRow){func(r *store.CallRow) { r.Tenant = "u" }, func(r *store.CallRow) { r.Operation = "o/p" }} {
		row := newCall()
		row.Key = "k:same"
		change(&row)
		write(t, b, insert(row))
	}
}

func callRoundTrip(t *testing.T, b *bundle) {
	row := store.CallRow{
		Tenant: "tenant", ID: "id", Operation: "p/op", Key: "k:ключ", Fingerprint: "fp", Principal: "user:ada", Actor: "agent:x", Agent: "x",
		Origin: "cli", Parent: "parent", Plan: "plan", Session: "session", Labels: []string{"private", "untrusted"}, Version: "1.2.3",
		PackageDigest: "sha256:p", PolicyVersion: "v7", InputHash: "sha256:i", RequestHash: "sha256:q", Effectful: true, Journalled: true, CreatedAt: epoch,
		State: store.CallRunning, Attempt: 3, Lease: "lease", Node: "node", WakeAt: epoch.Add(time.Second), Deadline: epoch.Add(time.Minute),
		ResultHash: "sha256:r", Code: "timeout", SchemaVersion: "1", Cancelled: true, UpdatedAt: epoch.Add(time.Microsecond),
	}
	write(t, b, insert(row))
	check := func(got *store.CallRow, err error) {
		t.Helper()
		if err != nil || got == nil || !reflect.DeepEqual(*got, row) {
			t.Errorf("got %+v, %v\nwant %+v", got, err, row)
		}
	}
	check(b.Call(t.Context(), "tenant", "id"))
	check(b.CallByKey(t.Context(), "tenant", "p/op", "k:ключ"))
	if got, err := b.Call(t.Context(), "other", "id"); got != nil || err != nil {
		t.Errorf("another tenant got %v, %v", got, err)
	}
	if got, err := b.CallByKey(t.Context(), "tenant", "p/op", "k:"); got != nil || err != nil {
		t.Errorf("another key got %v, %v", got, err)
	}
}

func fencing(t *testing.T, b *bundle) {
	row := newCall()
	write(t, b, insert(row))
	next := row
	next.State, next.Lease, next.Code, next.UpdatedAt = store.CallFailed, "", "timeout", epoch.Add(time.Second)
	update := func(f store.Fence) (won bool) {
		write(t, b, func(tx store.Tx) (err error) { won, err = tx.UpdateCall(f, next); return err })
		return won
	}
	for name, change := range map[string]func(*store.Fence){
		"tenant":  func(f *store.Fence) { f.Tenant = "u" },
		"id":      func(f *store.Fence) { f.ID = "x" },
		"state":   func(f *store.Fence) { f.State = store.CallUnknown },
		"attempt": func(f *store.Fence) { f.Attempt++ },
		"lease":   func(f *store.Fence) { f.Lease = "stolen" },
	} {
		f := row.Fence()
		change(&f)
		if update(f) {
			t.Errorf("a wrong %s won", name)
		}
	}
	if !update(row.Fence()) {
		t.Error("the right fence lost")
	}
	if update(row.Fence()) {
		t.Error("the fence won twice")
	}
	got, err := b.Call(t.Context(), row.Tenant, row.ID)
	if err != nil {
		t.Fatal(err)
	}
	next.Labels = []string{}
	if !reflect.DeepEqual(*got, next) {
		t.Errorf("the call is %+v, want %+v", *got, next)
	}
}

func callsNewestFirst(t *testing.T, b *bundle) {
	var ids []string
	for i := range 6 {
		row := newCall()
		row.Session = [...]string{"s1", "s2"}[i%2]
		if i == 5 {
			row.Tenant = "u"
		}
		ids = append(ids, row.ID)
		write(t, b, insert(row))
	}
	for _, test := range []struct {
		name   string
		filter store.CallFilter
		want   []string
	}{
		{"all", store.CallFilter{}, []string{ids[5], ids[4], ids[3], ids[2], ids[1], ids[0]}},
		{"tenant", store.CallFilter{Tenant: "t"}, []string{ids[4], ids[3], ids[2], ids[1], ids[0]}},
		{"page", store.CallFilter{Tenant: "t", Before: ids[3], Limit: 2}, []string{ids[2], ids[1]}},
		{"session and state", store.CallFilter{Session: "s2", State: store.CallRunning}, []string{ids[5], ids[3], ids[1]}},
		{"none", store.CallFilter{Operation: "x/y"}, nil},
	} {
		rows, err := b.Calls(t.Context(), test.filter)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, row := range rows {
			got = append(got, row.ID)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

func callFilters(t *testing.T, b *bundle) {
	ids := make(map[string]string)
	for name, change := range map[string]func(*store.CallRow){
		"plain":       func(*store.CallRow) {},
		"queued":      func(r *store.CallRow) { r.State = store.CallQueued },
		"due":         func(r *store.CallRow) { r.State, r.WakeAt = store.CallInProgress, epoch },
		"later":       func(r *store.CallRow) { r.State, r.WakeAt = store.CallInProgress, epoch.Add(time.Microsecond) },
		"of a plan":   func(r *store.CallRow) { r.Plan = "plan" },
		"another's":   func(r *store.CallRow) { r.Plan, r.Tenant = "plan", "u" },
		"of a parent": func(r *store.CallRow) { r.Parent = "parent" },
		"of a node":   func(r *store.CallRow) { r.Node = "node" },
		"cancelled":   func(r *store.CallRow) { r.Cancelled = true },
		"both":        func(r *store.CallRow) { r.Node, r.Cancelled = "node", true },
	} {
		row := newCall()
		change(&row)
		ids[row.ID] = name
		write(t, b, insert(row))
	}
	for _, test := range []struct {
		filter store.CallFilter
		want   []string
	}{
		{store.CallFilter{State: store.CallQueued}, []string{"queued"}},
		{store.CallFilter{State: "no such state"}, nil},
		{store.CallFilter{State: "queued' OR 'a' = 'a"}, nil},
		{store.CallFilter{DueBefore: epoch}, []string{"due"}},
		{store.CallFilter{DueBefore: epoch.Add(time.Hour)}, []string{"due", "later"}},
		{store.CallFilter{DueBefore: epoch.Add(-time.Microsecond)}, nil},
		{store.CallFilter{State: store.CallRunning, DueBefore: epoch}, nil},
		{store.CallFilter{Plan: "plan"}, []string{"another's", "of a plan"}},
		{store.CallFilter{Plan: "plan", Tenant: "t"}, []string{"of a plan"}},
		{store.CallFilter{Parent: "parent"}, []string{"of a parent"}},
		{store.CallFilter{Node: "node"}, []string{"both", "of a node"}},
		{store.CallFilter{Cancelled: true}, []string{"both", "cancelled"}},
		{store.CallFilter{Node: "node", State: store.CallRunning, Cancelled: true}, []string{"both"}},
	} {
		rows, err := b.Calls(t.Context(), test.filter)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, row := range rows {
			got = append(got, ids[row.ID])
		}
		slices.Sort(got)
		if !slices.Equal(got, test.want) {
			t.Errorf("%+v: got %q, want %q", test.filter, got, test.want)
		}
	}
}

func cancelling(t *testing.T, b *bundle) {
	cancel := func(tenant, id string) (found bool) {
		write(t, b, func(tx store.Tx) (err error) { found, err = tx.CancelCall(tenant, id); return err })
		return found
	}
	for state, want := range map[store.CallState]bool{
		store.CallPending: true, store.CallQueued: true, store.CallRunning: true, store.CallInProgress: true,
		store.CallSucceeded: false, store.CallFailed: false, store.CallUnknown: false,
	} {
		row := newCall()
		row.State = state
		write(t, b, insert(row))
		if got := cancel(row.Tenant, row.ID); got != want {
			t.Errorf("cancelling a call that is %s: %t", state, got)
		}
		if cancel("u", row.ID) || cancel(row.Tenant, "x"+row.ID) {
			t.Error("a call was cancelled by another name")
		}
		row.Cancelled, row.Labels = want, []string{}
		if got, err := b.Call(t.Context(), row.Tenant, row.ID); err != nil || !reflect.DeepEqual(*got, row) {
			t.Errorf("got %+v, %v\nwant %+v", got, err, row)
		}
		// The holder of the fencing token neither loses it nor revokes the cancel request.
		next := row
		next.State, next.Cancelled = store.CallInProgress, !want
		var won bool
		write(t, b, func(tx store.Tx) (err error) { won, err = tx.UpdateCall(row.Fence(), next); return err })
		if got, err := b.Call(t.Context(), row.Tenant, row.ID); err != nil || !won || got.State != next.State || got.Cancelled != want {
			t.Errorf("after an update of the call that was %s: won %t, %+v, %v", state, won, got, err)
		}
	}
}
