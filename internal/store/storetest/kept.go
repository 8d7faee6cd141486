package storetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// sameKept compares rows, which the store gave a MAC and the hash of a text.
func sameKept[T any](got []T, want ...T) bool {
	bare := slices.Clone(got)
	for i := range bare {
		v := reflect.ValueOf(&bare[i]).Elem()
		if v.FieldByName("MAC").String() == "" {
			return false
		}
		v.FieldByName("MAC").SetString("")
		if hash := v.FieldByName("TextHash"); hash.IsValid() {
			hash.SetString("")
		}
	}
	return reflect.DeepEqual(bare, want)
}

var storedKey = store.KVKey{Tenant: "t", Owner: "notes", Scope: "user::ada", Namespace: "storage/", Key: "k"}

// fillKept puts a row into each table of [keptReads] twice, the second time as
// another's.
func fillKept(t *testing.T, b *bundle) {
	t.Helper()
	insertKBs(t, b, newKB("notes"), newKB("other"))
	putDocument(t, b, newDocument("notes", "doc_1"), chunk(0, "apples"))
	putDocument(t, b, newDocument("other", "doc_2"), chunk(0, "pears"))
	write(t, b, func(tx store.Tx) error {
		var errs []error
		for _, id := range []string{"sess_1", "sess_2"} {
			_, err := tx.InsertMessage(store.MessageRow{Tenant: "t", SessionID: id})
			errs = append(errs, err, tx.InsertConversation(store.ConversationRow{Tenant: "t", SessionID: id, Agent: "desk", Open: true, CreatedAt: epoch, UpdatedAt: epoch}))
			_, err = tx.InsertMessage(store.MessageRow{Tenant: "t", SessionID: id, Role: "user", Body: []byte(`{"sender":"ada"}`), CallID: "c", Labels: []string{"untrusted"}, At: epoch})
			errs = append(errs, err)
		}
		mine, other := storedKey, storedKey
		other.Scope = "user::bob"
		for _, key := range []store.KVKey{mine, other} {
			errs = append(errs, tx.PutKV(store.KVRow{KVKey: key, Value: []byte("1"), Labels: []string{"untrusted"}, ExpiresAt: epoch, UpdatedAt: epoch}))
		}
		for _, id := range []string{"plan_1", "plan_2"} {
			plan := newPlan()
			plan.ID, plan.Key = id, "k:"+id
			_, err := tx.InsertPlan(plan, []store.StepRow{
				{N: 1, StepID: "a", Operation: "mail/send", Version: "1.0.0", PackageDigest: "sha256:p", Input: "{}", Gate: "human_apply", Why: "it is gated"},
				{N: 2, StepID: "b", Operation: "mail/send", Version: "1.0.0", PackageDigest: "sha256:p", Input: "{}", Needs: []string{"a"}, Gate: "none"},
			})
			errs = append(errs, err)
		}
		for _, agent := range []string{"desk", "door"} {
			errs = append(errs, tx.PutMemory(store.MemoryRow{Tenant: "t", Agent: agent, Key: "k", Content: "c", Labels: []string{"untrusted"}, UpdatedAt: epoch, Terms: "kept"}))
		}
		return errors.Join(errs...)
	})
	write(t, b, appendNote("one"))
}

