package app_test

import (
	"slices"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
)

// TestPackagesOfRemovedPluginsAreRemoved: the database of several nodes keeps the files of a
// plugin that was deleted for the configured period only, and those of other plugins for good.
func TestPackagesOfRemovedPluginsAreRemoved(t *testing.T) {
	t.Parallel()
	needPython(t)
	home, url, blobs := t.TempDir(), pgtest.Open(t), t.TempDir()
	write(t, home, "mortise.yaml", "retention: {packages: 1h}\nblobs: "+blobs+"\n")
	a := openOn(t, home, url)
	register(t, a, upper(t), false)
	register(t, a, posting(t), false)
	bodies := func() (n int) {
		for body, err := range a.Store.Bodies(host.Everywhere(t.Context())) {
			if err != nil {
				t.Fatal(err)
			}
			if body.Tenant == "" {
				n++
			}
		}
		return n
	}
	apply := func() host.RetentionState {
		states, err := a.As(a.Principal).Admin().ApplyRetention(t.Context())
		i := slices.IndexFunc(states, func(s host.RetentionState) bool { return s.Kind == "packages" })
		if err != nil || i < 0 {
			t.Fatalf("%+v, %v", states, err)
		}
		return states[i]
	}
	all := bodies()
	if _, err := a.Registry.Delete(t.Context(), "posting"); err != nil {
		t.Fatal(err)
	}
	if got := apply(); got.Done != 0 || got.Period != time.Hour || bodies() != all {
		t.Fatalf("before its period: %+v, %d of %d are left", got, bodies(), all)
	}
	pgtest.Exec(t, url, "UPDATE bodies SET expires_at = 1 WHERE tenant = '' AND expires_at <> 0") // as if the period had passed
	if got := apply(); got.Done == 0 || got.Count != got.Done || got.Bytes == 0 || bodies() != all-int(got.Done) {
		t.Errorf("after its period: %+v, %d of %d are left", got, bodies(), all)
	}
	if kept := bodies(); kept == 0 || apply().Done != 0 || bodies() != kept {
		t.Error("files of a plugin that is there were removed")
	}
	another := t.TempDir()
	write(t, another, "mortise.yaml", "blobs: "+blobs+"\n")
	shareKey(t, home, another)
	b, err := app.Open(t.Context(), app.Options{Home: another, Database: url, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	if res := keyed(t, b, "again", false); res.Status != "succeeded" {
		t.Errorf("the other node runs %+v", res)
	}
}
