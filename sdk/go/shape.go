package mortise

import (
	"encoding"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/protocol"
)

// A shape describes the JSON of one Go type, as the codec writes or reads it. The
// schema of an operation and the check for missing properties are both read off
// it. Shapes of recursive types are cyclic.
type shape struct {
	keywords  map[string]any // of the schema, beside those below; empty accepts all
	fields    []field        // of a struct
	object    bool           // fields counts
	items     *shape         // of an array
	values    *shape         // of an object's members beyond fields; nil for a struct that has no others
	inner     *shape         // of a pointer, which may be null
	name      string         // of a type that refers to itself: its definition
	recursive bool
}

// A field is one property of a struct.
type field struct {
	name     string
	doc      string
	required bool
	shape    *shape
}

// A shaper makes the shapes of types. Methods of a type's own that write its JSON
// are others than those that read it.
type shaper struct {
	json, text []reflect.Type
	made       map[reflect.Type]*shape
	making     map[reflect.Type]bool
}

// writtenShape returns the shape of what the codec writes for t, readShape of what it reads.
func writtenShape(t reflect.Type) *shape {
	return newShaper([]reflect.Type{reflect.TypeFor[json.MarshalerTo](), reflect.TypeFor[json.Marshaler]()},
		[]reflect.Type{reflect.TypeFor[encoding.TextAppender](), reflect.TypeFor[encoding.TextMarshaler]()}).of(t)
}

func readShape(t reflect.Type) *shape {
	return newShaper([]reflect.Type{reflect.TypeFor[json.UnmarshalerFrom](), reflect.TypeFor[json.Unmarshaler]()},
		[]reflect.Type{reflect.TypeFor[encoding.TextUnmarshaler]()}).of(t)
}

func newShaper(jsonMethods, textMethods []reflect.Type) *shaper {
	return &shaper{jsonMethods, textMethods, map[reflect.Type]*shape{}, map[reflect.Type]bool{}}
}