// keptReads are all ways to read rows that bear a MAC each, in and outside of a
// transaction.
var keptReads = map[string]func(ctx context.Context, r store.Reader) []error{
	"messages": func(ctx context.Context, r store.Reader) []error {
		_, all := r.Messages(ctx, "t", "sess_1", 0, 10)
		_, last := r.LastMessages(ctx, "t", "sess_1", 0, 10)
		return []error{all, last}
	},
	"conversations": func(ctx context.Context, r store.Reader) []error {
		_, one := r.Conversation(ctx, "t", "sess_1")
		_, all := r.Conversations(ctx, store.ConversationFilter{Tenant: "t"})
		return []error{one, all}
	},
	"steps": func(ctx context.Context, r store.Reader) []error {
		_, all := r.Steps(ctx, "t", "plan_1")
		return []error{all}
	},
	"kbs": func(ctx context.Context, r store.Reader) []error {
		_, one := r.KB(ctx, "t", "notes")
		_, all := r.KBs(ctx, "t")
		return []error{one, all}
	},
	"kb_documents": func(ctx context.Context, r store.Reader) []error {
		_, one := r.Document(ctx, "t", "notes", "doc_1")
		_, source := r.DocumentBySource(ctx, "t", "notes", "source of doc_1")
		_, all := r.Documents(ctx, store.DocumentFilter{Tenant: "t", KB: "notes"})
		return append(keptHits(ctx, r), one, source, all)
	},
	"kb_chunks": func(ctx context.Context, r store.Reader) []error {
		_, all := r.Chunks(ctx, "t", "notes", "doc_1")
		return append(keptHits(ctx, r), all)
	},
	"kv": func(ctx context.Context, r store.Reader) []error {
		_, err := r.KV(ctx, storedKey)
		return []error{err}
	},
	"memories": func(ctx context.Context, r store.Reader) []error {
		_, one := r.Memory(ctx, "t", "desk", "k")
		_, all := r.Memories(ctx, "t", "desk", 10)
		_, found := r.SearchMemories(ctx, store.MemoryQuery{Tenant: "t", Agent: "desk", Terms: []string{"kept"}, Limit: 10})
		return []error{one, all, found}
	},
}

func keptHits(ctx context.Context, r store.Reader) []error {
	_, words := r.SearchChunks(ctx, store.ChunkQuery{Tenant: "t", KBs: []string{"notes"}, Terms: []string{"apples"}, Limit: 10})
	_, vectors := r.Hits(ctx, "t", []store.VectorRow{{KB: "notes", DocumentID: "doc_1"}})
	return []error{words, vectors}
}

// moves are how a row becomes another's: its place is signed too. The row that is
// there already goes first.
var moves = map[string][]string{
	"messages":      {`DELETE FROM messages WHERE session_id = 'sess_1'`, `UPDATE messages SET session_id = 'sess_1'`},
	"conversations": {`DELETE FROM conversations WHERE session_id = 'sess_1'`, `UPDATE conversations SET session_id = 'sess_1'`},
	"steps":         {`DELETE FROM steps WHERE plan_id = 'plan_1'`, `UPDATE steps SET plan_id = 'plan_1'`},
	"kbs":           {`DELETE FROM kbs WHERE id = 'notes'`, `UPDATE kbs SET id = 'notes'`},
	"kb_documents":  {`DELETE FROM kb_documents WHERE kb_id = 'notes'`, `UPDATE kb_documents SET kb_id = 'notes', id = 'doc_1', source_id = 'source of doc_1'`},
	"kb_chunks":     {`UPDATE kb_chunks SET text = (SELECT text FROM kb_chunks WHERE kb_id = 'other'), mac = (SELECT mac FROM kb_chunks WHERE kb_id = 'other')`},
	"kv":            {`DELETE FROM kv WHERE scope = 'user::ada'`, `UPDATE kv SET scope = 'user::ada'`},
	"memories":      {`UPDATE memories SET mac = (SELECT mac FROM memories WHERE agent <> 'desk') WHERE agent = 'desk'`},
}

// keptSpared are the columns that say where a row is, which moves covers, and those that
// decide nothing. The text of a document is checked where that is read.
var keptSpared = map[string][]string{
	"messages":      {"tenant", "session_id"},
	"conversations": {"tenant", "session_id", "open", "turns", "received", "handled", "lease", "lease_until", "updated_at"},
	"steps":         {"tenant", "plan_id"},
	"kbs":           {"tenant", "id"},
	"kb_documents":  {"tenant", "kb_id", "id", "source_id", "created_at", "text", "text_hash"},
	"kb_chunks":     {"id", "tenant", "kb_id", "document_id", "n", "terms", "embedding", "model"},
	"kv":            {"tenant", "owner", "scope", "namespace", "key"},
	"memories":      {"id", "tenant", "agent", "key", "terms"},
}

