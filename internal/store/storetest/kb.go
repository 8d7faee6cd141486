package storetest

import (
	"reflect"
	"testing"

	"github.com/mortise-dev/mortise/internal/store"
)

func newKB(id string) store.KBRow {
	return store.KBRow{Tenant: "t", ID: id, Name: "Notes", Description: "of all", Labels: []string{"private"}, CreatedBy: "user:ada", CreatedAt: epoch}
}

func newDocument(kb, id string) store.DocumentRow {
	return store.DocumentRow{
		Tenant: "t", KB: kb, ID: id, SourceID: "source of " + id, SourceType: "plugin:x", ObjectID: "ko " + id, Title: "A title", Filename: "a.txt", MIME: "text/plain",
		URL: "https://example.com/a", ContentHash: "sha256:c", Words: 3, Characters: 20, Extraction: `{"method":"text"}`, Attributes: `{"a":1}`,
		Labels: []string{"untrusted"}, Principal: "user:ada", CallID: "call", CreatedAt: epoch, UpdatedAt: epoch, Text: "one two three",
	}
}

func putDocument(t *testing.T, st store.Store, row store.DocumentRow, chunks ...store.ChunkRow) {
	t.Helper()
	write(t, st, func(tx store.Tx) error {
		found, err := tx.PutDocument(row, chunks)
		if err == nil && !found {
			t.Errorf("there is no knowledge base %s", row.KB)
		}
		return err
	})
}

func insertKBs(t *testing.T, st store.Store, rows ...store.KBRow) {
	t.Helper()
	write(t, st, func(tx store.Tx) error {
		for _, row := range rows {
			if fresh, err := tx.InsertKB(row); err != nil || !fresh {
				t.Errorf("adding %s: %t, %v", row.ID, fresh, err)
				return err
			}
		}
		return nil
	})
}

func chunk(n int64, text string) store.ChunkRow {
	return store.ChunkRow{N: n, Start: 10 * n, Text: text, Terms: text}
}

func documentRoundTrip(t *testing.T, b *bundle) {
	insertKBs(t, b, newKB("notes"), newKB("other"))
	row := newDocument("notes", "doc_1")
	with := chunk(1, "two three")
	with.Embedding, with.Model = []byte{0, 0, 128, 63}, "m"
	putDocument(t, b, row, chunk(0, "one two"), with)
	row.Chunks = 2
	if got, err := b.Document(ctx(), "t", "notes", "doc_1"); err != nil || got == nil || !sameKept([]store.DocumentRow{*got}, row) {
		t.Errorf("the document is %+v, %v; want %+v", got, err, row)
	}
	without := row
	without.Text = ""
	if got, err := b.DocumentBySource(ctx(), "t", "notes", "source of doc_1"); err != nil || got == nil || !sameKept([]store.DocumentRow{*got}, without) {
		t.Errorf("the document by its source is %+v, %v; want %+v", got, err, without)
	}
	chunks, err := b.Chunks(ctx(), "t", "notes", "doc_1")
	if err != nil || len(chunks) != 2 || chunks[1].Text != "two three" || chunks[1].Start != 10 || string(chunks[1].Embedding) != string(with.Embedding) || chunks[0].Embedding != nil {
		t.Errorf("the chunks are %+v, %v", chunks, err)
	}
	kb, err := b.KB(ctx(), "t", "notes")
	if want := newKB("notes"); err != nil || kb == nil || !sameKept([]store.KBRow{*kb}, want) {
		t.Errorf("the knowledge base is %+v, %v; want %+v", kb, err, want)
	}
	if documents, chunks, err := b.CountKB(ctx(), "t", "notes"); documents != 1 || chunks != 2 || err != nil {
		t.Errorf("it has %d documents and %d passages, %v", documents, chunks, err)
	}
	if documents, chunks, err := b.CountKB(ctx(), "t", "other"); documents != 0 || chunks != 0 || err != nil {
		t.Errorf("the other has %d documents and %d passages, %v", documents, chunks, err)
	}
	var vectors []store.VectorRow
	for v, failed := range b.Vectors(ctx(), "t", []string{"notes", "other"}, "m") {
		if vectors = append(vectors, v); failed != nil {
			err = failed
		}
	}
	if err != nil || len(vectors) != 1 || vectors[0].N != 1 {
		t.Errorf("the vectors are %+v, %v", vectors, err)
	}
	if hits, err := b.Hits(ctx(), "t", vectors); err != nil || len(hits) != 1 || hits[0].Text != "two three" || hits[0].SourceID != row.SourceID {
		t.Errorf("the vector's passage is %+v, %v", hits, err)
	}
	row.URL, row.Labels = "https://example.com/b", []string{"private", "untrusted"}
	write(t, b, func(tx store.Tx) error { _, err := tx.UpdateDocument(row); return err })
	if got, err := b.Document(ctx(), "t", "notes", "doc_1"); err != nil || !sameKept([]store.DocumentRow{*got}, row) {
		t.Errorf("the document is then %+v, %v", got, err)
	}
	list, err := b.Documents(ctx(), store.DocumentFilter{Tenant: "t", KB: "notes", ObjectID: row.ObjectID, Limit: 5})
	row.Text = ""
	if err != nil || len(list) != 1 || !sameKept(list, row) {
		t.Errorf("the list is %+v, %v", list, err)
	}
}

