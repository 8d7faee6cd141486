package postgres_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/postgres"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
)

// three makes a ledger of three chains with n entries each, and closes it.
func three(t *testing.T, url, home string, n int) {
	t.Helper()
	var stores []*postgres.Store
	for range 3 {
		stores = append(stores, open(t, url, postgres.Options{Home: home}))
	}
	for range n {
		for _, st := range stores {
			write(t, st)
		}
	}
	for _, st := range stores {
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTamperingWithOneOfThreeChains(t *testing.T) {
	t.Parallel()
	url, home := pgtest.Open(t), t.TempDir()
	three(t, url, home, 5)
	st := open(t, url, postgres.Options{ReadOnly: true})
	if r := verified(t, st, home); r.Entries != 15 || r.Chains != 3 || len(r.Notes) != 0 {
		t.Fatalf("as it was written: %+v", r)
	}
	anchors, err := store.ReadAnchors(home)
	if err != nil || len(anchors) != 3 {
		t.Fatalf("the anchors are %v, %v", anchors, err)
	}
	key, err := store.ReadKey(home)
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, url, "CREATE TABLE kept_entries AS SELECT * FROM entries; CREATE TABLE kept_chains AS SELECT * FROM chains")
	for _, test := range []struct {
		name, query string
		chain, seq  int64
		what        string
	}{
		{"changed", "UPDATE entries SET principal = 'eve' WHERE chain = 2 AND seq = 3", 2, 3, "was changed"},
		{"deleted", "DELETE FROM entries WHERE chain = 3 AND seq = 2", 3, 2, "is missing"},
		{"tail cut off", "DELETE FROM entries WHERE chain = 1 AND seq = 5", 1, 5, "tail is cut off"},
		{"moved to another chain", "UPDATE entries SET chain = 4 WHERE chain = 3 AND seq = 5", 3, 5, "tail is cut off"},
		{"swapped between chains", "UPDATE entries SET body = '[]' WHERE chain = 2 AND seq = 5", 2, 5, "was changed"},
		{"a head put back", "DELETE FROM entries WHERE chain = 2 AND seq = 5; UPDATE chains SET seq = 4, head = (SELECT hash FROM entries WHERE chain = 2 AND seq = 4) WHERE id = 2", 2, 4, "does not bear"},
		{"a head removed", "DELETE FROM chains WHERE id = 2", 2, 5, "head of the chain is missing"},
		{"a head emptied", "UPDATE chains SET seq = 0, head = '', mac = '' WHERE id = 2", 2, 5, "head of the chain is missing"},
		{"a chain removed", "DELETE FROM entries WHERE chain = 2; DELETE FROM chains WHERE id = 2", 2, 1, "chain is missing and its anchor"},
		{"all removed", "DELETE FROM entries; DELETE FROM chains", 1, 1, "the ledger is empty"},
	} {
		pgtest.Exec(t, url, test.query)
		report, err := ledger.Verify(t.Context(), st, key, anchors...)
		if err != nil {
			t.Fatal(err)
		}
		if f := report.Fault; f == nil || f.Chain != test.chain || f.Seq != test.seq || !strings.Contains(f.What, test.what) {
			t.Errorf("%s: found %+v, want entry %d of chain %d: something of %q", test.name, f, test.seq, test.chain, test.what)
		}
		pgtest.Exec(t, url, `DELETE FROM entries; INSERT INTO entries SELECT * FROM kept_entries;
			DELETE FROM chains; INSERT INTO chains SELECT * FROM kept_chains`)
	}
	verified(t, st, home)

	// Without an anchor of its own a chain is noted.
	os.Remove(filepath.Join(home, "ledger-2.anchor"))
	if r := verified(t, st, home); len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "no anchor of chain 2") {
		t.Errorf("the notes are %q", r.Notes)
	}
}

func TestOlderCopyOfOneChain(t *testing.T) {
	t.Parallel()
	url, home := pgtest.Open(t), t.TempDir()
	three(t, url, home, 2)
	pgtest.Exec(t, url, "CREATE TABLE kept_chains AS SELECT * FROM chains")
	three(t, url, home, 2)
	for chain := 1; chain <= 3; chain++ {
		pgtest.Exec(t, url, fmt.Sprintf(`DELETE FROM entries WHERE chain = %d AND seq > 2;
			UPDATE chains SET seq = k.seq, head = k.head, mac = k.mac FROM kept_chains k WHERE k.id = chains.id AND k.id = %[1]d`, chain))
	}
	three(t, url, home, 1) // what is written further washes nothing away
	st := open(t, url, postgres.Options{ReadOnly: true})
	key, err := store.ReadKey(home)
	if err != nil {
		t.Fatal(err)
	}
	anchors, err := store.ReadAnchors(home)
	if err != nil {
		t.Fatal(err)
	}
	report, err := ledger.Verify(t.Context(), st, key, anchors...)
	if f := report.Fault; err != nil || f == nil || f.Chain != 1 || f.Seq != 4 || !strings.Contains(f.What, "older copy") {
		t.Errorf("found %+v, %v", f, err)
	}
}
