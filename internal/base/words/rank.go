package words

import (
	"math"
	"slices"
	"unicode/utf8"
)

// The parameters of BM25: how soon more of a word counts no more, and how much the
// length of a text does.
const (
	saturation = 1.2
	byLength   = 0.75
)

// Rank returns which of n texts have some of the terms, the best first by BM25; among
// equals the one that came first. of returns the words of a text. A single character of
// a script without spaces is no word: where a query has several, a text has to have two.
func Rank(terms []string, n int, of func(i int) []string) []int {
	if len(terms) == 0 {
		return nil
	}
	at := make(map[string]int, len(terms))
	for i, term := range terms {
		at[term] = i
	}
	counts, lengths := make(map[int][]int), make([]int, n)
	texts, total := make([]int, len(terms)), 0 // texts is how many have the term
	for i := range n {
		words := of(i)
		lengths[i] = len(words)
		total += len(words)
		for _, word := range words {
			t, asked := at[word]
			if !asked {
				continue
			}
			if counts[i] == nil {
				counts[i] = make([]int, len(terms))
			}
			if counts[i][t]++; counts[i][t] == 1 {
				texts[t]++
			}
		}
	}
	scores := make(map[int]float64, len(counts))
	var found []int
	for i := range n {
		has := counts[i]
		if has == nil || !enough(terms, has) {
			continue
		}
		long := saturation * (1 - byLength + byLength*float64(lengths[i])*float64(n)/float64(total))
		for t, count := range has {
			rare := math.Log(1 + (float64(n-texts[t])+0.5)/(float64(texts[t])+0.5))
			scores[i] += rare * float64(count) * (saturation + 1) / (float64(count) + long)
		}
		found = append(found, i)
	}
	slices.SortStableFunc(found, func(a, b int) int {
		switch {
		case scores[a] > scores[b]:
			return -1
		case scores[a] < scores[b]:
			return 1
		}
		return 0
	})
	return found
}

func enough(terms []string, has []int) bool {
	narrow := 0
	for t, count := range has {
		if count == 0 {
			continue
		}
		if r, _ := utf8.DecodeRuneInString(terms[t]); !Wide(r) {
			return true
		}
		narrow++
	}
	return narrow > 1 || len(terms) == 1
}
