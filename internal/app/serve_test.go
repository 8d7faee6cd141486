package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
	"github.com/mortise-dev/mortise/plugin"
)

// openOn opens a host on a PostgreSQL database. The test closes it.
func openOn(t *testing.T, home, url string) *app.App {
	t.Helper()
	a, err := app.Open(t.Context(), app.Options{Home: home, Database: url, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// working lets a host do what is waiting, until the returned function is called.
func working(t *testing.T, a *app.App) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Work(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("working: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// keyed calls upper with a key.
func keyed(t *testing.T, a *app.App, key string, noWait bool) plugin.Result {
	t.Helper()
	res, err := a.Kernel.Call(t.Context(), plugin.Call{
		Tenant: "local", Principal: plugin.Principal{Type: "user", ID: "local:owner", Scopes: []string{"*"}}, Origin: plugin.OriginCLI,
		Operation: "upper", Input: json.RawMessage(`{"text":"` + key + `"}`), Key: key, NoWait: noWait,
	})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// succeeds waits until a call has succeeded.
func succeeds(t *testing.T, a *app.App, id string) {
	t.Helper()
	testwait.Until(t, "the call "+id+" has succeeded", func() bool {
		row, err := a.Store.Call(t.Context(), "local", id)
		if err != nil {
			t.Fatal(err)
		}
		return row != nil && row.State == store.CallSucceeded
	})
}

func shareKey(t *testing.T, from, to string) {
	t.Helper()
	key, err := os.ReadFile(filepath.Join(from, store.KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	write(t, to, store.KeyFile, string(key))
}

func TestSeveralHostsShareOneDatabase(t *testing.T) {
	t.Parallel()
	url, homeA, homeB := pgtest.Open(t), t.TempDir(), t.TempDir()
	a := openOn(t, homeA, url)
	register(t, a, upper(t), true)
	first := keyed(t, a, "once", false)

	// Another node must have the key that the ledger is signed with.
	if b, err := app.Open(t.Context(), app.Options{Home: homeB, Database: url, Log: quiet}); err == nil {
		b.Close()
		t.Error("a node without ledger.key opened the database")
	} else if !strings.Contains(err.Error(), "copy ledger.key from another node") {
		t.Error(err)
	}
	shareKey(t, homeA, homeB)
	b := openOn(t, homeB, url)

	// What one registered the other has, and what one answered the other replays.
	again := keyed(t, b, "once", false)
	if string(again.Data) != `"ONCE"` || again.CallID != first.CallID {
		t.Errorf("the other host answered %s as call %s, want that of call %s", again.Data, again.CallID, first.CallID)
	}

	// A free node runs what another one queued, and is woken for it.
	a.SweepEvery(24 * time.Hour) // so that only a wake-up brings the call
	stopA := working(t, a)
	succeeds(t, b, keyed(t, b, "first", true).CallID)
	stopB := working(t, b)
	var ids []string
	for i := range 10 {
		ids = append(ids, keyed(t, []*app.App{a, b}[i%2], fmt.Sprint("shared", i), true).CallID)
	}
	for _, id := range ids {
		succeeds(t, a, id)
	}
	stopA()
	// The one that is left does it all.
	succeeds(t, a, keyed(t, a, "left", true).CallID)
	stopB()

	about, err := setup.AboutDatabase(t.Context(), homeA, config.Database(url))
	if err != nil || !strings.Contains(about, "PostgreSQL 1") || !strings.Contains(about, "synchronous_commit on, no synchronous standby") {
		t.Errorf("%s, %v", about, err)
	}

	// Each has a chain of its own, and each can prove them all.
	if err := errors.Join(b.Close(), a.Close()); err != nil {
		t.Fatal(err)
	}
	for _, home := range []string{homeA, homeB} {
		st, err := setup.Reading(t.Context(), home, config.Database(url))
		if err != nil {
			t.Fatal(err)
		}
		key, err := store.ReadKey(home)
		if err != nil {
			t.Fatal(err)
		}
		anchors, err := store.ReadAnchors(home)
		if err != nil {
			t.Fatal(err)
		}
		report, err := ledger.Verify(t.Context(), st, key, anchors...)
		if err != nil || report.Fault != nil || report.Chains != 2 || len(anchors) == 0 {
			t.Errorf("%d anchors, %+v, %v", len(anchors), report, err)
		}
		if err := st.Write(t.Context(), func(store.Tx) error { return nil }); !errors.Is(err, store.ErrReadOnly) {
			t.Errorf("writing to what was opened for reading: %v", err)
		}
		st.Close()
	}
	if _, err := os.Stat(filepath.Join(homeA, "mortise.db")); !os.IsNotExist(err) {
		t.Errorf("there is a SQLite database too: %v", err)
	}
}

func TestWhatIsQueuedWaitsForAHostThatStays(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	command := open(t, home)
	register(t, command, upper(t), true)
	if _, err := os.Stat(filepath.Join(home, "jobs.db")); !os.IsNotExist(err) {
		t.Errorf("no wake-up was sent, and there is a queue: %v", err)
	}
	before := keyed(t, command, "before", true)
	// As if the wake-up had been lost.
	for _, name := range []string{"jobs.db", "jobs.db-wal", "jobs.db-shm"} {
		os.Remove(filepath.Join(home, name))
	}
	host := open(t, home)
	working(t, host)
	succeeds(t, command, before.CallID)
}

func TestOnlyOneHostServesADirectory(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for range 100 {
		release, err := setup.Exclusive(home)
		if err != nil {
			t.Fatal(err)
		}
		_, err = setup.Exclusive(home)
		if plugin.CodeOf(err) != plugin.CodeUnavailable || !strings.Contains(err.Error(), fmt.Sprintf("process %d serves %s already", os.Getpid(), home)) {
			t.Fatalf("the second start: %v", err)
		}
		release()
	}
	var wg sync.WaitGroup
	var won atomic.Int32
	for range 100 {
		wg.Go(func() {
			if _, err := setup.Exclusive(home); err == nil {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	if n := won.Load(); n != 1 {
		t.Errorf("%d of 100 starts at once serve the directory", n)
	}
}

func TestADatabaseThatCannotBeUsedIsNamedWithoutItsPassword(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"mysql://ann:hunter2@db/x":                                  "the database's scheme is mysql",
		"ann:hunter2@db/x":                                          "the database is no URL",
		"postgres://ann:hunter2@127.0.0.1:1/x":                      "postgres://ann:hidden@127.0.0.1:1/x does not answer",
		"postgres://ann:hunter2@127.0.0.1:port/x":                   "cannot be used",
		"postgres://ann@127.0.0.1:1/x?password=hunter2&sslmode=odd": "cannot be used",
	} {
		_, err := app.Open(t.Context(), app.Options{Home: t.TempDir(), Database: url, Log: quiet})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
