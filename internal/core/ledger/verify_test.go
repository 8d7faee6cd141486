package ledger_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/chain"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
)

func raw(t testing.TB, dir string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, sqlite.File)+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// tamper changes the database behind everyone's back.
func tamper(t testing.TB, dir, query string, args ...any) {
	t.Helper()
	db := raw(t, dir)
	defer db.Close()
	if _, err := db.Exec(query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// session opens the ledger in dir, records n calls and closes everything.
func session(t testing.TB, dir string, n int) {
	t.Helper()
	st := openStore(t, dir)
	l := openLedger(t, st, ledger.Options{})
	for i := range n {
		if err := l.Record(context.Background(), "t", plugin.EntryCallSucceeded, record(fmt.Sprintf("call-%d", i)), time.Now(), false); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

func verify(t testing.TB, dir string) ledger.Report {
	t.Helper()
	anchor, err := chain.ReadAnchor(dir)
	if err != nil {
		t.Fatal(err)
	}
	key, err := store.ReadKey(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	st, err := sqlite.Open(context.Background(), dir, sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	report, err := ledger.Verify(context.Background(), st, key, anchor)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// relink recomputes the hashes of the entries from a place on, as an attacker would who
// knows everything except the key.
func relink(t testing.TB, dir string, from int64) (head string) {
	t.Helper()
	st, err := sqlite.Open(context.Background(), dir, sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	var entries []plugin.Entry
	for e, err := range st.Entries(context.Background(), store.EntryFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	st.Close()
	for _, e := range entries {
		if e.Seq >= from {
			e.Prev = head
			e.Hash = chain.Hash(&e)
			tamper(t, dir, "UPDATE entries SET prev = ?, hash = ? WHERE seq = ?", e.Prev, e.Hash, e.Seq)
		}
		head = e.Hash
	}
	return head
}

const swapBodies = `UPDATE entries SET body = CASE seq WHEN 3 THEN (SELECT body FROM entries WHERE seq = 6)
	ELSE (SELECT body FROM entries WHERE seq = 3) END WHERE seq IN (3, 6)`

func TestTampering(t *testing.T) {
	pristine := t.TempDir()
	session(t, pristine, 10)
	if r := verify(t, pristine); r.Fault != nil || r.Entries != 10 || r.Chains != 1 || len(r.Notes) != 0 {
		t.Fatalf("the ledger as it was written: %+v, fault %+v", r, r.Fault)
	}
	do := func(query string, args ...any) func(*testing.T, string) {
		return func(t *testing.T, dir string) { tamper(t, dir, query, args...) }
	}
	relinked := func(from int64, queries ...string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			for _, q := range queries {
				tamper(t, dir, q)
			}
			head := relink(t, dir, from)
			tamper(t, dir, "UPDATE chains SET head = ?", head)
		}
	}
	forge := func(t *testing.T, dir string) (e plugin.Entry) {
		db := raw(t, dir)
		defer db.Close()
		e = plugin.Entry{Chain: 1, Seq: 11, At: at, Tenant: "t", Kind: "call.succeeded", Subject: "forged", Body: []byte(`{}`)}
		if err := db.QueryRow("SELECT hash FROM entries WHERE seq = 10").Scan(&e.Prev); err != nil {
			t.Fatal(err)
		}
		e.Hash = chain.Hash(&e)
		if _, err := db.Exec("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			e.Chain, e.Seq, e.At.UnixMicro(), e.Tenant, e.Kind, e.Subject, e.Principal, string(e.Body), e.Prev, e.Hash); err != nil {
			t.Fatal(err)
		}
		return e
	}
	for _, test := range []struct {
		name   string
		tamper func(t *testing.T, dir string)
		seq    int64
		what   string
	}{
		{"changed body", do("UPDATE entries SET body = replace(body, 'ada', 'eve') WHERE seq = 4"), 4, "was changed"},
		{"changed principal", do("UPDATE entries SET principal = 'user:eve' WHERE seq = 4"), 4, "was changed"},
		{"changed time", do("UPDATE entries SET at = at + 1 WHERE seq = 1"), 1, "was changed"},
		{"text moved between fields", do("UPDATE entries SET tenant = 'tcall', kind = '.succeeded' WHERE seq = 4"), 4, "was changed"},
		{"changed hash", do("UPDATE entries SET hash = prev WHERE seq = 7"), 7, "was changed"},
		{"deleted first", do("DELETE FROM entries WHERE seq = 1"), 1, "is missing"},
		{"deleted middle", do("DELETE FROM entries WHERE seq IN (5, 6)"), 5, "entries 5 to 6 are missing"},
		{"deleted last", do("DELETE FROM entries WHERE seq = 10"), 10, "tail is cut off"},
		{"deleted last and head moved", do("DELETE FROM entries WHERE seq = 10; UPDATE chains SET seq = 9, head = (SELECT hash FROM entries WHERE seq = 9)"), 9, "does not bear the key's signature"},
		{"deleted middle and renumbered", do("DELETE FROM entries WHERE seq = 5; UPDATE entries SET seq = seq - 1 WHERE seq > 5"), 5, "was changed"},
		{"swapped bodies", do(swapBodies), 3, "was changed"},
		{"swapped rows", do("UPDATE entries SET seq = -1 WHERE seq = 3; UPDATE entries SET seq = 3 WHERE seq = 6; UPDATE entries SET seq = 6 WHERE seq = -1"), 3, "was changed"},
		{"swapped bodies, two hashes computed again", func(t *testing.T, dir string) {
			tamper(t, dir, swapBodies)
			relink(t, dir, 3)
			tamper(t, dir, "UPDATE entries SET prev = 'x' WHERE seq = 8")
		}, 8, "was changed"},
		{"swapped bodies, hashes computed again", func(t *testing.T, dir string) { tamper(t, dir, swapBodies); relink(t, dir, 3) }, 10, "not the one the anchor remembers"},
		{"the same without an anchor", func(t *testing.T, dir string) {
			tamper(t, dir, swapBodies)
			relink(t, dir, 3)
			os.Remove(filepath.Join(dir, chain.AnchorFile))
		}, 10, "rewritten with new hashes"},
		{"the same and the head", func(t *testing.T, dir string) {
			relinked(3, swapBodies)(t, dir)
			os.Remove(filepath.Join(dir, chain.AnchorFile))
		}, 10, "does not bear the key's signature"},
		{"an entry of another history linked in", func(t *testing.T, dir string) {
			e, err := readEntry(dir, 5)
			if err != nil {
				t.Fatal(err)
			}
			e.Prev = strings.Repeat("0", 64)
			tamper(t, dir, "UPDATE entries SET prev = ?, hash = ? WHERE seq = 5", e.Prev, chain.Hash(e))
		}, 5, "does not follow entry 4"},
		{"appended", func(t *testing.T, dir string) { forge(t, dir) }, 11, "was not written by this ledger"},
		{"appended and head forged", func(t *testing.T, dir string) {
			e := forge(t, dir)
			tamper(t, dir, "UPDATE chains SET seq = 11, head = ?", e.Hash)
		}, 11, "does not bear the key's signature"},
		{"an entry before the first", do("INSERT INTO entries SELECT chain, 0, at, tenant, kind, subject, principal, body, '', hash FROM entries WHERE seq = 1"), 0, "was not written by this ledger"},
		{"a chain of its own", do("INSERT INTO entries SELECT 2, seq, at, tenant, kind, subject, principal, body, prev, hash FROM entries WHERE seq = 1"), 1, "was changed"},
		{"head removed", do("DELETE FROM chains"), 10, "head of the chain is missing"},
		{"signature removed", do("UPDATE chains SET mac = ''"), 10, "does not bear the key's signature"},
		{"all entries deleted", do("DELETE FROM entries"), 1, "entries 1 to 10 are missing"},
		{"everything deleted", do("DELETE FROM entries; DELETE FROM chains"), 1, "the anchor remembers entry 10"},
		{"everything deleted and written again", func(t *testing.T, dir string) {
			tamper(t, dir, "DELETE FROM entries; DELETE FROM chains")
			session(t, dir, 12)
		}, 10, "not the one the anchor remembers"},
		{"another key", func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, store.KeyFile), bytes.Repeat([]byte{7}, 32), 0o600); err != nil {
				t.Fatal(err)
			}
		}, 10, "the anchor does not bear"},
		{"key removed", func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, store.KeyFile)) }, 10, "ledger.key is missing"},
		{"anchor moved back", func(t *testing.T, dir string) {
			if err := chain.WriteAnchor(dir, &store.Anchor{Chain: 1, Seq: 1, Head: "x", MAC: "y"}); err != nil {
				t.Fatal(err)
			}
		}, 1, "the anchor does not bear"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(pristine)); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(dir, store.KeyFile), 0o600); err != nil {
				t.Fatal(err)
			}
			test.tamper(t, dir)
			f := verify(t, dir).Fault
			if f == nil {
				t.Fatal("nothing was found")
			}
			if f.Seq != test.seq || !strings.Contains(f.What, test.what) {
				t.Errorf("found at %d: %s\nwant at %d: something of %q", f.Seq, f.What, test.seq, test.what)
			}
		})
	}
}