func (m *shaper) of(t reflect.Type) *shape {
	if s := m.made[t]; s != nil {
		s.recursive = s.recursive || m.making[t]
		return s
	}
	s := &shape{keywords: map[string]any{}, name: t.Name()}
	if s.name != "" { // a type without a name refers to itself only through one that has one
		m.made[t], m.making[t] = s, true
		defer delete(m.making, t)
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		s.keywords = map[string]any{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[time.Duration]():
		s.keywords = map[string]any{"type": "string", "pattern": durationPattern, "description": "a duration such as 1m30s"}
	case implements(t, m.json): // it may write anything
	case implements(t, m.text):
		s.keywords["type"] = "string"
	default:
		m.fill(s, t)
	}
	return s
}

// durationPattern is what [time.ParseDuration] reads.
const durationPattern = `^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`

// implements reports whether t or a pointer to it has the methods of one of the
// interfaces. Of a pointer they are called for what it points to: nil is null.
func implements(t reflect.Type, methods []reflect.Type) bool {
	if t.Kind() == reflect.Interface || t.Kind() == reflect.Pointer {
		return false
	}
	return slices.ContainsFunc(methods, func(i reflect.Type) bool { return t.Implements(i) || reflect.PointerTo(t).Implements(i) })
}

// fill describes a type that has no methods for that.
func (m *shaper) fill(s *shape, t reflect.Type) {
	switch t.Kind() {
	case reflect.String:
		s.keywords["type"] = "string"
	case reflect.Bool:
		s.keywords["type"] = "boolean"
	case reflect.Int, reflect.Int64:
		s.keywords["type"] = "integer"
	case reflect.Int8, reflect.Int16, reflect.Int32:
		s.keywords = map[string]any{"type": "integer", "minimum": -int64(1) << (t.Bits() - 1), "maximum": int64(1)<<(t.Bits()-1) - 1}
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		s.keywords = map[string]any{"type": "integer", "minimum": 0, "maximum": int64(1)<<t.Bits() - 1}
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		s.keywords = map[string]any{"type": "integer", "minimum": 0}
	case reflect.Float32, reflect.Float64:
		s.keywords["type"] = "number"
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 && t.Elem().PkgPath() == "" {
			s.keywords = map[string]any{"type": "string", "contentEncoding": "base64"}
			return
		}
		s.keywords["type"] = "array"
		if t.Kind() == reflect.Array {
			s.keywords["minItems"], s.keywords["maxItems"] = t.Len(), t.Len()
		}
		s.items = m.of(t.Elem())
	case reflect.Map:
		s.keywords["type"] = "object"
		s.values = m.of(t.Elem())
	case reflect.Pointer:
		if endless(t) {
			s.keywords["type"] = "null"
			return
		}
		s.inner = m.of(t.Elem())
	case reflect.Struct:
		s.keywords["type"], s.object = "object", true
		m.structure(s, t)
	}
}

// endless reports whether t points to itself: it has no value but nil.
func endless(t reflect.Type) bool {
	for seen := map[reflect.Type]bool{}; t.Kind() == reflect.Pointer; t = t.Elem() {
		if seen[t] {
			return true
		}
		seen[t] = true
	}
	return false
}

// A candidate is a field that a struct may have, before fields that embedding
// hides are taken out.
type candidate struct {
	reflect.StructField
	name            string
	depth           int
	tagged          bool // with a name
	mayLack, quoted bool // by the options of its tag, or because a pointer to its struct may be nil
}

// structure finds the properties of a struct as package json does: fields of
// embedded structs are the struct's own, the shallowest of a name counts, of those
// the one that a tag names, and none where that is not just one.
func (m *shaper) structure(s *shape, t reflect.Type) {
	type level struct {
		reflect.Type
		depth         int
		visit, absent bool
	}
	queue, seen := []level{{t, 0, true, false}}, map[reflect.Type]bool{t: true}
	var found []candidate
	rest := -1 // how deep the embedded map lies that takes all other members
	for i := 0; i < len(queue); i++ {
		at := queue[i]
		for f := range fieldsOf(at.Type) {
			tag := f.Tag.Get("json")
			name, options, _ := strings.Cut(tag, ",")
			flags := strings.Split(options, ",")
			if tag == "-" || !f.IsExported() && !f.Anonymous {
				continue
			}
			embedded, inner := f.Anonymous && name == "" || slices.Contains(flags, "embed"), f.Type
			if inner.Kind() == reflect.Pointer && inner.Name() == "" {
				inner = inner.Elem()
			}
			switch {
			case embedded && inner.Kind() == reflect.Struct:
				if at.visit {
					queue = append(queue, level{inner, at.depth + 1, !seen[inner], at.absent || inner != f.Type})
				}
				seen[inner] = true
			case embedded && inner == reflect.TypeFor[jsontext.Value](), embedded && inner.Kind() == reflect.Map:
				if rest < 0 || at.depth < rest {
					rest, s.values = at.depth, &shape{}
					if inner.Kind() == reflect.Map {
						s.values = m.of(inner.Elem())
					}
				}
			default:
				c := candidate{f, name, at.depth, name != "", at.absent || f.Type.Kind() == reflect.Pointer, slices.Contains(flags, "string")}
				if !c.tagged {
					c.name = f.Name
				}
				c.mayLack = c.mayLack || slices.Contains(flags, "omitempty") || slices.Contains(flags, "omitzero")
				found = append(found, c)
			}
		}
	}
	for i, c := range found {
		if !slices.ContainsFunc(slices.Concat(found[:i], found[i+1:]), c.hiddenBy) {
			s.fields = append(s.fields, field{c.name, c.Tag.Get("doc"), !c.mayLack, m.quoted(c.Type, c.quoted)})
		}
	}
}

// fieldsOf goes through the fields of a struct.
func fieldsOf(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}

// hiddenBy reports whether c is no property because of another field.
func (c candidate) hiddenBy(other candidate) bool {
	if other.name != c.name || other.depth != c.depth {
		return other.name == c.name && other.depth < c.depth
	}
	return other.tagged || !c.tagged
}

// quoted is the shape of a field's type: with the option string a number is text.
func (m *shaper) quoted(t reflect.Type, text bool) *shape {
	s := m.of(t)
	switch kind, _ := s.keywords["type"].(string); {
	case !text:
		return s
	case kind == "integer" || kind == "number":
		return &shape{keywords: map[string]any{"type": "string"}}
	case s.inner != nil:
		return &shape{inner: m.quoted(t.Elem(), true)}
	}
	return s
}

// A spelling writes the schema of a shape.
type spelling struct {
	defs  map[string]any // by name
	named map[*shape]string
}

// schema returns the JSON Schema of the shape, nil where it says nothing.
func (s *shape) schema() map[string]any {
	p := &spelling{map[string]any{}, map[*shape]string{}}
	all := p.body(s) // the whole at the top, where readers look for properties
	if len(all) == 0 {
		return nil
	}
	all["$schema"] = draft
	if len(p.defs) > 0 {
		all["$defs"] = p.defs
	}
	return all
}

// of returns the schema of a part: of a recursive type a reference.
func (p *spelling) of(s *shape) map[string]any {
	if !s.recursive {
		return p.body(s)
	}
	name, there := p.named[s]
	if !there {
		name = p.free(s.name)
		p.named[s] = name
		p.defs[name] = p.body(s)
	}
	return map[string]any{"$ref": "#/$defs/" + name}
}

// free returns a name for a definition that no other has.
func (p *spelling) free(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, name)
	taken := slices.Collect(maps.Values(p.named))
	free := name
	for n := 2; slices.Contains(taken, free); n++ {
		free = name + "_" + strconv.Itoa(n)
	}
	return free
}

