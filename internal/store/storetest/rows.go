package storetest

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

func entryFilters(t *testing.T, b *bundle) {
	for _, e := range []plugin.Entry{
		{Tenant: "t", Kind: "call.started", Subject: "a"},
		{Tenant: "t", Kind: "call.failed", Subject: "a"},
		{Tenant: "u", Kind: "call.started", Subject: "b"},
		{Tenant: "", Kind: "callous.x", Subject: "c"},
		{Tenant: "", Kind: "plugin.enabled", Subject: "p@1"},
	} {
		write(t, b, func(tx store.Tx) error { tx.Append(e); return nil })
	}
	for _, test := range []struct {
		name   string
		filter store.EntryFilter
		want   []int64
	}{
		{"all", store.EntryFilter{}, []int64{1, 2, 3, 4, 5}},
		{"newest", store.EntryFilter{Newest: true, Limit: 2}, []int64{5, 4}},
		{"after", store.EntryFilter{Chain: 1, After: 3}, []int64{4, 5}},
		{"kind", store.EntryFilter{Kind: "call.started"}, []int64{1, 3}},
		{"kinds", store.EntryFilter{Kind: "call."}, []int64{1, 2, 3}},
		{"subject", store.EntryFilter{Subject: "a", Newest: true}, []int64{2, 1}},
		{"tenant", store.EntryFilter{Tenant: "u"}, []int64{3}},
		{"another chain", store.EntryFilter{Chain: 9}, nil},
	} {
		var got []int64
		for _, e := range entries(t, b, test.filter) {
			got = append(got, e.Seq)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

func newestFirst(t *testing.T, b *bundle) {
	stores := []store.Store{b, b.another(t), b.another(t)}
	var want []string
	for i := range 9 {
		e := note(fmt.Sprint(i))
		e.At = epoch.Add(time.Duration(i) * time.Second)
		write(t, stores[i*i%3], func(tx store.Tx) error { tx.Append(e); return nil })
		want = append([]string{e.Subject}, want...)
	}
	for _, limit := range []int{0, 4} {
		var got []string
		for _, e := range entries(t, b, store.EntryFilter{Newest: true, Limit: limit}) {
			got = append(got, e.Subject)
		}
		if limit > 0 {
			want = want[:limit]
		}
		if !slices.Equal(got, want) {
			t.Errorf("the newest are %v, want %v", got, want)
		}
	}
	for i := range 2 { // at the same moment
		write(t, stores[i], func(tx store.Tx) error {
			for range 2 {
				tx.Append(plugin.Entry{At: epoch.Add(time.Hour), Kind: "k", Subject: "same"})
			}
			return nil
		})
	}
	got := entries(t, b, store.EntryFilter{Newest: true, Subject: "same"})
	for i, e := range got[1:] {
		if before := got[i]; e.Chain > before.Chain || e.Chain == before.Chain && e.Seq >= before.Seq {
			t.Errorf("entry %d of chain %d comes after entry %d of chain %d", e.Seq, e.Chain, before.Seq, before.Chain)
		}
	}
}

func bodies(t *testing.T, b *bundle) {
	data := []byte("{\"x\": 1}\x00\xff")
	put := func(data []byte, expires time.Time) (hash string) {
		write(t, b, func(tx store.Tx) (err error) { hash, err = tx.PutBody("t", data, expires); return err })
		return hash
	}
	hash := put(data, epoch)
	if want := canon.Sum(data); hash != want {
		t.Errorf("hash is %s, want %s", hash, want)
	}
	expiry := func() time.Time {
		for body, err := range b.Bodies(ctx()) {
			if err != nil {
				t.Fatal(err)
			}
			if body.Hash == hash {
				return body.ExpiresAt
			}
		}
		t.Fatal("the body is gone")
		return epoch
	}
	for _, step := range []struct{ asked, want time.Time }{
		{epoch.Add(time.Hour), epoch.Add(time.Hour)},
		{epoch, epoch.Add(time.Hour)},
		{time.Time{}, time.Time{}},
		{epoch, time.Time{}},
	} {
		put(data, step.asked)
		if got := expiry(); !got.Equal(step.want) {
			t.Errorf("asked for %s the body expires %s, want %s", step.asked, got, step.want)
		}
	}
	got, err := b.Body(t.Context(), "t", hash)
	if err != nil || string(got) != string(data) {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := b.Body(t.Context(), "u", hash); got != nil || err != nil {
		t.Errorf("another tenant got %q, %v", got, err)
	}
	empty := put(nil, time.Time{})
	if got, err := b.Body(t.Context(), "t", empty); got == nil || len(got) != 0 || err != nil {
		t.Errorf("the empty body is %v, %v", got, err)
	}
}

func plugins(t *testing.T, b *bundle) {
	one := store.PluginRow{
		Name: "text.count", Version: "1.0.0", PackageDigest: "sha256:a", Path: "/x/y", Manifest: []byte(`{"name": "text.count"}`),
		State: store.PluginActive, ApprovedBy: "ada", Dev: true, RegisteredAt: epoch,
	}
	two := one
	two.Version, two.RegisteredAt = "0.9.0", epoch.Add(time.Second)
	other := one
	other.Name = "mail.send"
	pkg := store.PackageRow{Digest: "sha256:a", Source: "./dir", Signer: ""}
	write(t, b, func(tx store.Tx) error {
		for _, row := range []store.PluginRow{two, one, other} {
			if err := tx.PutPlugin(row); err != nil {
				return err
			}
		}
		return tx.PutPackage(pkg)
	})
	check := func(want ...store.PluginRow) {
		t.Helper()
		got, err := b.Plugins(t.Context())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("plugins are %+v, %v\nwant %+v", got, err, want)
		}
	}
	check(other, one, two)
	if got, err := b.Plugin(t.Context(), one.Name, one.Version); err != nil || got == nil || !reflect.DeepEqual(*got, one) {
		t.Errorf("plugin is %+v, %v", got, err)
	}
	pkg.Source = "./elsewhere"
	write(t, b, func(tx store.Tx) error {
		if found, err := tx.SetPluginState(one.Name, one.Version, store.PluginDisabled); !found || err != nil {
			t.Errorf("SetPluginState: %t, %v", found, err)
		}
		if found, err := tx.DeletePlugin(two.Name, two.Version); !found || err != nil {
			t.Errorf("DeletePlugin: %t, %v", found, err)
		}
		if found, err := tx.SetPluginState("no", "1", store.PluginDisabled); found || err != nil {
			t.Errorf("SetPluginState of none: %t, %v", found, err)
		}
		if found, err := tx.DeletePlugin("no", "1"); found || err != nil {
			t.Errorf("DeletePlugin of none: %t, %v", found, err)
		}
		return tx.PutPackage(pkg)
	})
	one.State = store.PluginDisabled
	check(other, one)
	if got, err := b.Packages(t.Context()); err != nil || !reflect.DeepEqual(got, []store.PackageRow{pkg}) {
		t.Errorf("packages are %+v, %v", got, err)
	}
}

func snapshot(t *testing.T, b *bundle) {
	write(t, b, appendNote("one"))
	err := b.Snapshot(t.Context(), func(r store.Reader) error {
		before := len(entries(t, r, store.EntryFilter{}))
		write(t, b, appendNote("two"))
		heads, err := r.Chains(t.Context())
		if err != nil {
			return err
		}
		if before != 1 || heads[0].Seq != 1 {
			t.Errorf("the snapshot has %d entries and its head at %d", before, heads[0].Seq)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := len(checkChains(t, b)); got != 2 {
		t.Errorf("the chain has %d entries, want 2", got)
	}
}

func ownWrites(t *testing.T, b *bundle) {
	row := newCall()
	write(t, b, func(tx store.Tx) error {
		if err := insert(row)(tx); err != nil {
			return err
		}
		got, err := tx.Call(ctx(), row.Tenant, row.ID)
		if err != nil || got == nil {
			t.Errorf("the call it inserted: %v, %v", got, err)
		}
		outside, err := b.Call(ctx(), row.Tenant, row.ID)
		if err != nil || outside != nil {
			t.Errorf("seen outside before the commit: %v, %v", outside, err)
		}
		return nil
	})
}
