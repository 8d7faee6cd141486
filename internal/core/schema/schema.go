// Package schema compiles JSON Schemas of drafts 2020-12 and 07 and checks
// values against them.
//
// A schema can refer only to itself: nothing is ever loaded from a file or the
// network. A [Schema] is safe for concurrent use.
package schema

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// Bounds of a schema that is compiled.
const (
	MaxBytes   = 1 << 20
	maxParts   = 4000    // objects and booleans: the compiler compares each with all others
	maxRegexps = 400_000 // instructions of its regular expressions together, each counted twice
)

// An error's text names maxReasons places and counts the rest; the error itself has maxPlaces.
const (
	maxReasons = 5
	maxPlaces  = 32
)

// A Schema is a compiled JSON Schema.
type Schema struct {
	compiled *jsonschema.Schema // nil accepts every JSON value
	program  *program
	dynamic  bool // what a part of it means depends on how that was reached
}

// Any accepts every JSON value.
var Any = &Schema{}

// Compile returns the schema that raw spells. Without "$schema" it is read as
// draft 2020-12. The error says what is wrong and where.
func Compile(raw []byte) (*Schema, error) {
	if len(raw) == 0 {
		return Any, nil
	}
	if len(raw) > MaxBytes {
		return nil, fmt.Errorf("the schema is %d bytes long; at most %d are accepted", len(raw), MaxBytes)
	}
	doc, err := decode(raw)
	if err != nil {
		return nil, err
	}
	switch doc.(type) {
	case map[string]any, bool:
	default:
		return nil, errors.New("a JSON Schema is an object or a boolean")
	}
	parts, dynamic := scan(doc)
	if parts > maxParts {
		return nil, fmt.Errorf("the schema has %d parts; at most %d are accepted", parts, maxParts)
	}
	compiler, expressions := newCompiler()
	if err := compiler.AddResource(resource, doc); err != nil {
		return nil, err
	}
	compiled, err := compiler.Compile(resource)
	if err != nil {
		return nil, explainCompile(err)
	}
	expressions.compiled = true
	return &Schema{compiled, programmer{}.of(compiled), dynamic}, nil
}

// scan counts the objects and booleans of a schema, and reports whether what a part of it means
// may depend on how that was reached: it has a reference of that kind, or one to a schema of the
// specification, which has some.
func scan(doc any) (parts int, dynamic bool) {
	visit := func(inner any) {
		more, is := scan(inner)
		parts, dynamic = parts+more, dynamic || is
	}
	switch doc := doc.(type) {
	case bool:
		parts++
	case []any:
		for _, inner := range doc {
			visit(inner)
		}
	case map[string]any:
		parts++
		for name, inner := range doc {
			to, _ := inner.(string)
			dynamic = dynamic || name == "$dynamicRef" || name == "$recursiveRef" || name == "$ref" && !strings.HasPrefix(to, "#")
			visit(inner)
		}
	}
	return parts, dynamic
}

// resource is what a compiler calls the one schema it has.
const resource = "mortise:///schema"

func newCompiler() (*jsonschema.Compiler, *regexps) {
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	compiler.UseLoader(noLoader{})
	expressions := &regexps{left: maxRegexps}
	compiler.UseRegexpEngine(expressions.compile)
	return compiler, expressions
}

// regexps compiles the regular expressions of a schema, and then those that values are, which
// the format regex wants.
type regexps struct {
	left     int  // instructions
	compiled bool // the schema is
}

func (r *regexps) compile(text string) (jsonschema.Regexp, error) {
	re, err := pattern.Compile(text)
	if err != nil {
		return nil, err
	}
	if !r.compiled {
		if r.left -= re.Size(); r.left < 0 {
			return nil, errors.New("the regular expressions of the schema are too large together")
		}
	}
	return re, nil
}

// noLoader refuses every reference that leads out of the schema.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("$ref to %s: a schema may refer only to itself", strings.TrimPrefix(url, "mortise:///"))
}

// Check returns nil if the JSON value fits. A value that does not is told by a [*Misfit],
// which names the places by JSON pointer with the reason at each.
//
// The work is bounded by the size of the value, whatever the schema is, and ends with ctx. A
// value that would take more is refused.
func (s *Schema) Check(ctx context.Context, value []byte) error {
	if s.compiled == nil {
		return nil
	}
	if len(value) == 0 {
		value = []byte("null")
	}
	if s.program != nil && s.program.fits(value) {
		return nil
	}
	weight := len(value)
	if weight > small {
		weight = budget.Weigh(value).Tree()
	}
	return budget.Do(weight, func() error {
		decoded, err := decode(value)
		if err != nil {
			return err
		}
		return s.hold(decoded, func(steps int) *budget.Steps { return budget.NewSteps(ctx, steps) }, len(value))
	})
}

// hold returns why a decoded value of so many bytes does not fit, nil if it does. Finding the
// reasons is work of its own.
func (s *Schema) hold(value any, work func(steps int) *budget.Steps, bytes int) error {
	steps := freeSteps + byteSteps*bytes
	e := newEvaluation(work(steps), s.dynamic)
	fits := e.evaluate(&frame{schema: s.compiled, value: value, fresh: true})
	if err := e.work.Err(); err != nil {
		return unchecked(err)
	}
	if fits {
		return nil
	}
	e.work, e.misfit = work(steps/8), &Misfit{}
	e.evaluate(&frame{schema: s.compiled, value: value, fresh: true, tells: true})
	return e.misfit.done(e.work.Err() != nil)
}

