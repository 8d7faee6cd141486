package dialect

import (
	"bytes"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/core/schema"
)

// schema returns the JSON Schema that this place names by its path inside the
// package or spells in place, nil if there is none.
func (v value) schema() json.RawMessage {
	if !v.there {
		return nil
	}
	var raw []byte
	switch is := v.is.(type) {
	case string:
		data, err := v.page.files.read(is, schema.MaxBytes)
		if err != nil {
			v.problem("%s: %v", clip(is), err)
			return nil
		}
		if err := canon.Check(data, maxDepth); err != nil {
			v.problem("%s: %v", is, plainSyntax(err))
			return nil
		}
		if _, err := schema.Compile(data); err != nil {
			v.problem("%s: %v", is, err)
			return nil
		}
		raw = data
	case *mapping, bool:
		raw = toJSON(is)
		if _, err := schema.Compile(raw); err != nil {
			v.problem("the schema is refused %v", err)
			return nil
		}
	default:
		v.wrong("a path or a JSON Schema")
		return nil
	}
	return compact(raw)
}

// compact returns one JSON value without white space around its tokens.
func compact(raw []byte) json.RawMessage {
	value := jsontext.Value(bytes.Clone(raw))
	if value.Compact() != nil {
		return raw
	}
	return json.RawMessage(value)
}

// unwrap returns the payload's schema where raw describes a whole envelope of
// the kernel contracts (5.3.2, 5.3.3): its properties hold the member called
// inner and at least one of the others.
func unwrap(raw json.RawMessage, inner string, others ...string) (json.RawMessage, bool) {
	if len(raw) == 0 {
		return raw, false
	}
	tree, err := parseJSON(raw)
	if err != nil {
		return raw, false
	}
	envelope, _ := tree.(*mapping)
	if envelope == nil {
		return raw, false
	}
	properties, _ := envelope.values["properties"].(*mapping)
	if properties == nil {
		return raw, false
	}
	payload, wraps := properties.values[inner]
	if !wraps {
		return raw, false
	}
	for _, other := range others {
		if _, seen := properties.values[other]; seen {
			return toJSON(lift(payload, envelope)), true
		}
	}
	return raw, false
}

// lift makes a schema of its own of a part of another: what the part refers to
// comes along.
func lift(part any, whole *mapping) any {
	own, ok := part.(*mapping)
	if !ok {
		return part
	}
	lifted := &mapping{}
	for _, key := range own.keys {
		lifted.set(key, own.values[key])
	}
	for _, key := range []string{"$schema", "$defs", "definitions"} {
		if shared, there := whole.values[key]; there {
			lifted.set(key, shared)
		}
	}
	return lifted
}