// A message, a knowledge base, a document, a stored value and a memory are what the
// host wrote, whose it wrote them, or they are not read.
func signedKept(t *testing.T, b *bundle) {
	db, home := b.engine.Edit(t)
	b.home = home
	fillKept(t, b)
	for table := range keptReads {
		if errs := readKept(t, b, table); errors.Join(errs...) != nil {
			t.Fatalf("%s: %v", table, errs)
		}
	}
	for table := range keptReads {
		forge := func(what string, statements ...string) {
			t.Helper()
			for _, statement := range statements {
				edit(t, db, statement)
			}
			for i, err := range readKept(t, b, table) {
				var found *store.AuthorityError
				if !errors.As(err, &found) || !errors.Is(err, store.ErrTampered) {
					t.Errorf("%s, read in way %d: %v", what, i, err)
				}
			}
			edit(t, db, "DELETE FROM "+table)
			edit(t, db, fmt.Sprintf("INSERT INTO %s SELECT * FROM kept_%s", table, table))
		}
		edit(t, db, fmt.Sprintf("CREATE TABLE kept_%s AS SELECT * FROM %s", table, table))
		for _, name := range keptColumns(t, db, table) {
			value := `"` + name + `" || 'x'`
			switch numbers := []string{"n", "at", "created_at", "updated_at", "expires_at", "start", "words", "characters", "chunks"}; {
			case name == "needs":
				value = `'["c"]'`
			case name == "labels":
				value = `'[]'`
				forge(table+" with another label", fmt.Sprintf(`UPDATE %s SET labels = '["untrusted","x"]'`, table))
			case name == "body" || name == "value":
				value = "'{}'"
			case slices.Contains(numbers, name):
				value = `10 + "` + name + `"`
			}
			forge(table+"."+name, fmt.Sprintf(`UPDATE %s SET "%s" = %s`, table, name, value))
		}
		if table == "steps" {
			forge("a step less", "DELETE FROM steps WHERE n = 2")
		}
		forge(table+" without its MAC", "UPDATE "+table+" SET mac = ''")
		forge(table+" that was another's", moves[table]...)
	}
	edit(t, db, "UPDATE kb_documents SET text = 'else'")
	if _, err := store.Authorised(b, home).Document(t.Context(), "t", "notes", "doc_1"); !errors.Is(err, store.ErrTampered) {
		t.Errorf("another text: %v", err)
	}
	if err := b.Write(t.Context(), func(tx store.Tx) error { _, err := tx.Document(t.Context(), "t", "notes", "doc_1"); return err }); !errors.Is(err, store.ErrTampered) {
		t.Errorf("another text, within a transaction: %v", err)
	}
	edit(t, db, "UPDATE kb_documents SET labels = '[]'")
	if err := b.Write(t.Context(), func(tx store.Tx) error { _, err := tx.UpdateDocument(newDocument("notes", "doc_1")); return err }); !errors.Is(err, store.ErrTampered) {
		t.Errorf("a change on top of a forged document would sign it: %v", err)
	}
}

// A head that the key has not signed does not say that a ledger is of a release that
// signed no rows.
func noForgedRelease(t *testing.T, b *bundle) {
	db, home := b.engine.Edit(t)
	b.home = home
	fillKept(t, b)
	edit(t, db, "UPDATE messages SET labels = '[]'")
	for _, authority := range []string{"''", "replace(authority, ' rows=2', '')", "replace(authority, ' rows=2', ' rows=1')"} {
		edit(t, db, "UPDATE chains SET authority = "+authority)
		if _, err := store.Authorised(b, home).Messages(t.Context(), "t", "sess_1", 0, 10); !errors.Is(err, store.ErrTampered) {
			t.Errorf("with a head that says %s: %v", authority, err)
		}
	}
}