func search(t *testing.T, st store.Store, tenant string, kbs []string, terms ...string) []string {
	t.Helper()
	hits, err := st.SearchChunks(ctx(), store.ChunkQuery{Tenant: tenant, KBs: kbs, Terms: terms, Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for i, h := range hits {
		got = append(got, h.Text)
		if i > 0 && h.Score > hits[i-1].Score {
			t.Errorf("%q has score %f, and stands behind %f", h.Text, h.Score, hits[i-1].Score)
		}
	}
	return got
}

func searched(t *testing.T, b *bundle) {
	insertKBs(t, b, newKB("notes"), newKB("other"))
	putDocument(t, b, newDocument("notes", "doc_1"), chunk(0, "apples and pears"), chunk(1, "übung macht den meister"))
	putDocument(t, b, newDocument("other", "doc_2"), chunk(0, "apples alone"))
	both := []string{"notes", "other"}
	for _, test := range []struct {
		tenant string
		kbs    []string
		terms  []string
		want   []string
	}{
		{"t", both, []string{"pears"}, []string{"apples and pears"}},
		{"t", []string{"other"}, []string{"apples"}, []string{"apples alone"}},
		{"t", both, []string{"übung", "nowhere"}, []string{"übung macht den meister"}},
		{"t", both, []string{"apple"}, []string{}},
		{"u", both, []string{"apples"}, []string{}},
		{"t", []string{"notes"}, []string{"apples", "pears", "meister"}, []string{"apples and pears", "übung macht den meister"}},
		{"t", both, nil, []string{}},
		{"t", nil, []string{"apples"}, []string{}},
	} {
		if got := search(t, b, test.tenant, test.kbs, test.terms...); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%v in %v of %s finds %q, want %q", test.terms, test.kbs, test.tenant, got, test.want)
		}
	}
}

func documentReplaced(t *testing.T, b *bundle) {
	insertKBs(t, b, newKB("notes"))
	row := newDocument("notes", "doc_1")
	putDocument(t, b, row, chunk(0, "apples"), chunk(1, "pears"), chunk(2, "plums"))
	row.Title, row.Text = "Another", "cherries"
	putDocument(t, b, row, chunk(0, "cherries"))
	if got := search(t, b, "t", []string{"notes"}, "apples", "pears", "plums", "cherries"); !reflect.DeepEqual(got, []string{"cherries"}) {
		t.Errorf("%q is found after the document was replaced", got)
	}
	if chunks, err := b.Chunks(ctx(), "t", "notes", "doc_1"); err != nil || len(chunks) != 1 {
		t.Errorf("%d chunks are left, %v", len(chunks), err)
	}
	write(t, b, func(tx store.Tx) error {
		if found, err := tx.DeleteKB("t", "notes"); found || err != nil {
			t.Errorf("a knowledge base with a document is deleted: %t, %v", found, err)
		}
		found, err := tx.DeleteDocument("t", "notes", "doc_1")
		if again, _ := tx.DeleteDocument("t", "notes", "doc_1"); !found || again {
			t.Errorf("deleting twice: %t, %t", found, again)
		}
		return err
	})
	if got := search(t, b, "t", []string{"notes"}, "cherries"); len(got) != 0 {
		t.Errorf("%q is found after the document was deleted", got)
	}
	write(t, b, func(tx store.Tx) error {
		if found, err := tx.DeleteKB("t", "notes"); !found || err != nil {
			t.Errorf("an empty knowledge base is not deleted: %t, %v", found, err)
		}
		found, err := tx.PutDocument(row, nil)
		if found {
			t.Error("a document was put into a knowledge base that is gone")
		}
		if fresh, err := tx.InsertKB(newKB("notes")); !fresh || err != nil {
			t.Errorf("adding it again: %t, %v", fresh, err)
		}
		if fresh, err := tx.InsertKB(newKB("notes")); fresh || err != nil {
			t.Errorf("adding it twice: %t, %v", fresh, err)
		}
		return err
	})
}

// What a model has not embedded is found page by page, and a vector is
// kept for the text that it is of alone.
func vectorsOfAModel(t *testing.T, b *bundle) {
	insertKBs(t, b, newKB("notes"), newKB("other"))
	old := chunk(1, "two")
	old.Embedding, old.Model = []byte{0, 0, 128, 63}, "old"
	putDocument(t, b, newDocument("notes", "doc_1"), chunk(0, "one"), old)
	putDocument(t, b, newDocument("notes", "doc_2"), chunk(0, "three"))
	putDocument(t, b, newDocument("other", "doc_1"), chunk(0, "four"))
	f := store.UnembeddedFilter{Tenant: "t", KB: "notes", Model: "new", Limit: 2}
	first, err := b.Unembedded(ctx(), f)
	if want := []store.PassageRow{{DocumentID: "doc_1", N: 0, Text: "one"}, {DocumentID: "doc_1", N: 1, Text: "two"}}; err != nil || !reflect.DeepEqual(first, want) {
		t.Fatalf("%+v, %v; want %+v", first, err, want)
	}
	f.Document, f.N = "doc_1", 1
	rest, err := b.Unembedded(ctx(), f)
	if want := []store.PassageRow{{DocumentID: "doc_2", N: 0, Text: "three"}}; err != nil || !reflect.DeepEqual(rest, want) {
		t.Fatalf("%+v, %v; want %+v", rest, err, want)
	}
	write(t, b, func(tx store.Tx) error {
		for text, want := range map[string]bool{"another": false, "two": true} {
			found, err := tx.PutVector("t", "notes", store.PassageRow{DocumentID: "doc_1", N: 1, Text: text}, "new", []byte{0, 0, 0, 64})
			if err != nil {
				return err
			}
			if found != want {
				t.Errorf("a vector of %q is kept: %t", text, found)
			}
		}
		return nil
	})
	for model, want := range map[string]int64{"old": 0, "new": 1, "": 0} {
		if n, err := b.CountVectors(ctx(), "t", "notes", model); err != nil || n != want {
			t.Errorf("%q has %d vectors, %v; want %d", model, n, err, want)
		}
		n := int64(0)
		for v, err := range b.Vectors(ctx(), "t", []string{"notes", "other"}, model) {
			if n++; err != nil || v.DocumentID != "doc_1" || string(v.Embedding) != "\x00\x00\x00\x40" {
				t.Errorf("%+v, %v", v, err)
			}
		}
		if n != want {
			t.Errorf("%q has %d vectors, want %d", model, n, want)
		}
	}
}
