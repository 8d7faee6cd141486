package storetest

import (
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/internal/store"
)

// Labelled are the tables that have labels, and how they are written: those that
// are written over are in labelled, the rows of the others keep what they began
// with.
var Labelled = map[string]string{
	"kv": "written over", "kb_documents": "written over", "memories": "written over",
	"sessions": "grows with its artifacts", "artifacts": "never changes", "messages": "never changes",
	"calls": "never changes", "plans": "never changes", "kbs": "never changes",
}

// labelsOnlyGrow writes every kind of row that can be written over with every
// order of three sets of labels: what was there once stays.
func labelsOnlyGrow(t *testing.T, b *bundle) {
	insertKBs(t, b, newKB("notes"))
	sets := [][]string{nil, {"private"}, {"untrusted"}}
	document := newDocument("notes", "doc_1")
	document.Chunks = 1
	for name, kept := range map[string]struct {
		put  func(tx store.Tx, labels []string, again bool) error
		read func() []string
		drop func(tx store.Tx) error
	}{
		"a value": {
			func(tx store.Tx, labels []string, _ bool) error {
				return tx.PutKV(store.KVRow{KVKey: store.KVKey{Tenant: "t", Owner: "p", Key: "k"}, Value: []byte("1"), Labels: labels, UpdatedAt: epoch})
			},
			func() []string {
				row, err := b.KV(t.Context(), store.KVKey{Tenant: "t", Owner: "p", Key: "k"})
				if err != nil || row == nil {
					t.Fatalf("the value: %v, %v", row, err)
				}
				return row.Labels
			},
			func(tx store.Tx) error {
				_, err := tx.DeleteKV(store.KVKey{Tenant: "t", Owner: "p", Key: "k"})
				return err
			},
		},
		"a memory": {
			func(tx store.Tx, labels []string, _ bool) error {
				return tx.PutMemory(store.MemoryRow{Tenant: "t", Agent: "desk", Key: "k", Content: "c", Labels: labels, UpdatedAt: epoch})
			},
			func() []string {
				row, err := b.Memory(t.Context(), "t", "desk", "k")
				if err != nil || row == nil {
					t.Fatalf("the memory: %v, %v", row, err)
				}
				return row.Labels
			},
			func(tx store.Tx) error { _, err := tx.DeleteMemory("t", "desk", "k"); return err },
		},
		"a document that is replaced": {
			func(tx store.Tx, labels []string, _ bool) error {
				document.Labels = labels
				_, err := tx.PutDocument(document, []store.ChunkRow{chunk(0, "one")})
				return err
			},
			func() []string { return documentLabels(t, b) },
			func(tx store.Tx) error { _, err := tx.DeleteDocument("t", "notes", "doc_1"); return err },
		},
		"a document of which something else is known": {
			func(tx store.Tx, labels []string, again bool) error {
				document.Labels = labels
				if again {
					_, err := tx.UpdateDocument(document)
					return err
				}
				_, err := tx.PutDocument(document, []store.ChunkRow{chunk(0, "one")})
				return err
			},
			func() []string { return documentLabels(t, b) },
			func(tx store.Tx) error { _, err := tx.DeleteDocument("t", "notes", "doc_1"); return err },
		},
	} {
		for n := range len(sets) * len(sets) * len(sets) {
			order := [][]string{sets[n%3], sets[n/3%3], sets[n/9]}
			write(t, b, kept.drop)
			var want []string
			for i, labels := range order {
				write(t, b, func(tx store.Tx) error { return kept.put(tx, labels, i > 0) })
				for _, label := range labels {
					if !slices.Contains(want, label) {
						want = append(want, label)
					}
				}
				slices.Sort(want)
				if got := kept.read(); !slices.Equal(got, want) {
					t.Errorf("%s that was written with %q has %q after the %dth time, want %q", name, order[:i+1], got, i+1, want)
				}
			}
		}
		write(t, b, kept.drop)
	}
}

func documentLabels(t *testing.T, b *bundle) []string {
	t.Helper()
	row, err := b.Document(t.Context(), "t", "notes", "doc_1")
	if err != nil || row == nil {
		t.Fatalf("the document: %v, %v", row, err)
	}
	return row.Labels
}
