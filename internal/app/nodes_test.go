package app_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
	"github.com/mortise-dev/mortise/plugin"
)

// node opens a host in a data directory of its own on a database that others
// use too; the key is that of the host in first, "" for the first itself.
func node(t *testing.T, url, first string) *app.App {
	t.Helper()
	home := t.TempDir()
	if first != "" {
		key, err := os.ReadFile(filepath.Join(first, "ledger.key"))
		if err != nil {
			t.Fatal(err)
		}
		write(t, home, "ledger.key", string(key))
	}
	return nodeIn(t, url, home)
}

func nodeIn(t *testing.T, url, home string) *app.App {
	t.Helper()
	a, err := app.Open(t.Context(), app.Options{Home: home, Database: url, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// vanish removes a data directory, packages and all.
func vanish(t *testing.T, home string) {
	t.Helper()
	err := filepath.WalkDir(home, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	})
	if err == nil {
		err = os.RemoveAll(home)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A node that starts on a database in use registers nothing, and carries out
// what another registered whose machine is gone.
func TestAPackageIsOnEveryNode(t *testing.T) {
	t.Parallel()
	url := pgtest.Open(t)
	one := node(t, url, "")
	dir := upper(t)
	write(t, dir, "data.txt", strings.Repeat("several parts\n", 200_000))
	registered := register(t, one, dir, false)
	before := entries(t, one)
	if n := len(slices.DeleteFunc(slices.Clone(before), func(line string) bool { return !strings.HasPrefix(line, "plugin.registered") })); n < 2 {
		t.Fatalf("%d registered: %q", n, before) // the host's own, and upper
	}

	two := node(t, url, one.Home)
	if after := entries(t, two); !slices.Equal(before, after) {
		t.Errorf("another node wrote something: %q, before %q", after, before)
	}
	list, err := two.Registry.List(t.Context())
	if err != nil || len(list) < 2 {
		t.Fatalf("%v, %v", list, err)
	}
	for _, info := range list {
		if filepath.Dir(info.Path) != filepath.Join(two.Home, "packages") {
			t.Errorf("%s is in %s", info.Name, info.Path)
		}
		if _, err := os.Stat(info.Path); (err == nil) != (info.Source == registry.SourceBundled) {
			t.Errorf("%s, before it is called: %v", info.Name, err)
		}
	}

	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	vanish(t, one.Home)
	if res, err := call(t, two, "upper", `{"text":"brought"}`); err != nil || string(res.Data) != `"BROUGHT"` {
		t.Fatalf("%s, %v", res.Data, err)
	}
	place := filepath.Join(two.Home, "packages", filepath.Base(registered.Path))
	want, err := os.ReadFile(filepath.Join(dir, "data.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(place, "data.txt")); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
	}
	key, err := store.ReadKey(two.Home)
	if err != nil {
		t.Fatal(err)
	}
	report, err := ledger.Verify(t.Context(), two.Store, key)
	if err != nil || report.Fault != nil || report.Bodies < 5 {
		t.Errorf("%+v %+v, %v", report, report.Fault, err)
	}

	// A node's own files are its own to watch over.
	three := node(t, url, two.Home)
	if res, err := call(t, three, "upper", `{"text":"once more"}`); err != nil || string(res.Data) != `"ONCE MORE"` {
		t.Fatalf("%s, %v", res.Data, err)
	}
	if err := three.Close(); err != nil {
		t.Fatal(err)
	}
	spoilt := filepath.Join(three.Home, "packages", filepath.Base(registered.Path), "data.txt")
	if err := os.Chmod(spoilt, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(spoilt, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	if res, err := call(t, two, "upper", `{"text":"unharmed"}`); err != nil || string(res.Data) != `"UNHARMED"` {
		t.Errorf("%s, %v", res.Data, err)
	}
	for _, a := range []*app.App{nodeIn(t, url, three.Home), two} { // it is held on all
		if err := a.Registry.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := call(t, a, "upper", `{"text":"x"}`); plugin.CodeOf(err) != plugin.CodeQuarantined {
			t.Errorf("%v", err)
		}
	}
}

// A part of a package that the database lost is said to be, and comes back with
// the package.
func TestAPartThatWasLostComesBack(t *testing.T) {
	t.Parallel()
	url := pgtest.Open(t)
	one := node(t, url, "")
	dir := upper(t)
	register(t, one, dir, false)
	pgtest.Exec(t, url, "UPDATE bodies SET data = NULL WHERE tenant = ''")
	two := node(t, url, one.Home)
	if _, err := call(t, two, "upper", `{"text":"x"}`); plugin.CodeOf(err) != plugin.CodeUnavailable || !strings.Contains(err.Error(), "register the package again") {
		t.Errorf("%v", err)
	}
	register(t, one, dir, false)
	if res, err := call(t, two, "upper", `{"text":"x"}`); err != nil || string(res.Data) != `"X"` {
		t.Errorf("%s, %v", res.Data, err)
	}
}

// No record says where a data directory is, so that it may go elsewhere.
func TestADataDirectoryMayBeMoved(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), "before")
	a, err := app.Open(t.Context(), app.Options{Home: home, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	register(t, a, upper(t), false)
	before := entries(t, a)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	moved := filepath.Join(t.TempDir(), "after")
	if err := os.Rename(home, moved); err != nil {
		t.Fatal(err)
	}
	b := open(t, moved)
	if after := entries(t, b); !slices.Equal(before, after) {
		t.Errorf("moving wrote something: %q, before %q", after, before)
	}
	if res, err := call(t, b, "upper", `{"text":"moved"}`); err != nil || string(res.Data) != `"MOVED"` {
		t.Errorf("%s, %v", res.Data, err)
	}
}

// A call that one node accepts is due on every node at once, whatever the clocks of the nodes'
// machines say: its times are the database's.
func TestACallIsDueOnEveryNodeAtOnce(t *testing.T) {
	t.Parallel()
	for _, off := range []string{"-2 hours", "2 hours"} { // the machine of both nodes is ahead, and behind
		url := pgtest.Open(t)
		pgtest.Shift(t, url, off)
		one := node(t, url, "")
		register(t, one, upper(t), false)
		two := node(t, url, one.Home)
		before := two.Store.Now()
		res, err := one.Kernel.Call(t.Context(), plugin.Call{
			Tenant: "local", Principal: one.Principal, Origin: plugin.OriginCLI, Operation: "upper/upper", Input: json.RawMessage(`{"text":"now"}`), NoWait: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		row, err := two.Ledger.Call(t.Context(), "local", res.CallID)
		if err != nil || row == nil {
			t.Fatalf("%v, %v", row, err)
		}
		after := two.Store.Now()
		for what, at := range map[string]time.Time{"is due": row.WakeAt, "was accepted": row.CreatedAt, "was changed": row.UpdatedAt} {
			if at.Before(before.Add(-time.Minute)) || at.After(after.Add(time.Second)) {
				t.Errorf("with a database that is off by %s the call %s at %s; by its clock it is %s", off, what, at, after)
			}
		}
		due, err := two.Kernel.Due(t.Context(), 10)
		if err != nil || !slices.ContainsFunc(due, func(r ledger.CallRow) bool { return r.ID == res.CallID }) {
			t.Errorf("with a database that is off by %s the other node finds %d calls due, and not this one: %v", off, len(due), err)
		}
		if err := two.Kernel.Advance(t.Context(), "local", res.CallID); err != nil {
			t.Fatal(err)
		}
		if got, err := two.Kernel.Await(t.Context(), "local", res.CallID); err != nil || string(got.Data) != `"NOW"` {
			t.Errorf("the other node made %s of it, %v", got.Data, err)
		}
	}
}