func readEntry(dir string, seq int64) (*plugin.Entry, error) {
	st, err := sqlite.Open(context.Background(), dir, sqlite.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer st.Close()
	return st.Entry(context.Background(), 1, seq)
}

func TestOlderCopyOfTheDatabase(t *testing.T) {
	dir := t.TempDir()
	session(t, dir, 3)
	older, err := os.ReadFile(filepath.Join(dir, sqlite.File))
	if err != nil {
		t.Fatal(err)
	}
	session(t, dir, 4)
	if err := os.WriteFile(filepath.Join(dir, sqlite.File), older, 0o600); err != nil {
		t.Fatal(err)
	}
	if f := verify(t, dir).Fault; f == nil || f.Seq != 4 || !strings.Contains(f.What, "older copy") {
		t.Errorf("found %+v", f)
	}
	// Written further it is no more honest.
	session(t, dir, 9)
	if f := verify(t, dir).Fault; f == nil || f.Seq != 7 || !strings.Contains(f.What, "anchor remembers") {
		t.Errorf("written further, found %+v", f)
	}
}

func TestChangedBody(t *testing.T) {
	dir := t.TempDir()
	st := openStore(t, dir)
	var hash string
	if err := st.Write(t.Context(), func(tx store.Tx) (err error) {
		hash, err = tx.PutBody("t", []byte("answer"), time.Time{})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	st.Close()
	if r := verify(t, dir); r.Fault != nil || r.Bodies != 1 {
		t.Errorf("as it was written: %+v, fault %+v", r, r.Fault)
	}
	tamper(t, dir, "UPDATE bodies SET data = 'another'")
	if f := verify(t, dir).Fault; f == nil || !strings.Contains(f.What, hash) {
		t.Errorf("found %+v", f)
	}
}

func TestNotes(t *testing.T) {
	dir := t.TempDir()
	session(t, dir, 0)
	if r := verify(t, dir); r.Fault != nil || len(r.Notes) != 0 {
		t.Errorf("a new ledger: %+v", r)
	}
	session(t, dir, 1)
	os.Remove(filepath.Join(dir, chain.AnchorFile))
	if r := verify(t, dir); r.Fault != nil || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "no anchor") {
		t.Errorf("without anchor: %+v, fault %+v", r, r.Fault)
	}
	tamper(t, dir, "DELETE FROM entries; DELETE FROM chains")
	if r := verify(t, dir); r.Fault != nil || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "yet there is a key") {
		t.Errorf("emptied, without anchor: %+v, fault %+v", r, r.Fault)
	}
}

func TestVerifyWhileWriting(t *testing.T) {
	dir := t.TempDir()
	st := openStore(t, dir)
	l := openLedger(t, st, ledger.Options{Flush: time.Millisecond})
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := l.Record(context.Background(), "t", plugin.EntryCallSucceeded, record("a"), at, i%7 == 0); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	testwait.Until(t, "the key is written, with the first entry", func() bool {
		_, err := store.ReadKey(dir)
		return err == nil
	})
	for range 10 {
		if r := verify(t, dir); r.Fault != nil {
			t.Errorf("found %+v", r.Fault)
		}
	}
	close(stop)
	<-stopped
}
