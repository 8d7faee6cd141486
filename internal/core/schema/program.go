package schema

import (
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// A program is a schema that is checked against a value as it is spelled, without
// decoding it. It says that the value fits, that it does not, or that it cannot tell. Of
// these only the first is an answer to a caller: whatever does not fit for sure is decoded for an
// evaluation, which has the last word and makes the messages.
//
// It knows type; enum and const of strings, whole numbers, booleans and null; properties,
// patternProperties, additionalProperties, required, minProperties, maxProperties; items,
// prefixItems, additionalItems, minItems, maxItems; minLength, maxLength, pattern, format;
// the bounds of numbers, and multipleOf of whole ones; $ref, allOf, anyOf, oneOf, not, if,
// then and else. A part of a schema that has any other keyword is the evaluation's.
type program struct {
	unsure bool  // it is the evaluation's
	always *bool // it is a boolean schema

	types  kinds
	simple *simple // enum and const; nil allows all
	format func(value any) error
	ref    *program
	alone  bool // what stands beside ref does not count: draft 07

	member     map[string]int // of properties and required, to its place in members
	members    []member
	required   int // of members
	patterns   []patterned
	additional *program // of members that nothing else describes; nil allows all
	fewest     int      // members
	most       int

	prefix   []*program
	items    *program // beyond prefix; nil allows all
	shortest int      // items
	longest  int

	short, long int // in characters
	pattern     *pattern.Foreign

	whole   *wholeBounds // nil where there are none
	decimal *decimalBounds

	all, any, one      []*program
	not, cond, yes, no *program
}

// A member is one that a schema of objects names.
type member struct {
	schema   *program // nil allows all
	required bool
}

// A patterned is a schema for members with certain names.
type patterned struct {
	name   *pattern.Foreign
	schema *program
}

// A simple is the values of an enum that are no containers.
type simple struct {
	texts   map[string]bool
	numbers map[int64]bool
	null    bool
	yes, no bool
}

// A wholeBounds is between which whole numbers one has to be, and what divides it.
type wholeBounds struct{ least, greatest, divisor int64 }

// A decimalBounds is between which numbers one has to be that is not spelled as a whole
// number. known says that they are as exact as the doubles that they are compared with.
type decimalBounds struct {
	known           bool
	least, greatest float64
	above, below    float64
}

// kinds is a set of types.
type kinds uint8

const (
	kindNull kinds = 1 << iota
	kindBool
	kindNumber
	kindInteger
	kindString
	kindArray
	kindObject
	kindAll kinds = 1<<iota - 1
)

var kindOf = map[string]kinds{
	"null": kindNull, "boolean": kindBool, "number": kindNumber | kindInteger, "integer": kindInteger,
	"string": kindString, "array": kindArray, "object": kindObject,
}

// maxMembers is how many members a schema may name, which are noted as bits.
const maxMembers = 256

// A programmer makes programs. A schema that refers to itself has one program.
type programmer map[*jsonschema.Schema]*program

func (all programmer) of(s *jsonschema.Schema) *program {
	if s == nil {
		return nil
	}
	if p := all[s]; p != nil {
		return p
	}
	p := &program{types: kindAll, most: math.MaxInt, longest: math.MaxInt, long: math.MaxInt}
	all[s] = p
	if p.always = s.Bool; p.always != nil {
		return p
	}
	if s.RecursiveRef != nil || s.DynamicRef != nil || s.PropertyNames != nil || s.Dependencies != nil || s.DependentRequired != nil ||
		s.DependentSchemas != nil || s.UnevaluatedProperties != nil || s.UnevaluatedItems != nil || s.UniqueItems || s.Contains != nil ||
		s.ContentEncoding != nil || s.ContentMediaType != nil || s.ContentSchema != nil || len(s.Extensions) > 0 {
		p.unsure = true
		return p
	}
	if s.Types != nil && !s.Types.IsEmpty() {
		p.types = 0
		for _, name := range s.Types.ToStrings() {
			p.types |= kindOf[name]
		}
	}
	if s.Format != nil {
		p.format = s.Format.Validate
	}
	p.ref, p.alone = all.of(s.Ref), s.Ref != nil && s.DraftVersion < 2019
	p.enumerate(s)
	p.unsure = p.unsure || p.alone && (p.types != kindAll || p.simple != nil || p.format != nil) // the evaluation looks at these first
	all.object(p, s)
	all.array(p, s)
	p.text(s)
	p.number(s)
	for _, list := range []struct {
		to   *[]*program
		from []*jsonschema.Schema
	}{{&p.all, s.AllOf}, {&p.any, s.AnyOf}, {&p.one, s.OneOf}} {
		for _, part := range list.from {
			*list.to = append(*list.to, all.of(part))
		}
	}
	p.not, p.cond, p.yes, p.no = all.of(s.Not), all.of(s.If), all.of(s.Then), all.of(s.Else)
	return p
}

// enumerate takes over enum and const.
func (p *program) enumerate(s *jsonschema.Schema) {
	var values []any
	switch {
	case s.Const != nil && s.Enum != nil:
		p.unsure = true
		return
	case s.Const != nil:
		values = []any{*s.Const}
	case s.Enum != nil:
		values = s.Enum.Values
	default:
		return
	}
	p.simple = &simple{texts: map[string]bool{}, numbers: map[int64]bool{}}
	for _, value := range values {
		switch v := value.(type) {
		case nil:
			p.simple.null = true
		case bool:
			p.simple.yes, p.simple.no = p.simple.yes || v, p.simple.no || !v
		case string:
			p.simple.texts[v] = true
		case float64, json.Number:
			n, ok := wholeOf(rational(v))
			p.unsure = p.unsure || !ok
			p.simple.numbers[n] = true
		default:
			p.unsure = true
		}
	}
}

func (all programmer) object(p *program, s *jsonschema.Schema) {
	if s.MinProperties != nil {
		p.fewest = *s.MinProperties
	}
	if s.MaxProperties != nil {
		p.most = *s.MaxProperties
	}
	p.member = map[string]int{}
	place := func(name string) *member {
		at, found := p.member[name]
		if !found {
			at = len(p.members)
			p.member[name] = at
			p.members = append(p.members, member{})
		}
		return &p.members[at]
	}
	for name, schema := range s.Properties {
		schema := all.of(schema)
		place(name).schema = schema
	}
	for _, name := range s.Required {
		if m := place(name); !m.required {
			m.required = true
			p.required++
		}
	}
	for name := range p.member {
		p.unsure = p.unsure || strings.ContainsAny(name, "\\\"") || !plain(name)
	}
	p.unsure = p.unsure || len(p.members) > maxMembers
	for name, schema := range s.PatternProperties {
		re, ok := name.(*pattern.Foreign)
		p.unsure = p.unsure || !ok
		p.patterns = append(p.patterns, patterned{re, all.of(schema)})
	}
	// A member that is required and not described is an additional one.
	p.unsure = p.unsure || s.AdditionalProperties != nil && slices.ContainsFunc(p.members, func(m member) bool { return m.schema == nil })
	p.additional = all.orBool(s.AdditionalProperties, &p.unsure)
}

// plain reports whether each character of a name is spelled as itself, and in one way alone
// where no escape is used.
func plain(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '\uFFFD' })
}