// small is up to which size a value is not weighed.
const small = 16 << 10

// decode reads one JSON value. Numbers are doubles, which is quick, unless one
// has more digits than a double keeps: then all stay as they are spelled.
func decode(raw []byte) (any, error) {
	long, many, huge := numbers(raw)
	if many {
		return nil, fmt.Errorf("a number has more than %d digits", maxDigits)
	}
	if huge {
		return nil, fmt.Errorf("a number has an exponent beyond %d", maxExponent)
	}
	if long && jsontext.Value(raw).IsValid() { // which names no member twice
		return jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	}
	var value any
	err := json.Unmarshal(raw, &value)
	return value, err
}

// Bounds of a number. It is compared as a fraction, whose digits take memory and time: by the
// square of their number, and by an exponent of few bytes.
const (
	maxDigits   = 1000
	maxExponent = 999
)

// numbers looks for sixteen digits in a row, or an exponent, which text may have
// too; and whether a number has too many digits, or too large an exponent.
func numbers(raw []byte) (long, many, huge bool) {
	digits, exponent, inText := 0, -1, false // exponent counts its digits
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case c-'0' <= 9:
			if digits++; digits == 16 {
				long = true
			}
			many = many || digits > maxDigits && !inText
			if exponent >= 0 && (exponent > 0 || c != '0') {
				exponent++
			}
			huge = huge || exponent > 3 && !inText
		case c == '.':
		case digits > 0 && c|' ' == 'e':
			long, exponent = true, 0
		case exponent == 0 && (c == '+' || c == '-'):
		case inText && c == '\\':
			digits, exponent = 0, -1
			i++
		default:
			digits, exponent = 0, -1
			inText = inText != (c == '"')
		}
	}
	return long, many, huge
}

// A Place is one place of a value that does not fit, and why.
type Place struct {
	Pointer string   // a JSON pointer (RFC 6901); "" is the whole value
	Reason  string   // in English
	Members []string // the members that are missing there, or may not be there
}

// A Misfit is why a value does not fit its schema. Its text names up to five places.
type Misfit struct {
	Places []Place // up to 32, sorted by their pointers
	more   int     // how many beyond those
	open   bool    // there may be others
}

// Error implements error: "at /pointer: reason" for each place.
func (m *Misfit) Error() string {
	var reasons []string
	for _, p := range m.Places[:min(len(m.Places), maxReasons)] {
		reasons = append(reasons, fmt.Sprintf("at %s: %s", cmp.Or(p.Pointer, "the top"), p.Reason))
	}
	text := strings.Join(reasons, "; ")
	more := m.more + len(m.Places) - len(reasons)
	switch {
	case m.open:
		text += fmt.Sprintf("; and at least %d more", more)
	case more > 0:
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// add notes a place. Beyond maxPlaces it counts.
func (m *Misfit) add(path []string, why jsonschema.ErrorKind) {
	if len(m.Places) == maxPlaces {
		m.more++
		return
	}
	place := Place{Pointer: pointer(path), Reason: cutTo(why.LocalizedString(message.NewPrinter(language.English)), maxReason)}
	switch k := why.(type) {
	case *kind.Required:
		place.Members = k.Missing
	case *kind.DependentRequired:
		place.Members = k.Missing
	case *kind.Dependency:
		place.Members = k.Missing
	case *kind.AdditionalProperties:
		place.Members = k.Properties
	}
	m.Places = append(m.Places, place)
}

// done returns the misfit once all places are noted, or those that there were steps for.
func (m *Misfit) done(open bool) *Misfit {
	if m.open = open; len(m.Places) == 0 {
		m.Places = []Place{{Reason: "the value does not fit the schema"}}
	}
	slices.SortStableFunc(m.Places, func(a, b Place) int { return strings.Compare(a.Pointer, b.Pointer) })
	return m
}

// explain turns the tree of causes of the library into places, for its leaves.
func explain(err *jsonschema.ValidationError) *Misfit {
	m := &Misfit{}
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		for _, cause := range e.Causes {
			walk(cause)
		}
		if len(e.Causes) == 0 {
			m.add(e.InstanceLocation, e.ErrorKind)
		}
	}
	walk(err)
	return m.done(false)
}

// explainCompile makes the library's error about a schema readable: the place
// in the schema and the reason.
func explainCompile(err error) error {
	var invalid *jsonschema.SchemaValidationError
	if errors.As(err, &invalid) {
		var cause *jsonschema.ValidationError
		if errors.As(invalid.Err, &cause) {
			return explain(cause)
		}
	}
	var load *jsonschema.LoadURLError
	if errors.As(err, &load) {
		return load.Err
	}
	return errors.New(strings.ReplaceAll(err.Error(), resource, ""))
}

// Pointer writes a path as a JSON pointer (RFC 6901) for people: the whole
// document, whose pointer is empty, reads "the top".
func Pointer(path []string) string {
	return cmp.Or(pointer(path), "the top")
}

// pointer writes a path as a JSON pointer.
func pointer(path []string) string {
	var b strings.Builder
	for _, part := range path {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(part))
	}
	return b.String()
}
