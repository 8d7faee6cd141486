package mortise

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/protocol"
)

// describedOperation is what describe says of one operation.
type describedOperation struct {
	Kind        string         `json:"kind"`
	Description string         `json:"description,omitempty"`
	Input       map[string]any `json:"input,omitempty"`
	Output      map[string]any `json:"output,omitempty"`
	Effects     []string       `json:"effects,omitempty"`
	PolicyTags  []string       `json:"policy_tags,omitempty"`
	Permissions []string       `json:"permissions,omitempty"`
	Timeout     string         `json:"timeout,omitempty"`
	Labels      []string       `json:"labels,omitempty"`

	Preview   bool `json:"preview,omitzero"`
	Reconcile bool `json:"reconcile,omitzero"`
	Brokered  bool `json:"brokered,omitzero"`

	AllowedActions []string `json:"allowed_actions,omitempty"`
	ContextFields  []string `json:"context_fields,omitempty"`
}

// describe returns the answer to describe.
func (p *Plugin) describe() any {
	type described struct {
		protocol.Peer `json:",inline"`
		Description   string                        `json:"description"`
		Capabilities  []string                      `json:"capabilities"`
		Operations    map[string]describedOperation `json:"operations"`
		Hooks         []describedHook               `json:"hooks,omitempty"`
	}
	d := described{
		Peer: protocol.Peer{Name: p.name, Version: p.version}, Description: p.Description, Capabilities: p.Capabilities,
		Operations: map[string]describedOperation{}, Hooks: p.describedHooks(),
	}
	if d.Capabilities == nil {
		d.Capabilities = []string{}
	}
	for name, op := range p.operations {
		d.Operations[name] = op.described
	}
	return map[string]any{"plugins": []described{d}}
}

const draft = "https://json-schema.org/draft/2020-12/schema"

// schemaOf returns the JSON Schema of a type, nil where it says nothing.
func schemaOf(t reflect.Type) map[string]any {
	if t.Implements(reflect.TypeFor[answerer]()) { // a Result speaks of its data
		data, _ := t.FieldByName("Data")
		t = data.Type
	}
	s := typeSchema(t)
	if len(s) == 0 {
		return nil
	}
	s["$schema"] = draft
	return s
}

var (
	rawType  = reflect.TypeFor[jsontext.Value]()
	timeType = reflect.TypeFor[time.Time]()
)

func typeSchema(t reflect.Type) map[string]any {
	switch {
	case t == rawType:
		return map[string]any{}
	case t == timeType:
		return map[string]any{"type": "string", "format": "date-time"}
	}
	switch t.Kind() {
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return map[string]any{"type": "string", "contentEncoding": "base64"}
		}
		return map[string]any{"type": "array", "items": typeSchema(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": typeSchema(t.Elem())}
	case reflect.Pointer:
		inner := typeSchema(t.Elem())
		if name, ok := inner["type"].(string); ok {
			inner["type"] = []string{name, "null"}
		}
		return inner
	case reflect.Struct:
		return structSchema(t)
	default:
		return map[string]any{}
	}
}

func structSchema(t reflect.Type) map[string]any {
	properties := map[string]any{}
	required := []string{}
	for _, f := range fieldsOf(t) {
		s := typeSchema(f.Type)
		if doc := f.Tag.Get("doc"); doc != "" {
			s["description"] = doc
		}
		properties[f.name] = s
		if f.required {
			required = append(required, f.name)
		}
	}
	s := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// A field is one property of a struct.
type field struct {
	reflect.StructField
	name     string
	required bool
}

func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		flags := strings.Split(options, ",")
		optional := f.Type.Kind() == reflect.Pointer || slices.Contains(flags, "omitempty") || slices.Contains(flags, "omitzero")
		fields = append(fields, field{f, name, !optional})
	}
	return fields
}

// missingMember returns the first required property of t that input lacks.
func missingMember(t reflect.Type, input []byte) string {
	if t.Kind() != reflect.Struct {
		return ""
	}
	present := map[string]bool{}
	_ = protocol.Members(input, func(name string, _ jsontext.Value) error {
		present[name] = true
		return nil
	})
	for _, f := range fieldsOf(t) {
		if f.required && !present[f.name] {
			return f.name
		}
	}
	return ""
}