// orBool is a schema that may be a boolean; nil if it is not there.
func (all programmer) orBool(value any, unsure *bool) *program {
	switch v := value.(type) {
	case nil:
	case bool:
		return &program{always: &v}
	case *jsonschema.Schema:
		return all.of(v)
	default:
		*unsure = true
	}
	return nil
}

func (all programmer) array(p *program, s *jsonschema.Schema) {
	if s.MinItems != nil {
		p.shortest = *s.MinItems
	}
	if s.MaxItems != nil {
		p.longest = *s.MaxItems
	}
	if s.DraftVersion >= 2020 {
		for _, item := range s.PrefixItems {
			p.prefix = append(p.prefix, all.of(item))
		}
		p.items = all.of(s.Items2020)
		return
	}
	switch items := s.Items.(type) {
	case nil:
	case *jsonschema.Schema:
		p.items = all.of(items)
		return // beside it additionalItems does not count
	case []*jsonschema.Schema:
		for _, item := range items {
			p.prefix = append(p.prefix, all.of(item))
		}
	default:
		p.unsure = true
	}
	p.items = all.orBool(s.AdditionalItems, &p.unsure)
}

func (p *program) text(s *jsonschema.Schema) {
	if s.MinLength != nil {
		p.short = *s.MinLength
	}
	if s.MaxLength != nil {
		p.long = *s.MaxLength
	}
	if s.Pattern != nil {
		re, ok := s.Pattern.(*pattern.Foreign)
		p.pattern, p.unsure = re, p.unsure || !ok
	}
}

