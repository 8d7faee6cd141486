package app_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
	"github.com/mortise-dev/mortise/plugin"
)

// personal is what stands in all that ada has, and nowhere else.
const personal = "zq7personal9xk"

// TestErasureUnderLoad erases what is kept of a person while another makes calls, on both
// stores, and searches every table, file, index and log for it.
func TestErasureUnderLoad(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); eraseUnderLoad(t, "") })
	t.Run("postgresql", func(t *testing.T) { t.Parallel(); eraseUnderLoad(t, pgtest.Open(t)) })
}

func eraseUnderLoad(t *testing.T, url string) {
	home := t.TempDir()
	write(t, home, "mortise.yaml", "blobs: "+t.TempDir()+"\n")
	if url == "" {
		write(t, home, "mortise.yaml", "")
	}
	a, err := app.Open(t.Context(), app.Options{Home: home, Database: url, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	register(t, a, upper(t), false)
	ada, bob := plugin.Principal{Type: "user", ID: "ada", Scopes: []string{"*"}}, plugin.Principal{Type: "user", ID: "bob", Scopes: []string{"*"}}
	had := makePersonal(t, a, ada)
	bobs := keyedCall(t, a, bob, "bob-1", "what is bob's")
	if len(found(t, a, home, url)) == 0 {
		t.Fatal("nothing of it is found before it is erased: the search finds nothing")
	}

	// The load: calls with keys, which are rows with bodies, until the erasure is over.
	var load sync.WaitGroup
	over, loaded := make(chan struct{}), make(chan struct{})
	made := 0
	load.Go(func() {
		loaded := sync.OnceFunc(func() { close(loaded) })
		defer loaded()
		for n := 0; ; n++ {
			select {
			case <-over:
				return
			default:
			}
			if _, err := a.Kernel.Call(context.Background(), callOf(bob, fmt.Sprint("load-", n), "load")); err != nil {
				t.Errorf("call %d of another: %v", n, err)
				return
			}
			made++
			loaded()
		}
	})
	testwait.Receive(t, "the first call of the load", loaded)
	api := a.As(a.Principal).Admin()
	dry, err := api.Erase(t.Context(), "ada", true)
	if err != nil || dry.Counts["calls"] != had || dry.Counts["sessions"] == 0 || !dry.DryRun {
		t.Errorf("the dry run says %+v, %v; there are %d calls", dry, err, had)
	}
	before := len(found(t, a, home, url))
	done, err := api.Erase(t.Context(), "ada", false)
	close(over)
	load.Wait()
	if err != nil || done.DoneAt.IsZero() || done.Counts["calls"] != had || before == 0 {
		t.Fatalf("the erasure is %+v, %v; before it %d places had it", done, err, before)
	}
	if made == 0 {
		t.Error("there was no load")
	}
	if where := found(t, a, home, url); len(where) > 0 {
		t.Errorf("it is found in %q", where)
	}
	report, err := ledger.VerifyHome(t.Context(), a.Store, home)
	if err != nil || report.Fault != nil {
		t.Errorf("the ledger: %+v, %v", report.Fault, err)
	}
	t.Logf("%d calls of another meanwhile, %d entries, counts %v", made, report.Entries, done.Counts)
	if res, err := a.Kernel.Call(t.Context(), callOf(bob, "bob-1", "what is bob's")); err != nil || !res.Replayed || string(res.Data) != string(bobs) {
		t.Errorf("bob's answer is %s, %v", res.Data, err)
	}
	_, err = a.Kernel.Call(t.Context(), callOf(ada, "ada-0", personal+" 0"))
	if plugin.CodeOf(err) != plugin.CodeKeyConflict || !strings.Contains(err.Error(), "removed by erasure on "+time.Now().UTC().Format(time.DateOnly)) {
		t.Errorf("ada's key gives %v", err)
	}
	restoredIsErasedAgain(t, a, ada, home, url)
}

// restoredIsErasedAgain has a database forget that there was an erasure, as one has that was
// restored from a backup made before it.
func restoredIsErasedAgain(t *testing.T, a *app.App, ada plugin.Principal, home, url string) {
	t.Helper()
	rows, err := a.Store.Erasures(t.Context(), "local", false)
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d erasures, %v", len(rows), err)
	}
	keyedCall(t, a, ada, "ada-again", personal)
	if url != "" {
		pgtest.Exec(t, url, "DELETE FROM erasures")
	} else {
		db, err := sql.Open("sqlite", filepath.Join(home, "mortise.db"))
		if err == nil {
			_, err = db.Exec("DELETE FROM erasures")
			err = errors.Join(err, db.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		ids, err := a.Host.Removals(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if err := a.Host.Remove(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
	}
	if where := found(t, a, home, url); len(where) > 0 {
		t.Errorf("after a restore it is found in %q", where)
	}
}

func callOf(who plugin.Principal, key, text string) plugin.Call {
	input, _ := json.Marshal(map[string]string{"text": text})
	return plugin.Call{Tenant: "local", Principal: who, Origin: plugin.OriginCLI, Operation: "upper/upper", Input: input, Key: key}
}

func keyedCall(t *testing.T, a *app.App, who plugin.Principal, key, text string) []byte {
	t.Helper()
	res, err := a.Kernel.Call(t.Context(), callOf(who, key, text))
	if err != nil {
		t.Fatal(err)
	}
	return res.Data
}

// makePersonal makes one of each sort of thing that is ada's, and returns how many calls.
func makePersonal(t *testing.T, a *app.App, ada plugin.Principal) (calls int64) {
	t.Helper()
	ctx, k := t.Context(), a.As(ada)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for n := range 60 { // more than a batch
		keyedCall(t, a, ada, fmt.Sprint("ada-", n), fmt.Sprint(personal, " ", n))
		calls++
	}
	for _, size := range []int{1, 10_000} { // one in the database, one among the blobs
		s, err := k.Sessions().Create(ctx, session.Open{Name: "case"})
		must(err)
		_, err = k.Sessions().AddArtifact(ctx, s.ID, strings.NewReader(strings.Repeat(personal+"\n", size)), session.Add{Name: "a.txt"})
		must(err)
		_, err = a.Sessions.View(ctx, "local", s.ID)
		must(err)
	}
	base, err := k.Knowledge().Create(ctx, kb.Base{ID: "notes"})
	must(err)
	for n := range 60 {
		_, err = k.Knowledge().Ingest(ctx, kb.Source{KB: base.ID, ID: fmt.Sprint("doc-", n), Text: fmt.Sprintf("%s wrote %d of marmots", personal, n)})
		must(err)
	}
	must(a.Store.Write(ctx, func(tx store.Tx) error {
		return tx.PutKV(store.KVRow{KVKey: store.KVKey{Tenant: "local", Owner: "notes", Scope: "user::ada", Namespace: "n", Key: "k"}, Value: []byte(personal), Labels: []string{}, UpdatedAt: time.Now()})
	}))
	return calls
}

// found returns where it is found: files with all pages of the database and its log, and each
// row of each table.
func found(t *testing.T, a *app.App, home, url string) (where []string) {
	t.Helper()
	spelled := [][]byte{[]byte(personal), []byte(strings.ToUpper(personal)), []byte(hex.EncodeToString([]byte(personal))), []byte(hex.EncodeToString([]byte(strings.ToUpper(personal))))}
	has := func(data []byte) bool {
		return slices.ContainsFunc(spelled, func(form []byte) bool { return bytes.Contains(data, form) })
	}
	dirs := []string{home}
	if b := a.Config.Blobs; b != "" {
		dirs = append(dirs, b)
	}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil // gone meanwhile, or a socket
			}
			data, err := os.ReadFile(path)
			if err == nil && has(data) {
				where = append(where, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if url == "" {
		return where
	}
	db, err := sql.Open("pgx", pgtest.Super(url))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, table := range column(t, db, "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'") {
		if slices.ContainsFunc(column(t, db, "SELECT t::text FROM "+table+" t"), func(row string) bool { return has([]byte(row)) }) {
			where = append(where, "table "+table)
		}
	}
	return where
}

func column(t *testing.T, db *sql.DB, query string) (all []string) {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestErasureWaitsForWhatIsUnknown: an erasure is not done before calls of the person have
// ended, and a host that stays goes on with it then.
func TestErasureWaitsForWhatIsUnknown(t *testing.T) {
	t.Parallel()
	a := open(t, t.TempDir())
	row := store.CallRow{Tenant: "local", ID: "0192aaaa-0000-7000-8000-000000000001", Operation: "mail/send", Key: "k:1", Principal: "ada", State: store.CallUnknown, Attempt: 1, CreatedAt: time.Now(), UpdatedAt: time.Now()}
	if err := a.Store.Write(t.Context(), func(tx store.Tx) error { _, err := tx.InsertCall(row); return err }); err != nil {
		t.Fatal(err)
	}
	e, err := a.As(a.Principal).Admin().Erase(t.Context(), "ada", false)
	if err != nil || !e.DoneAt.IsZero() || e.Waiting != 1 {
		t.Fatalf("%+v, %v", e, err)
	}
	again, err := a.As(a.Principal).Admin().Erase(t.Context(), "ada", false)
	if err != nil || again.ID != e.ID {
		t.Errorf("asked again it is %+v, %v", again, err)
	}
	next := row
	next.State, next.Code = store.CallFailed, "internal"
	if err := a.Store.Write(t.Context(), func(tx store.Tx) error { _, err := tx.UpdateCall(row.Fence(), next); return err }); err != nil {
		t.Fatal(err)
	}
	ids, err := a.Host.Removals(t.Context())
	if err != nil || !slices.Contains(ids, "erasure:"+e.ID) {
		t.Fatalf("%q, %v", ids, err)
	}
	if err := a.Host.Remove(t.Context(), "erasure:"+e.ID); err != nil {
		t.Fatal(err)
	}
	all, err := a.As(a.Principal).Admin().Erasures(t.Context())
	if err != nil || len(all) != 1 || all[0].DoneAt.IsZero() {
		t.Errorf("%+v, %v", all, err)
	}
}

func oldBody(n int) []byte { return fmt.Appendf(nil, `{"old":%d}`, n) }

// oldCalls adds calls of bob with keys, that ended at a time.
func oldCalls(tx store.Tx, at time.Time, most int) error {
	for n := range most {
		hash, err := tx.PutBody("local", oldBody(n), time.Time{})
		if err != nil {
			return err
		}
		row := store.CallRow{
			Tenant: "local", ID: fmt.Sprintf("0192aaaa-0000-7000-8000-%012d", n), Operation: "upper/upper", Key: fmt.Sprint("k:old-", n), Principal: "bob",
			State: store.CallSucceeded, Attempt: 1, ResultHash: hash, Fingerprint: "none", CreatedAt: at, UpdatedAt: at,
		}
		if _, err := tx.InsertCall(row); err != nil {
			return err
		}
	}
	return nil
}

// TestRetentionUnderLoad removes the bodies of old calls while others are made.
func TestRetentionUnderLoad(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func() string{"sqlite": func() string { return "" }, "postgresql": func() string { return pgtest.Open(t) }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			text := "retention: {bodies: 30m, calls: 30d}\n"
			if name != "sqlite" {
				text += "blobs: " + t.TempDir() + "\n"
			}
			write(t, home, "mortise.yaml", text)
			a, err := app.Open(t.Context(), app.Options{Home: home, Database: url(), Log: quiet})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := a.Close(); err != nil {
					t.Error(err)
				}
			})
			register(t, a, upper(t), false)
			bob := plugin.Principal{Type: "user", ID: "bob", Scopes: []string{"*"}}
			old := time.Now().Add(-time.Hour)
			if err := a.Store.Write(t.Context(), func(tx store.Tx) error { return oldCalls(tx, old, 120) }); err != nil {
				t.Fatal(err)
			}
			var load sync.WaitGroup
			over, loaded := make(chan struct{}), make(chan struct{})
			load.Go(func() {
				loaded := sync.OnceFunc(func() { close(loaded) })
				defer loaded()
				for n := 0; ; n++ {
					select {
					case <-over:
						return
					default:
					}
					if _, err := a.Kernel.Call(context.Background(), callOf(bob, fmt.Sprint("load-", n), "load")); err != nil {
						t.Errorf("call %d: %v", n, err)
						return
					}
					loaded()
				}
			})
			testwait.Receive(t, "the first call of the load", loaded)
			states, err := a.As(a.Principal).Admin().ApplyRetention(t.Context())
			close(over)
			load.Wait()
			i := slices.IndexFunc(states, func(s host.RetentionState) bool { return s.Kind == "bodies" })
			if err != nil || i < 0 || states[i].Count != 120 || states[i].Done != 120 {
				t.Fatalf("%+v, %v", states, err)
			}
			for n := range 120 {
				if data, err := a.Store.Body(t.Context(), "local", canon.Sum(oldBody(n))); data != nil || err != nil {
					t.Fatalf("body %d is there: %v", n, err)
				}
			}
			_, err = a.Kernel.Call(t.Context(), callOf(bob, "old-7", "other"))
			if plugin.CodeOf(err) != plugin.CodeKeyConflict {
				t.Errorf("the key of an old call gives %v", err)
			}
			if report, err := ledger.VerifyHome(t.Context(), a.Store, home); err != nil || report.Fault != nil {
				t.Errorf("the ledger: %+v, %v", report.Fault, err)
			}
			if res, err := a.Kernel.Call(t.Context(), callOf(bob, "load-0", "load")); err != nil || !res.Replayed {
				t.Errorf("a young call is not answered as it was: %v", err)
			}
		})
	}
}
