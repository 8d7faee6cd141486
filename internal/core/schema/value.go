package schema

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/message"
)

const typeNumber = "number"

// typeOf returns the type of a decoded value, as schemas name it.
func typeOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64, json.Number:
		return typeNumber
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

// hasType reports whether a value has a type that the schema allows.
func (e *evaluation) hasType(s *jsonschema.Schema, got string, value any) bool {
	allows := func(name string) bool {
		var one jsonschema.Types
		one.Add(name)
		return *s.Types&one != 0
	}
	return allows(got) || got == typeNumber && allows("integer") && e.whole(value)
}

// whole reports whether a number is an integer: 1.0 is.
func (e *evaluation) whole(value any) bool {
	if f, ok := value.(float64); ok {
		return f == math.Trunc(f)
	}
	n := e.exact(value)
	return n != nil && n.IsInt()
}

// exact returns a number as a fraction, as it is spelled: 0.1 is a tenth. It is nil without a
// step for it.
func (e *evaluation) exact(value any) *big.Rat {
	text, steps := "", 4
	switch v := value.(type) {
	case float64:
		text = strconv.FormatFloat(v, 'g', -1, 64)
	case json.Number:
		text, steps = string(v), 4+len(v)
	}
	if strings.ContainsAny(text, "eE") {
		steps += maxExponent / 16 // the digits that it stands for
	}
	if !e.work.Take(steps) {
		return nil
	}
	n, _ := new(big.Rat).SetString(text)
	return n
}

// divides reports whether n is a multiple of a number.
func divides(of, n *big.Rat) bool { return new(big.Rat).Quo(n, of).IsInt() }

// Bounds of what is told of one place.
const (
	maxShown  = 200  // bytes of a text of the value
	maxReason = 2000 // bytes of a reason
	maxNames  = 100  // members that are named
)

// cut returns the beginning of a text for people.
func cut(text string) string { return cutTo(text, maxShown) }

func cutTo(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// shown returns a value as a reason shows it.
func shown(value any) any {
	if text, ok := value.(string); ok {
		return cut(text)
	}
	return value
}

// An endless schema leads back to itself without going into the value. No value fits it.
type endless struct{}

func (*endless) KeywordPath() []string { return nil }

func (*endless) LocalizedString(*message.Printer) string {
	return "the schema refers to itself without end"
}

// pathOf returns the names and indexes that lead to a place.
func pathOf(at *step) (path []string) {
	n := 0
	for s := at; s != nil; s = s.above {
		n++
	}
	path = make([]string, n)
	for s := at; s != nil; s = s.above {
		n--
		if path[n] = s.name; s.index >= 0 {
			path[n] = strconv.Itoa(s.index)
		}
	}
	return path
}
