package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/go-json-experiment/json/jsontext"
)

// What the arguments that policies look at may hold at most. A call that goes
// beyond is denied: what is left out would be hidden from a forbid.
const (
	maxArgumentDepth  = 32
	maxArgumentValues = 4096
)

// An arguments reads JSON into Cedar's values: text, whole numbers as Long,
// others as decimal, true and false, lists as sets, objects as records. null is
// no argument. Where the operation's schema says number, whole ones are decimal
// too, so that a policy can compare them in one way.
//
// A number that Cedar cannot hold exactly becomes [inexact].
type arguments struct {
	*jsontext.Decoder
	left int // values until there are too many
}

var errArguments = errors.New("the arguments are nested too deep, or hold too much, for the policies that look at them")

// inexact stands for a number that Cedar cannot hold: `has` finds it, it equals
// nothing that a policy can write, and to compare it fails, which denies.
var inexact = types.NewRecord(types.RecordMap{"": types.Boolean(true)})

// readArguments returns the members of a JSON object that are looked at.
func readArguments(input []byte, names []string, s *shape) (types.Record, error) {
	if len(input) == 0 {
		return types.Record{}, nil
	}
	a := arguments{jsontext.NewDecoder(bytes.NewReader(input)), maxArgumentValues}
	if a.PeekKind() != '{' {
		return types.Record{}, nil
	}
	return a.object(0, names, s)
}

// value reads the next value; it is nil for null.
func (a *arguments) value(depth int, s *shape) (types.Value, error) {
	if a.left--; a.left < 0 || depth > maxArgumentDepth {
		return nil, errArguments
	}
	switch a.PeekKind() {
	case '{':
		return a.object(depth, nil, s)
	case '[':
		return a.list(depth, s)
	}
	t, err := a.ReadToken()
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
	case 't', 'f':
		return types.Boolean(t.Bool()), nil
	case '"':
		return types.String(t.String()), nil
	case '0':
		return number(t.String(), s.number()), nil
	default:
		return nil, nil
	}
}

// object reads an object: the members that are named, or all.
func (a *arguments) object(depth int, names []string, s *shape) (types.Record, error) {
	if _, err := a.ReadToken(); err != nil {
		return types.Record{}, err
	}
	members := types.RecordMap{}
	for a.PeekKind() == '"' {
		t, err := a.ReadToken()
		if err != nil {
			return types.Record{}, err
		}
		name := t.String()
		if names != nil && !slices.Contains(names, name) {
			if err := a.SkipValue(); err != nil {
				return types.Record{}, err
			}
			continue
		}
		v, err := a.value(depth+1, s.member(name))
		if err != nil {
			return types.Record{}, err
		}
		if v != nil {
			members[types.String(name)] = v
		}
	}
	if _, err := a.ReadToken(); err != nil {
		return types.Record{}, err
	}
	return types.NewRecord(members), nil
}

func (a *arguments) list(depth int, s *shape) (types.Set, error) {
	if _, err := a.ReadToken(); err != nil {
		return types.Set{}, err
	}
	var elements []types.Value
	for k := a.PeekKind(); k != ']' && k != 0; k = a.PeekKind() {
		v, err := a.value(depth+1, s.element())
		if err != nil {
			return types.Set{}, err
		}
		if v != nil {
			elements = append(elements, v)
		}
	}
	if _, err := a.ReadToken(); err != nil {
		return types.Set{}, err
	}
	return types.NewSet(elements...), nil
}

// number returns a JSON number: the same value, however it is spelt.
func number(text string, decimal bool) types.Value {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && !decimal {
		return types.Long(n)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return inexact
	}
	const exact = 1 << 53
	whole := math.Trunc(f) == f && math.Abs(f) < exact
	if whole && !decimal { // 1e3, 10.0
		return types.Long(int64(f))
	}
	plain := strconv.FormatFloat(f, 'f', -1, 64)
	if whole {
		plain += ".0"
	}
	d, err := types.ParseDecimal(plain)
	if err != nil {
		return inexact
	}
	return d
}

// A shape is what a JSON Schema says of numbers: where one may have a fraction.
// A nil shape says nothing.
type shape struct {
	fraction bool
	members  map[string]*shape
	elements *shape
}

func (s *shape) number() bool { return s != nil && s.fraction }

func (s *shape) member(name string) *shape {
	if s == nil {
		return nil
	}
	return s.members[name]
}

func (s *shape) element() *shape {
	if s == nil {
		return nil
	}
	return s.elements
}

// shapeOf reads the plain parts of a schema: type, properties and items. What
// is said by reference or by combination stays untold.
func shapeOf(schema []byte) *shape {
	var s struct {
		Type       any                        `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Items      json.RawMessage            `json:"items"`
	}
	if len(schema) == 0 || json.Unmarshal(schema, &s) != nil {
		return nil
	}
	out := &shape{fraction: s.Type == "number"}
	if several, ok := s.Type.([]any); ok { // number or null
		out.fraction = slices.Contains(several, any("number"))
	}
	for name, schema := range s.Properties {
		if m := shapeOf(schema); m != nil {
			if out.members == nil {
				out.members = map[string]*shape{}
			}
			out.members[name] = m
		}
	}
	out.elements = shapeOf(s.Items)
	return out
}
