package contract

import "strings"

// Nearest returns the one of words that is most likely meant by word, and
// whether any is close enough to be worth suggesting: the same but for letter
// case, or at most a third of its letters away. Of equally near ones the first wins.
func Nearest(word string, words []string) (nearest string, found bool) {
	most := len(word) / 3
	for _, candidate := range words {
		if strings.EqualFold(candidate, word) {
			return candidate, true
		}
		if d := distance(word, candidate, most); d <= most {
			nearest, found, most = candidate, true, d-1
		}
	}
	return nearest, found
}

// distance is how many letters must be put in, taken out, changed or swapped
// with their neighbour to make b of a; anything above most is most+1.
func distance(a, b string, most int) int {
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(above[j+1]+1, row[j]+1, above[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, above, row = above, row, before
	}
	return min(above[len(b)], most+1)
}
