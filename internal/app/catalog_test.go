package app

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/registry"
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
	c := catalog{store: st, tenant: "local", principal: "local:owner"}
	if records, err := c.Plugins(t.Context()); err != nil || len(records) != 0 {
		t.Errorf("%v, %v", records, err)
	}

	linked := registry.Record{
		Name: "a", Version: "1.0.0", Digest: "sha256:1", Path: "/p", Source: "/src", Dev: true, State: registry.Active,
		Manifest: json.RawMessage(`{"name":"a"}`), RegisteredAt: time.Now().UTC().Truncate(time.Microsecond),
	}
	installed := linked
	installed.Version, installed.Digest, installed.Dev, installed.State = "2.0.0", "sha256:2", false, registry.Disabled
	for _, r := range []registry.Record{linked, installed} {
		if err := c.Put(t.Context(), r, plugin.EntryPluginRegistered); err != nil {
			t.Fatal(err)
		}
	}
	records, err := c.Plugins(t.Context())
	if err != nil || !reflect.DeepEqual(records, []registry.Record{linked, installed}) {
		t.Errorf("%+v, %v", records, err)
	}

	if err := c.SetState(t.Context(), "a", "2.0.0", registry.Active, plugin.EntryPluginEnabled); err != nil {
		t.Error(err)
	}
	if err := c.Delete(t.Context(), "a", "1.0.0"); err != nil {
		t.Error(err)
	}
	installed.State = registry.Active
	if records, err := c.Plugins(t.Context()); err != nil || !reflect.DeepEqual(records, []registry.Record{installed}) {
		t.Errorf("%+v, %v", records, err)
	}

	// What is gone is not found, and leaves no entry.
	if err := c.SetState(t.Context(), "a", "1.0.0", registry.Active, plugin.EntryPluginEnabled); plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Errorf("%v", err)
	}
	if err := c.Delete(t.Context(), "b", "1.0.0"); plugin.CodeOf(err) != plugin.CodeNotFound {
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
		`plugin.deleted a@1.0.0 local local:owner {}`,
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q, %v", got, err)
	}
}
