package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/mortise-dev/mortise/internal/base/budget"
)

// Bounds of one check. They do not depend on the schema, which is a plugin's.
const (
	freeSteps = 1 << 20 // of any value, however small
	byteSteps = 8       // more for each of its bytes
	maxKnown  = 1 << 16 // verdicts that are kept
	maxInside = 4096    // schemas that an evaluation is inside of
)

// errDeep says that schema and value nest too deeply.
var errDeep = fmt.Errorf("nests deeper than %d schemas", maxInside)

// An evaluation holds one decoded value against a compiled schema, as the specification of
// JSON Schema has it. It remembers what it found out about each pair of a schema and a value,
// so that schemas that ask for the same again, as alternatives that refer to themselves do,
// take no more work than there are pairs. What is left takes steps.
type evaluation struct {
	work    *budget.Steps
	dynamic bool              // what a schema means depends on how it was reached: nothing is remembered
	known   map[question]bool // whether a value fits
	anchors map[anchor]*jsonschema.Schema
	cycles  int     // how often a schema led back to itself
	misfit  *Misfit // takes the places that are told
}

func newEvaluation(work *budget.Steps, dynamic bool) *evaluation {
	return &evaluation{work: work, dynamic: dynamic, known: map[question]bool{}, anchors: map[anchor]*jsonschema.Schema{}}
}

// A question is whether an array or an object fits a schema.
type question struct {
	schema *jsonschema.Schema
	value  uintptr
}

// A frame is a schema that a value is held against, inside of those that led to it.
type frame struct {
	schema *jsonschema.Schema
	value  any
	above  *frame
	depth  int
	fresh  bool        // the value is another than that of the frame above
	tells  bool        // each place that does not fit is told; otherwise the first ends it
	traces bool        // the frame above asks which members and items were evaluated
	at     *step       // where the value is
	left   unevaluated // members and items that no schema has looked at
	fails  bool
}

// A step leads from a value to one inside it.
type step struct {
	above *step
	name  string
	index int // of an item; -1 for a member
}

// evaluate reports whether the value of a frame fits its schema. A step that is not given ends
// the evaluation: the answer does not count then.
func (e *evaluation) evaluate(f *frame) bool {
	if !e.work.Take(1) {
		return false
	}
	if f.above != nil {
		f.depth = f.above.depth + 1
	}
	if f.depth > maxInside {
		e.work.End(errDeep)
		return false
	}
	f.left = e.unevaluated(f)
	if f.schema.Bool != nil {
		if !*f.schema.Bool {
			e.fail(f, func() jsonschema.ErrorKind { return &kind.FalseSchema{} })
		}
		return !f.fails
	}
	q := question{f.schema, identity(f.value)}
	asks := q.value != 0 && !f.traces && !e.dynamic
	if fits, known := e.known[q]; asks && known && (fits || !f.tells) {
		return fits
	}
	cycles := e.cycles
	e.keywords(f)
	fits := !f.fails && e.work.Err() == nil
	if asks && e.work.Err() == nil && e.cycles == cycles && len(e.known) < maxKnown {
		e.known[q] = fits
	}
	return fits
}

// identity tells an array or an object from all others of one decoded value. It is 0 for any
// other value.
func identity(value any) uintptr {
	switch v := value.(type) {
	case map[string]any:
		return reflect.ValueOf(v).Pointer()
	case []any:
		if len(v) > 0 {
			return reflect.ValueOf(v).Pointer()
		}
	}
	return 0
}

// over reports whether the outcome of a frame is known, or nothing more may be done for it.
func (e *evaluation) over(f *frame) bool { return f.fails && !f.tells || e.work.Err() != nil }

// fail notes that the value does not fit, and why.
func (e *evaluation) fail(f *frame, why func() jsonschema.ErrorKind) {
	f.fails = true
	if f.tells {
		e.misfit.add(pathOf(f.at), why())
	}
}

// keywords holds the value against the keywords of the schema.
func (e *evaluation) keywords(f *frame) {
	s, v := f.schema, f.value
	if e.leadsBack(f) {
		e.cycles++
		e.fail(f, func() jsonschema.ErrorKind { return &endless{} })
		return
	}
	got := typeOf(v)
	if s.Types != nil && !s.Types.IsEmpty() && !e.hasType(s, got, v) {
		e.fail(f, func() jsonschema.ErrorKind { return &kind.Type{Got: got, Want: s.Types.ToStrings()} })
		return
	}
	if s.Const != nil && !e.equal(v, *s.Const) {
		e.fail(f, func() jsonschema.ErrorKind { return &kind.Const{Got: v, Want: *s.Const} })
		return
	}
	if s.Enum != nil && !e.among(v, s.Enum.Values) {
		e.fail(f, func() jsonschema.ErrorKind { return &kind.Enum{Got: v, Want: s.Enum.Values} })
		return
	}
	if s.Format != nil {
		text, _ := v.(string)
		if !e.work.Take(1 + len(text)) {
			return
		}
		if err := s.Format.Validate(v); err != nil {
			e.fail(f, func() jsonschema.ErrorKind { return &kind.Format{Got: shown(v), Want: s.Format.Name, Err: err} })
			return
		}
	}
	e.part(f, s.Ref)
	if s.Ref != nil && s.DraftVersion < 2019 {
		return // what stands beside it does not count
	}
	if e.over(f) {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		e.object(f, v)
	case []any:
		e.array(f, v)
	case string:
		e.text(f, v)
	case float64, json.Number:
		e.number(f, v)
	}
	if e.over(f) {
		return
	}
	e.part(f, e.recursive(f))
	e.part(f, e.dynamicRef(f))
	e.combined(f)
	if !e.over(f) {
		e.rest(f)
	}
}