func (p *program) number(s *jsonschema.Schema) {
	if s.Minimum == nil && s.Maximum == nil && s.ExclusiveMinimum == nil && s.ExclusiveMaximum == nil && s.MultipleOf == nil {
		return
	}
	w := &wholeBounds{math.MinInt64, math.MaxInt64, 0}
	d := &decimalBounds{s.MultipleOf == nil, math.Inf(-1), math.Inf(1), math.Inf(-1), math.Inf(1)}
	fits := true
	bound := func(r *big.Rat, up bool, beyond int64, take func(int64), at *float64) {
		if r == nil {
			return
		}
		n, ok := rounded(r, up)
		if fits = fits && ok; ok {
			take(n + beyond)
		}
		*at, ok = double(r)
		d.known = d.known && ok
	}
	least, greatest := func(n int64) { w.least = max(w.least, n) }, func(n int64) { w.greatest = min(w.greatest, n) }
	bound(s.Minimum, true, 0, least, &d.least)
	bound(s.Maximum, false, 0, greatest, &d.greatest)
	bound(s.ExclusiveMinimum, false, 1, least, &d.above)
	bound(s.ExclusiveMaximum, true, -1, greatest, &d.below)
	if s.MultipleOf != nil {
		n, ok := wholeOf(s.MultipleOf)
		w.divisor, fits = n, fits && ok && n > 0
	}
	p.unsure = p.unsure || !fits
	p.whole, p.decimal = w, d
}

// mostDigits is how many digits a number has at most that is read here: such a number is a
// double of its own, in the order of the numbers.
const mostDigits = 15

// rounded returns the next whole number, if it has no more than mostDigits digits.
func rounded(r *big.Rat, up bool) (int64, bool) {
	n, rest := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int)) // towards the lesser
	if up && rest.Sign() != 0 {
		n.Add(n, big.NewInt(1))
	}
	return n.Int64(), n.IsInt64() && n.CmpAbs(big.NewInt(1e15)) < 0
}

// wholeOf returns a whole number, if it is one of no more than mostDigits digits.
func wholeOf(r *big.Rat) (int64, bool) {
	if r == nil || !r.IsInt() {
		return 0, false
	}
	return rounded(r, false)
}

// double returns a number as a double, if it is spelled with no more than mostDigits digits.
func double(r *big.Rat) (float64, bool) {
	f, _ := r.Float64()
	back, ok := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', mostDigits, 64))
	return f, ok && back.Cmp(r) == 0
}

// rational returns a number of a schema; nil if it is none.
func rational(value any) *big.Rat {
	switch v := value.(type) {
	case float64:
		return new(big.Rat).SetFloat64(v)
	case json.Number:
		if len(v) <= 40 && !strings.ContainsAny(string(v), "eE") { // an exponent can be large
			if r, ok := new(big.Rat).SetString(string(v)); ok {
				return r
			}
		}
	}
	return nil
}
