// Package schema compiles JSON Schemas of drafts 2020-12 and 07 and checks
// values against them.
//
// A schema can refer only to itself: nothing is ever loaded from a file or the
// network. A [Schema] is safe for concurrent use.
package schema

import (
	"bytes"
	"cmp"
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
)

// MaxBytes is the largest schema that is compiled.
const MaxBytes = 1 << 20

// An error's text names maxReasons places and counts the rest; the error itself has maxPlaces.
const (
	maxReasons = 5
	maxPlaces  = 32
)

// A Schema is a compiled JSON Schema.
type Schema struct {
	compiled *jsonschema.Schema // nil accepts every JSON value
	program  *program
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
	compiler := newCompiler()
	if err := compiler.AddResource(resource, doc); err != nil {
		return nil, err
	}
	compiled, err := compiler.Compile(resource)
	if err != nil {
		return nil, explainCompile(err)
	}
	return &Schema{compiled, programmer{}.of(compiled)}, nil
}

// resource is what a compiler calls the one schema it has.
const resource = "mortise:///schema"

func newCompiler() *jsonschema.Compiler {
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	compiler.UseLoader(noLoader{})
	return compiler
}

// noLoader refuses every reference that leads out of the schema.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("$ref to %s: a schema may refer only to itself", strings.TrimPrefix(url, "mortise:///"))
}

// Check returns nil if the JSON value fits. A value that does not is told by a [*Misfit],
// which names the places by JSON pointer with the reason at each.
func (s *Schema) Check(value []byte) error {
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
	err := budget.Do(weight, func() error {
		decoded, err := decode(value)
		if err != nil {
			return err
		}
		return s.compiled.Validate(decoded)
	})
	var invalid *jsonschema.ValidationError
	if errors.As(err, &invalid) {
		return explain(invalid)
	}
	return err
}

// small is up to which size a value is not weighed.
const small = 16 << 10

// decode reads one JSON value. Numbers are doubles, which is quick, unless one
// has more digits than a double keeps: then all stay as they are spelled.
func decode(raw []byte) (any, error) {
	long, huge := numbers(raw)
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

// maxExponent is the greatest that a number may have. A number is compared as a fraction,
// whose digits take memory and time by its exponent.
const maxExponent = 999

// numbers looks for sixteen digits in a row, or an exponent, which text may have
// too; and whether a number has an exponent that is too large.
func numbers(raw []byte) (long, huge bool) {
	digits, exponent, inText := 0, -1, false // exponent counts its digits
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case c-'0' <= 9:
			if digits++; digits == 16 {
				long = true
			}
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
	return long, huge
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
}

// Error implements error: "at /pointer: reason" for each place.
func (m *Misfit) Error() string {
	var reasons []string
	for _, p := range m.Places[:min(len(m.Places), maxReasons)] {
		reasons = append(reasons, fmt.Sprintf("at %s: %s", cmp.Or(p.Pointer, "the top"), p.Reason))
	}
	text := strings.Join(reasons, "; ")
	if more := m.more + len(m.Places) - len(reasons); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// explain turns the tree of causes into places, for its leaves.
func explain(err *jsonschema.ValidationError) *Misfit {
	m := &Misfit{}
	printer := message.NewPrinter(language.English)
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(e.Causes) > 0 {
			for _, cause := range e.Causes {
				walk(cause)
			}
			return
		}
		if len(m.Places) == maxPlaces {
			m.more++
			return
		}
		place := Place{Pointer: pointer(e.InstanceLocation), Reason: e.ErrorKind.LocalizedString(printer)}
		switch k := e.ErrorKind.(type) {
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
	walk(err)
	slices.SortStableFunc(m.Places, func(a, b Place) int { return strings.Compare(a.Pointer, b.Pointer) }) // the library's order changes from time to time
	return m
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
