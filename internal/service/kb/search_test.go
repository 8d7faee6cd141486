package kb_test

import (
	"testing"

	"github.com/mortise-dev/mortise/internal/service/kb"
)

// TestALongQueryIsSearchedByAllItsWords: not by those of the first letters.
func TestALongQueryIsSearchedByAllItsWords(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	for id, text := range map[string]string{"z": "the zeppelin is in the hangar", "a": "it was what it was, and so on"} {
		if _, err := b.Ingest(t.Context(), "t", kb.Source{KB: "notes", ID: id, Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	query := "so what was it that I have been asking about, and of whom, if at all: an answer as an aside, all about able aces, acts, adds, aged, ages, aids, aims, airs, ajar, akin, also, alto, arch, area, arid, arms, army, arts, asks, atom, atop, aunt, auto, away, axes, axis and a zeppelin?"
	hits, err := b.Search(t.Context(), "t", kb.Query{Text: query})
	if err != nil || len(hits) != 1 || hits[0].SourceID != "z" {
		t.Errorf("%+v, %v", hits, err)
	}
}