// leadsBack reports whether the schema is held against this very value already.
func (e *evaluation) leadsBack(f *frame) bool {
	for at := f; !at.fresh && at.above != nil; {
		at = at.above
		if at.schema == f.schema {
			return true
		}
		if !e.work.Take(1) {
			return false
		}
	}
	return false
}

// self holds the value of a frame against another schema. If it fits, what that has evaluated
// counts for the frame.
func (e *evaluation) self(f *frame, s *jsonschema.Schema, tells bool) bool {
	inner := frame{schema: s, value: f.value, above: f, at: f.at, tells: tells, traces: !f.left.empty()}
	if !e.evaluate(&inner) {
		return false
	}
	f.left.keep(inner.left)
	return true
}

// part is self for a schema that has to fit, if it is there.
func (e *evaluation) part(f *frame, s *jsonschema.Schema) {
	if s != nil && !e.over(f) && !e.self(f, s, f.tells) {
		f.fails = true
	}
}

// inner holds a value inside that of a frame against a schema.
func (e *evaluation) inner(f *frame, s *jsonschema.Schema, value any, name string, index int, tells bool) bool {
	inner := frame{schema: s, value: value, above: f, fresh: true, tells: tells}
	if tells {
		inner.at = &step{f.at, name, index}
	}
	return e.evaluate(&inner)
}

// member holds a member that has to fit against a schema.
func (e *evaluation) member(f *frame, s *jsonschema.Schema, value any, name string) {
	if !e.over(f) && !e.inner(f, s, value, name, -1, f.tells) {
		f.fails = true
	}
}

// items holds items that have to fit against a schema; from is the place of the first.
func (e *evaluation) items(f *frame, s *jsonschema.Schema, from int, items []any) {
	for i, item := range items {
		if e.over(f) {
			return
		}
		if !e.inner(f, s, item, "", from+i, f.tells) {
			f.fails = true
		}
	}
}

// combined holds the value against the schemas that are joined.
func (e *evaluation) combined(f *frame) {
	s := f.schema
	if s.Not != nil && !e.over(f) && e.self(f, s.Not, false) {
		e.fail(f, func() jsonschema.ErrorKind { return &kind.Not{} })
	}
	for _, one := range s.AllOf {
		e.part(f, one)
	}
	if len(s.AnyOf) > 0 && !e.over(f) {
		e.anyOf(f)
	}
	if len(s.OneOf) > 0 && !e.over(f) {
		e.oneOf(f)
	}
	if s.If == nil || e.over(f) {
		return
	}
	if e.self(f, s.If, false) {
		e.part(f, s.Then)
	} else {
		e.part(f, s.Else)
	}
}

func (e *evaluation) anyOf(f *frame) {
	found := false
	for _, one := range f.schema.AnyOf {
		if e.self(f, one, false) {
			if found = true; f.left.empty() {
				return
			}
		}
	}
	if !found {
		e.none(f, f.schema.AnyOf)
	}
}

func (e *evaluation) oneOf(f *frame) {
	first := -1
	for i, one := range f.schema.OneOf {
		switch fits := e.self(f, one, false); {
		case fits && first >= 0:
			e.fail(f, func() jsonschema.ErrorKind { return &kind.OneOf{Subschemas: []int{first, i}} })
			return
		case fits:
			first = i
		}
	}
	if first < 0 {
		e.none(f, f.schema.OneOf)
	}
}

// none tells why a value fits no alternative: each of them has its reasons.
func (e *evaluation) none(f *frame, alternatives []*jsonschema.Schema) {
	f.fails = true
	for _, one := range alternatives {
		if e.over(f) {
			return
		}
		e.self(f, one, f.tells)
	}
}

// unchecked is why a value was not held against its schema to the end.
func unchecked(why error) error {
	if errors.Is(why, budget.ErrSpent) || errors.Is(why, errDeep) {
		return fmt.Errorf("cannot be held against its schema, since that %w: send less, or simplify the schema", why)
	}
	return fmt.Errorf("was not held against its schema: %w", why)
}
