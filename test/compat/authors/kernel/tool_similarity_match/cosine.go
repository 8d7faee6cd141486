package main

import (
	"math"
	"sort"
	"strings"
	"unicode"
)

type vector map[string]float64

var stop = map[string]bool{"the": true, "a": true, "of": true, "and": true, "in": true, "on": true, "for": true}

func vectorize(text string) vector {
	v := vector{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if !stop[w] {
			v[w]++
		}
	}
	return v
}

func (a vector) norm() float64 {
	s := 0.0
	for _, x := range a {
		s += x * x
	}
	return math.Sqrt(s)
}

func cosine(a, b vector) (float64, []string) {
	dot, shared := 0.0, []string{}
	for w, x := range a {
		if y, ok := b[w]; ok {
			dot += x * y
			shared = append(shared, w)
		}
	}
	sort.Strings(shared)
	n := a.norm() * b.norm()
	if n == 0 {
		return 0, shared
	}
	return math.Round(dot/n*10000) / 10000, shared
}