// earlier makes the heads those of a release that signed rows up to a number.
func earlier(t *testing.T, b *bundle, db *sql.DB, key *store.Key, rows int) {
	t.Helper()
	heads, err := b.Chains(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mark := ""
	if rows > 0 {
		mark = fmt.Sprintf(" rows=%d", rows)
	}
	for _, head := range heads {
		head.Authority = strings.Replace(head.Authority, fmt.Sprintf(" rows=%d", store.SignedRows), mark, 1)
		edit(t, db, fmt.Sprintf("UPDATE chains SET authority = '%s', mac = '%s' WHERE id = %d", head.Authority, key.Sign(head), head.ID))
	}
}

// What one release signed is not signed again when the next signs more.
func keptSignedBefore(t *testing.T, b *bundle) {
	db, home := b.engine.Edit(t)
	b.home = home
	fillKept(t, b)
	key, err := store.ReadKey(home)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"conversations", "steps"} {
		edit(t, db, "UPDATE "+table+" SET mac = ''")
	}
	earlier(t, b, db, key, 1)
	edit(t, db, "UPDATE messages SET labels = '[]'")
	for range 2 {
		for table := range keptReads {
			if errs := readKept(t, b, table); (errors.Join(errs...) != nil) != (table == "messages") {
				t.Errorf("%s: %v", table, errs)
			}
		}
		write(t, b, func(tx store.Tx) error { return tx.SignAuthority() })
	}
	edit(t, db, "UPDATE conversations SET peer = 'eve'")
	if errs := readKept(t, b, "conversations"); !errors.Is(errors.Join(errs...), store.ErrTampered) {
		t.Errorf("once they are signed: %v", errs)
	}
}

// Rows of a release that did not sign them are signed once, and what that release
// signed is not signed over.
func keptSignedOnce(t *testing.T, b *bundle) {
	db, home := b.engine.Edit(t)
	b.home = home
	fillKept(t, b)
	insertSessions(t, b, newSession("sess_9"))
	write(t, b, appendNote("two"))
	key, err := store.ReadKey(home)
	if err != nil {
		t.Fatal(err)
	}
	for table := range keptReads {
		edit(t, db, "UPDATE "+table+" SET mac = ''")
	}
	edit(t, db, "UPDATE kb_documents SET text_hash = ''")
	earlier(t, b, db, key, 0)
	edit(t, db, "UPDATE sessions SET owner = 'eve'")
	check := func(when string) {
		t.Helper()
		for table := range keptReads {
			if errs := readKept(t, b, table); errors.Join(errs...) != nil {
				t.Errorf("%s %s: %v", table, when, errs)
			}
		}
		if _, err := store.Authorised(b, home).Session(t.Context(), "t", "sess_9"); !errors.Is(err, store.ErrTampered) {
			t.Errorf("a session that was changed, %s: %v", when, err)
		}
	}
	check("before they are signed")
	before := len(checkChains(t, b))
	for range 2 {
		write(t, b, func(tx store.Tx) error { return tx.SignAuthority() })
	}
	entries := checkChains(t, b)
	if len(entries) != before+1 || !slices.ContainsFunc(entries, func(e plugin.Entry) bool { return e.Kind == plugin.EntryAuthoritySigned }) {
		t.Errorf("it is signed with %d entries", len(entries)-before)
	}
	check("once they are signed")
	if err := b.CheckKept(t.Context(), key); err != nil {
		t.Error(err)
	}
	edit(t, db, "UPDATE memories SET labels = '[]'")
	if err := b.CheckKept(t.Context(), key); !errors.Is(err, store.ErrTampered) {
		t.Errorf("all rows, one of which was changed: %v", err)
	}
}

// readKept reads in all ways. An error ends a transaction, so that each has its own.
func readKept(t *testing.T, b *bundle, table string) []error {
	t.Helper()
	st := store.Authorised(b, b.home)
	errs := keptReads[table](t.Context(), st)
	if err := st.Snapshot(t.Context(), func(r store.Reader) error {
		errs = append(errs, keptReads[table](t.Context(), r)...)
		return nil
	}); err != nil {
		t.Error(err)
	}
	for i := range keptReads[table](t.Context(), st) {
		errs = append(errs, b.Write(t.Context(), func(tx store.Tx) error { return keptReads[table](t.Context(), tx)[i] }))
	}
	return errs
}

// keptColumns returns the columns of a table that are signed.
func keptColumns(t *testing.T, db *sql.DB, table string) (names []string) {
	t.Helper()
	all, _ := signedColumns(t, db, table)
	if table == "kv" {
		all = append(all, "labels", "expires_at", "updated_at")
	}
	for _, name := range all {
		if !slices.Contains(keptSpared[table], name) && name != "mac" {
			names = append(names, name)
		}
	}
	return names
}