func (p *spelling) body(s *shape) map[string]any {
	all := maps.Clone(s.keywords)
	if all == nil {
		all = map[string]any{}
	}
	switch {
	case s.inner != nil:
		return nullable(p.of(s.inner))
	case s.items != nil:
		all["items"] = p.of(s.items)
	case s.object:
		properties, required := map[string]any{}, []string{}
		for _, f := range s.fields {
			property := p.of(f.shape)
			if f.doc != "" {
				property["description"] = f.doc
			}
			properties[f.name] = property
			if f.required {
				required = append(required, f.name)
			}
		}
		all["properties"], all["additionalProperties"] = properties, false
		if len(required) > 0 {
			all["required"] = required
		}
	}
	if s.values != nil {
		all["additionalProperties"] = p.of(s.values)
	}
	return all
}

// nullable returns a schema that accepts null too.
func nullable(schema map[string]any) map[string]any {
	switch kind := schema["type"].(type) {
	case string:
		if kind != "null" {
			schema["type"] = []string{kind, "null"}
		}
	case nil:
		if len(schema) > 0 {
			return map[string]any{"anyOf": []any{schema, map[string]any{"type": "null"}}}
		}
	}
	return schema
}

// missing returns where a value that was read lacks a required property, as a
// JSON pointer without its first slash; "" where it lacks none.
func (s *shape) missing(value []byte) string {
	for s.inner != nil {
		s = s.inner
	}
	raw := jsontext.Value(value)
	switch {
	case s.items != nil && s.items.compound() && raw.Kind() == '[':
		var items []jsontext.Value
		if json.Unmarshal(raw, &items) != nil {
			return ""
		}
		for i, item := range items {
			if at := s.items.missing(item); at != "" {
				return strconv.Itoa(i) + "/" + at
			}
		}
	case s.object && raw.Kind() == '{':
		return s.lacks(raw)
	case s.values != nil && s.values.compound() && raw.Kind() == '{':
		for m := protocol.ScanMembers(raw); m.Next(); {
			if at := s.values.missing(m.Value); at != "" {
				return string(m.Name) + "/" + at
			}
		}
	}
	return ""
}

// lacks is missing of a struct.
func (s *shape) lacks(object []byte) string {
	present := map[string]bool{}
	for m := protocol.ScanMembers(object); m.Next(); {
		name := string(m.Name)
		present[name] = true
		of := s.values
		if i := slices.IndexFunc(s.fields, func(f field) bool { return f.name == name }); i >= 0 {
			of = s.fields[i].shape
		}
		if of != nil && of.compound() {
			if at := of.missing(m.Value); at != "" {
				return name + "/" + at
			}
		}
	}
	for _, f := range s.fields {
		if f.required && !present[f.name] {
			return f.name
		}
	}
	return ""
}

// compound reports whether there is anything to look for in a value of the shape.
func (s *shape) compound() bool {
	for s.inner != nil {
		s = s.inner
	}
	return s.object || s.items != nil || s.values != nil
}
