package words

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestTellingWords(t *testing.T) {
	t.Parallel()
	for query, want := range map[string][2]string{
		"What is the status of order 7, please?": {"status order 7", ""},
		"I am a cat; a CAT":                      {"cat", ""},
		"to be or not to be":                     {"", "to be or not"},
		"c":                                      {"", "c"},
		"":                                       {"", ""},
		"x y z":                                  {"", "x y z"},
		"Übung macht den Meister":                {"übung macht meister", ""},
		"我的北京":                                   {"北 京", ""},
	} {
		if want[1] == "" {
			want[1] = want[0]
		}
		telling, asked := strings.Join(Telling(query, 32), " "), strings.Join(Asked(query, 32), " ")
		if telling != want[0] || asked != want[1] {
			t.Errorf("%q: %q and %q, want %q", query, telling, asked, want)
		}
	}
}

// TestNoWordOfALongQueryIsLeftOutForItsFirstLetter: which words of a long query count
// does not depend on where they are in the alphabet, or in the query.
func TestNoWordOfALongQueryIsLeftOutForItsFirstLetter(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var query []string
		for range 60 {
			query = append(query, fmt.Sprintf("%cab", 'a'+r.IntN(20)))
		}
		telling := []string{"zebra", "ORD-4711", "yesterday"}
		query = append(query, telling...)
		r.Shuffle(len(query), func(i, j int) { query[i], query[j] = query[j], query[i] })
		got := Telling(strings.Join(query, " "), 8)
		for _, word := range []string{"zebra", "4711", "yesterday"} {
			if !slices.Contains(got, word) {
				t.Errorf("%q is not among %q", word, got)
			}
		}
		if len(got) > 8 {
			t.Errorf("%d words count", len(got))
		}
	}
}

func TestRank(t *testing.T) {
	t.Parallel()
	texts := []string{"green apples and pears", "pears", "apples apples none", "a plum", "北海道", "北京 is large", "other", "one more", "yet another"}
	for query, want := range map[string][]int{
		"apples pears": {0, 1, 2}, "plum": {3}, "lum": nil, "a": nil, "": nil, "北京": {5}, "北": {5, 4},
	} {
		got := Rank(Telling(query, 32), len(texts), func(i int) []string { return Of(texts[i]) })
		if query == "北" {
			slices.Sort(got)
			slices.Reverse(got)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", query, got, want)
		}
	}
}
