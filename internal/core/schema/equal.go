package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// duplicates returns the places of the first two items that are equal.
func (e *evaluation) duplicates(array []any) (i, j int, found bool) {
	seen := make(map[string]int, len(array))
	var key []byte
	for j, item := range array {
		if key = e.key(key[:0], item); e.work.Err() != nil {
			return 0, 0, false
		}
		if i, found := seen[string(key)]; found {
			return i, j, true
		}
		seen[string(key)] = j
	}
	return 0, 0, false
}

// key appends what is the same for equal values alone.
func (e *evaluation) key(to []byte, value any) []byte {
	if !e.work.Take(1) {
		return to
	}
	switch v := value.(type) {
	case map[string]any:
		to = append(to, '{')
		for _, name := range slices.Sorted(maps.Keys(v)) {
			to = e.key(e.key(to, name), v[name])
		}
		return append(to, '}')
	case []any:
		to = append(to, '[')
		for _, item := range v {
			to = e.key(to, item)
		}
		return append(to, ']')
	case string:
		e.work.Take(len(v) / 16)
		return strconv.AppendQuote(to, v)
	case float64, json.Number:
		if n := e.exact(v); n != nil {
			to = append(to, n.RatString()...)
		}
		return append(to, ' ')
	}
	return fmt.Append(to, value, " ")
}

// among reports whether a value is one of an enumeration.
func (e *evaluation) among(value any, values []any) bool {
	if !e.work.Take(1 + len(values)/16) {
		return false
	}
	return slices.ContainsFunc(values, func(one any) bool { return e.equal(value, one) })
}

// equal reports whether two values are the same, numbers by what they are.
func (e *evaluation) equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) || !e.work.Take(1+len(a)) {
			return false
		}
		for name, inner := range a {
			if other, there := b[name]; !there || !e.equal(inner, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) || !e.work.Take(1+len(a)) {
			return false
		}
		for i := range a {
			if !e.equal(a[i], b[i]) {
				return false
			}
		}
		return true
	case float64, json.Number:
		if x, ok := a.(float64); ok {
			if y, ok := b.(float64); ok {
				return x == y
			}
		}
		if typeOf(b) != typeNumber {
			return false
		}
		x, y := e.exact(a), e.exact(b)
		return x != nil && y != nil && x.Cmp(y) == 0
	}
	return typeOf(a) == typeOf(b) && a == b
}
