package installed

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
)

func TestTheCatalogKeepsRecordsWithTheirEntries(t *testing.T) {
	t.Parallel()
	st, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	c := &Records{store: st, tenant: "local", principal: "local:owner"}
	if records, err := c.Plugins(t.Context()); err != nil || len(records) != 0 {
		t.Errorf("%v, %v", records, err)
	}

	linked := registry.Record{
		Name: "a", Version: "1.0.0", Digest: "sha256:1", Path: "/p", Source: "/src", Dev: true, State: registry.Active,
		Manifest: json.RawMessage(`{"name":"a"}`), RegisteredAt: time.Now().UTC().Truncate(time.Microsecond),
	}
	installed := linked
	installed.Version, installed.Digest, installed.Dev, installed.State, installed.ApprovedBy = "2.0.0", "sha256:2", false, registry.Disabled, "ann"
	installed.Path, installed.Archive = "", "sha256:a" // where it is follows from its digest, on each node
	for _, r := range []registry.Record{linked, installed} {
		if err := c.Put(t.Context(), r, plugin.EntryPluginRegistered); err != nil {
			t.Fatal(err)
		}
	}
	records, err := c.Plugins(t.Context())
	if err != nil || !reflect.DeepEqual(records, []registry.Record{linked, installed}) {
		t.Errorf("%+v, %v", records, err)
	}

	if err := c.SetState(t.Context(), installed, registry.Active, plugin.EntryPluginEnabled); err != nil {
		t.Error(err)
	}
	if err := c.Delete(t.Context(), linked); err != nil {
		t.Error(err)
	}
	installed.State = registry.Active
	if records, err := c.Plugins(t.Context()); err != nil || !reflect.DeepEqual(records, []registry.Record{installed}) {
		t.Errorf("%+v, %v", records, err)
	}

	// What is gone is not found, and leaves no entry.
	if err := c.SetState(t.Context(), linked, registry.Active, plugin.EntryPluginEnabled); plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Errorf("%v", err)
	}
	if err := c.Delete(t.Context(), registry.Record{Name: "b", Version: "1.0.0"}); plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Errorf("%v", err)
	}

	var got []string
	err = st.Snapshot(t.Context(), func(r store.Reader) error {
		for e, err := range r.Entries(t.Context(), store.EntryFilter{}) {
			if err != nil {
				return err
			}
			got = append(got, string(e.Kind)+" "+e.Subject+" "+e.Tenant+" "+e.Principal+" "+string(e.Body))
		}
		return nil
	})
	want := []string{
		`plugin.registered a@1.0.0 local local:owner {"dev":true,"digest":"sha256:1","source":"/src","state":"active"}`,
		`plugin.registered a@2.0.0 local local:owner {"dev":false,"digest":"sha256:2","source":"/src","state":"disabled"}`,
		`plugin.enabled a@2.0.0 local local:owner {"state":"active"}`,
		`plugin.deleted a@1.0.0 local local:owner {"digest":"sha256:1"}`,
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q, %v", got, err)
	}
}

// What waits beside an approved version is kept apart from it, once, until it
// takes its place.
func TestTheCatalogKeepsWhatWaitsBeside(t *testing.T) {
	t.Parallel()
	st, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	c := &Records{store: st, tenant: "local", principal: "local:owner"}
	approved := registry.Record{
		Name: "a", Version: "1.0.0", Digest: "sha256:1", Source: "/src", State: registry.Active, ApprovedBy: "ann",
		Manifest: json.RawMessage(`{"name":"a"}`), RegisteredAt: time.Now().UTC().Truncate(time.Microsecond),
	}
	first := approved
	first.Digest, first.State, first.ApprovedBy, first.Beside = "sha256:2", registry.Quarantined, "", true
	second := first
	second.Digest = "sha256:3"
	for _, r := range []registry.Record{approved, first, second} {
		if err := c.Put(t.Context(), r, plugin.EntryPluginRegistered); err != nil {
			t.Fatal(err)
		}
	}
	if records, err := c.Plugins(t.Context()); err != nil || !reflect.DeepEqual(records, []registry.Record{approved, second}) {
		t.Errorf("%+v, %v", records, err)
	}
	now := second
	now.State, now.ApprovedBy, now.Beside = registry.Active, "bea", false
	if err := c.Approve(t.Context(), second, now, registry.Approval{Before: "sha256:1", After: "sha256:3", Difference: "sha256:d"}); err != nil {
		t.Fatal(err)
	}
	if records, err := c.Plugins(t.Context()); err != nil || !reflect.DeepEqual(records, []registry.Record{now}) {
		t.Errorf("%+v, %v", records, err)
	}
	if err := c.Approve(t.Context(), second, now, registry.Approval{}); plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Errorf("approved twice: %v", err)
	}
	var got []string
	err = st.Snapshot(t.Context(), func(r store.Reader) error {
		for e, err := range r.Entries(t.Context(), store.EntryFilter{Kind: string(plugin.EntryPluginApproved)}) {
			if err != nil {
				return err
			}
			got = append(got, e.Subject+" "+string(e.Body))
		}
		return nil
	})
	want := []string{`a@1.0.0 {"approved_by":"bea","before_digest":"sha256:1","difference_hash":"sha256:d","digest":"sha256:3"}`}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q, %v", got, err)
	}
}

// The catalog version changes with each change of the catalog, by any
// principal, and with nothing else.
func TestTheCatalogsVersionSaysWhenItChanged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var catalogs []*Records
	for range 2 { // two processes
		st, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		catalogs = append(catalogs, &Records{store: st, tenant: "local", principal: "local:owner"})
	}
	one, other := catalogs[0], catalogs[1]
	version := func() int64 {
		v, err := one.Version(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	r := registry.Record{
		Name: "a", Version: "1.0.0", Digest: "sha256:1", Path: "/p", Source: "/src", State: registry.Active,
		Manifest: json.RawMessage(`{"name":"a"}`), RegisteredAt: time.Now().UTC(),
	}
	last := version()
	for name, change := range map[string]func() error{
		"put":    func() error { return other.Put(t.Context(), r, plugin.EntryPluginRegistered) },
		"state":  func() error { return other.SetState(t.Context(), r, registry.Disabled, plugin.EntryPluginDisabled) },
		"by one": func() error { return one.SetState(t.Context(), r, registry.Active, plugin.EntryPluginEnabled) },
	} {
		if name != "put" { // in any order
			if err := other.Put(t.Context(), r, plugin.EntryPluginRegistered); err != nil {
				t.Fatal(err)
			}
			last = version()
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		now := version()
		if now == last || version() != now {
			t.Errorf("%s: version %d after %d", name, now, last)
		}
		last = now
	}
	err := other.store.Write(t.Context(), func(tx store.Tx) error {
		tx.Append(plugin.Entry{At: time.Now(), Tenant: "local", Kind: plugin.EntryCallSucceeded, Subject: "x", Principal: "x", Body: json.RawMessage(`{}`)})
		return nil
	})
	if err != nil || version() != last {
		t.Errorf("a call changed the catalog: %v", err)
	}
}
