// Package near finds the names that are near a misspelt one.
package near

import (
	"cmp"
	"slices"
	"strings"
)

// longest bounds what is compared: the work grows with the product of lengths.
const longest = 200

// Names returns up to most of the known names that look most like one that is not
// among them: spelled alike but for case and separators, or
// with so few letters changed, added, left out or swapped that a slip of the hand
// explains it.
func Names(asked string, known []string, most int) []string {
	type match struct {
		name string
		far  int
	}
	var found []match
	plain := folded(asked)
	for _, name := range known {
		if len(name) > longest || len(asked) > longest || name == "" {
			continue
		}
		other := folded(name)
		far := distance([]rune(plain), []rune(other))
		if short := min(len(plain), len(other)); short >= 3 && far > 0 && (strings.HasPrefix(other, plain) || strings.HasPrefix(plain, other)) {
			far = 1
		}
		if far <= max(1, min(len(plain), len(other))/3) {
			found = append(found, match{name, far})
		}
	}
	slices.SortStableFunc(found, func(a, b match) int { return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(a.name, b.name)) })
	var names []string
	for _, m := range found[:min(len(found), most)] {
		if m.far == found[0].far && !slices.Contains(names, m.name) {
			names = append(names, m.name)
		}
	}
	return names
}

// Hint returns "; did you mean a or b?" for a name, "" where none is near.
func Hint(asked string, known []string) string {
	names := Names(asked, known, 3)
	if len(names) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(names, " or ") + "?"
}

// Alike reports whether one of two names is easily read as the other: they are spelled alike
// but for case, separators and characters that look the same, or one letter of five or more is
// another, too many, left out or swapped with its neighbour. A digit tells names apart: db1 and
// db2 are two.
func Alike(a, b string) bool {
	if len(a) > longest || len(b) > longest {
		return false
	}
	a, b = folded(a), folded(b)
	return a == b || min(len(a), len(b)) >= 5 && undigited(a) != undigited(b) && distance([]rune(a), []rune(b)) <= 1
}

// undigited returns a text without its digits.
func undigited(text string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, text)
}

// folded is how a name is compared: failure_mode is failureMode.
func folded(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
}

// distance is the number of letters to change, add, leave out or swap with their
// neighbour.
func distance(a, b []rune) int {
	before, last, now := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		now[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		before, last, now = last, now, before
	}
	return last[len(b)]
}
