package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

func nodes(t *testing.T, st store.Reader) (ids []string) {
	t.Helper()
	rows, err := st.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		ids = append(ids, row.ID)
	}
	return ids
}

func booksClosed(t *testing.T, b *bundle) {
	if got := nodes(t, b); len(got) != 0 {
		t.Errorf("before anything was written the nodes are %v", got)
	}
	other := b.another(t)
	write(t, b, appendNote("one"))
	write(t, other, appendNote("two"))
	if got := nodes(t, b); len(got) != 2 || b.Node() == other.Node() {
		t.Errorf("the nodes are %v", got)
	}
	recovered, err := b.Recover(t.Context(), func(_ store.Tx, row store.NodeRow) error {
		t.Errorf("node %s lives and was recovered", row.ID)
		return nil
	})
	if recovered != 0 || err != nil {
		t.Errorf("recovered %d, %v", recovered, err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if got := nodes(t, b); len(got) != 1 || got[0] != b.Node() {
		t.Errorf("after one closed the nodes are %v", got)
	}
	if err := b.WriteLast(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if got := nodes(t, b); len(got) != 0 {
		t.Errorf("after the last write the nodes are %v", got)
	}
	write(t, b, appendNote("three"))
	if got := nodes(t, b); len(got) != 1 {
		t.Errorf("after another write the nodes are %v", got)
	}
}

func lastWrite(t *testing.T, b *bundle) {
	err := b.WriteLast(t.Context(), func(tx store.Tx) error {
		tx.Append(note("one"))
		if rows, err := tx.Nodes(ctx()); err != nil || len(rows) != 0 {
			t.Errorf("the nodes are %v, %v", rows, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := len(checkChains(t, b)); got != 1 {
		t.Errorf("the chain has %d entries, want 1", got)
	}
}

func recovered(t *testing.T, b *bundle) {
	dying := b.another(t)
	row := newCall()
	row.Node = dying.Node()
	write(t, dying, insert(row))
	if err := dying.Close(); err != nil {
		t.Fatal(err)
	}
	if got := nodes(t, b); len(got) != 1 || got[0] != dying.Node() {
		t.Fatalf("the nodes are %v, want the one with a running call", got)
	}

	failed := errors.New("not now")
	if n, err := b.Recover(t.Context(), func(store.Tx, store.NodeRow) error { return failed }); n != 0 || !errors.Is(err, failed) {
		t.Errorf("recovered %d, %v, want the closure's error", n, err)
	}

	handles := []store.Store{b, b.another(t), b.another(t)}
	var mu sync.Mutex
	total := 0
	together(len(handles), func(i int) {
		n, err := handles[i].Recover(ctx(), func(tx store.Tx, node store.NodeRow) error {
			if node.ID != dying.Node() {
				return fmt.Errorf("node is %s", node.ID)
			}
			calls, err := tx.Calls(ctx(), store.CallFilter{Node: node.ID, State: store.CallRunning})
			if len(calls) != 1 {
				return fmt.Errorf("its running calls are %v, %v", calls, err)
			}
			tx.Append(note("unclean"))
			return err
		})
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		total += n
	})
	entries := slices.DeleteFunc(checkChains(t, b), func(e plugin.Entry) bool { return e.Kind == plugin.EntryAuthorityChanged }) // of the call, which came without
	if total != 1 || len(entries) != 1 {
		t.Errorf("the node was recovered %d times", total)
	}
}

func runningPlan(t *testing.T, b *bundle) {
	for state, stays := range map[store.PlanState]bool{store.PlanRunning: true, store.PlanQueued: false, store.PlanSucceeded: false} {
		leaving := b.another(t)
		row := newPlan()
		row.Node, row.State, row.Lease = leaving.Node(), state, "lease"
		insertPlan(t, leaving, row)
		if err := leaving.Close(); err != nil {
			t.Fatal(err)
		}
		rows, err := b.Nodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		booked := slices.ContainsFunc(rows, func(node store.NodeRow) bool { return node.ID == leaving.Node() })
		if booked != stays {
			t.Errorf("with a plan that is %s the node is on the books: %t", state, booked)
		}
	}
	n, err := b.Recover(t.Context(), func(tx store.Tx, node store.NodeRow) error {
		plans, err := tx.Plans(ctx(), store.PlanFilter{Node: node.ID, State: store.PlanRunning})
		if err != nil || len(plans) != 1 {
			return fmt.Errorf("its running plans are %+v, %w", plans, err)
		}
		next := plans[0]
		next.State, next.Node, next.Lease = store.PlanQueued, "", ""
		_, err = tx.UpdatePlan(plans[0].Fence(), next)
		return err
	})
	if n != 1 || err != nil {
		t.Errorf("recovered %d, %v", n, err)
	}
	if plans, err := b.Plans(t.Context(), store.PlanFilter{State: store.PlanRunning}); err != nil || len(plans) != 0 {
		t.Errorf("the running plans are %+v, %v", plans, err)
	}
}

func closeDrains(t *testing.T, b *bundle) {
	other := b.another(t)
	release := blocked(t, other)
	const n = 20
	errs := make(chan error, n)
	for range n {
		go func() { errs <- other.Write(ctx(), appendNote("n")) }()
	}
	closed := make(chan error, 1)
	go func() { closed <- other.Close() }()
	release()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	accepted := 0
	for range n {
		switch err := <-errs; {
		case err == nil:
			accepted++
		case !errors.Is(err, store.ErrClosed):
			t.Error(err)
		}
	}
	if got := len(checkChains(t, b)); got != accepted {
		t.Errorf("%d writes were acknowledged and %d are there", accepted, got)
	}
}

func afterClose(t *testing.T, b *bundle) {
	other := b.another(t)
	write(t, other, appendNote("one"))
	for range 2 {
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := other.Write(t.Context(), appendNote("two")); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a write after close ended with %v", err)
	}
	if _, err := other.Chains(t.Context()); err == nil {
		t.Error("a read after close succeeded")
	}
}

func reopened(t *testing.T, b *bundle) {
	row := newCall()
	write(t, b, func(tx store.Tx) error {
		tx.Append(note("one"))
		return insert(row)(tx)
	})
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	again := b.another(t)
	if got, err := again.Call(t.Context(), row.Tenant, row.ID); got == nil || err != nil {
		t.Errorf("the call is %v, %v", got, err)
	}
	write(t, again, appendNote("two"))
	if got := len(checkChains(t, again)); got != 2 {
		t.Errorf("the chain has %d entries, want 2", got)
	}
}

// removedPackages: of two packages that share a part, the one whose plugin is gone is removed
// once the period since that was first seen is over, but for the shared part. A package that is
// registered again meanwhile stays. A plugin of another tenant counts.
func removedPackages(t *testing.T, b *bundle) {
	everywhere := store.Everywhere(ctx())
	change := func(do func(tx store.Tx) error) {
		t.Helper()
		if err := b.Write(everywhere, do); err != nil {
			t.Fatal(err)
		}
	}
	there := func(hash string) bool {
		t.Helper()
		data, err := b.Body(everywhere, "", hash)
		if err != nil {
			t.Fatal(err)
		}
		return data != nil
	}
	put := func(parts ...string) (list string, hashes []string) {
		t.Helper()
		change(func(tx store.Tx) (err error) {
			for _, part := range parts {
				hash, err := tx.PutBody("", []byte(part), time.Time{})
				if err != nil {
					return err
				}
				hashes = append(hashes, hash)
			}
			text, err := json.Marshal(hashes)
			if err != nil {
				return err
			}
			list, err = tx.PutBody("", text, time.Time{})
			return err
		})
		return list, hashes
	}
	row := func(name, path string) store.PluginRow {
		return store.PluginRow{Name: name, Version: "1.0.0", PackageDigest: "sha256:" + name, Path: path, Manifest: []byte("{}"), State: store.PluginActive, RegisteredAt: epoch}
	}
	sweep := func(at time.Time) (n int64) {
		t.Helper()
		for {
			var got store.Removed
			change(func(tx store.Tx) (err error) {
				got, err = tx.Remove(store.RetainPackages, store.Removal{Tenant: "t", Before: at.Add(-time.Hour), At: at, Limit: 2})
				return err
			})
			if n += got.Count; got.Count == 0 {
				return n
			}
		}
	}
	kept, keptParts := put("shared", "kept")
	gone, goneParts := put("shared", "gone")
	other, otherParts := put("of another tenant")
	change(func(tx store.Tx) error {
		for _, r := range []store.PluginRow{row("kept", kept), row("gone", gone)} {
			if err := tx.PutPlugin(r); err != nil {
				return err
			}
		}
		return tx.PutTenantPlugin("other", row("theirs", other))
	})
	for i := range 5 {
		if n := sweep(epoch.Add(time.Duration(i) * 24 * time.Hour)); n != 0 {
			t.Fatalf("%d of packages that are needed were removed", n)
		}
	}
	change(func(tx store.Tx) error { _, err := tx.DeletePlugin("gone", "1.0.0"); return err })
	for range 4 { // marks are set two at a time
		if n := sweep(epoch); n != 0 {
			t.Errorf("%d were removed before their period began", n)
		}
	}
	if due, err := b.Removable(ctx(), store.RetainPackages, "t", epoch.Add(time.Second)); err != nil || due.Count != 2 || !due.Oldest.Equal(epoch) {
		t.Errorf("due: %+v, %v", due, err)
	}
	if n := sweep(epoch.Add(time.Hour)); n != 0 {
		t.Errorf("%d were removed within their period", n)
	}
	if again, _ := put("shared", "gone"); again != gone { // it is being registered again
		t.Fatal("the same parts have another list")
	}
	for range 4 {
		if n := sweep(epoch.Add(3 * time.Hour)); n != 0 {
			t.Errorf("%d of a package that is being registered were removed", n)
		}
	}
	if n := sweep(epoch.Add(5 * time.Hour)); n != 2 {
		t.Errorf("%d were removed, want the list and the part that nothing shares", n)
	}
	for hash, want := range map[string]bool{kept: true, keptParts[0]: true, keptParts[1]: true, gone: false, goneParts[1]: false, other: true, otherParts[0]: true} {
		if there(hash) != want {
			t.Errorf("%s is there: %t", hash, !want)
		}
	}
}

// unreadablePackage: without the list of a package, nothing says which parts are needed, so
// nothing is removed.
func unreadablePackage(t *testing.T, b *bundle) {
	everywhere := store.Everywhere(ctx())
	err := b.Write(everywhere, func(tx store.Tx) error {
		return tx.PutPlugin(store.PluginRow{Name: "broken", Version: "1.0.0", PackageDigest: "sha256:b", Path: "sha256:none", Manifest: []byte("{}"), State: store.PluginActive, RegisteredAt: epoch})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Write(everywhere, func(tx store.Tx) error {
		_, err := tx.Remove(store.RetainPackages, store.Removal{Before: epoch, At: epoch, Limit: 2})
		return err
	}); err == nil {
		t.Error("it went on")
	}
}
