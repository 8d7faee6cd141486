package contract

import (
	"bytes"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/core/schema"
)

// Schema returns the JSON Schema that this place names by its path inside the
// package or spells in place, nil if there is none.
func (v Value) Schema() json.RawMessage {
	if !v.There {
		return nil
	}
	var raw []byte
	switch is := v.Is.(type) {
	case string:
		data, err := v.Page.Files.Read(is, schema.MaxBytes)
		if err != nil {
			v.Problem("%s: %v", Clip(is), err)
			return nil
		}
		if err := canon.Check(data, MaxDepth); err != nil {
			v.Problem("%s: %v", is, PlainSyntax(err))
			return nil
		}
		if _, err := schema.Compile(data); err != nil {
			v.Problem("%s: %v", is, err)
			return nil
		}
		raw = data
	case *Mapping, bool:
		raw = ToJSON(is)
		if _, err := schema.Compile(raw); err != nil {
			v.Problem("the schema is refused %v", err)
			return nil
		}
	default:
		v.Wrong("a path or a JSON Schema")
		return nil
	}
	return Compact(raw)
}

// Compact returns one JSON value without white space around its tokens.
func Compact(raw []byte) json.RawMessage {
	value := jsontext.Value(bytes.Clone(raw))
	if value.Compact() != nil {
		return raw
	}
	return json.RawMessage(value)
}

// Unwrap returns the payload's schema where raw describes a whole envelope of
// the kernel contracts (5.3.2, 5.3.3): its properties hold the member called
// inner and at least one of the others.
func Unwrap(raw json.RawMessage, inner string, others ...string) (json.RawMessage, bool) {
	if len(raw) == 0 {
		return raw, false
	}
	tree, err := ParseJSON(raw)
	if err != nil {
		return raw, false
	}
	envelope, _ := tree.(*Mapping)
	if envelope == nil {
		return raw, false
	}
	properties, _ := envelope.Values["properties"].(*Mapping)
	if properties == nil {
		return raw, false
	}
	payload, wraps := properties.Values[inner]
	if !wraps {
		return raw, false
	}
	for _, other := range others {
		if _, seen := properties.Values[other]; seen {
			return ToJSON(lift(payload, envelope)), true
		}
	}
	return raw, false
}

// lift makes a schema of its own of a part of another: what the part refers to
// comes along.
func lift(part any, whole *Mapping) any {
	own, ok := part.(*Mapping)
	if !ok {
		return part
	}
	lifted := &Mapping{}
	for _, key := range own.Keys {
		lifted.Set(key, own.Values[key])
	}
	for _, key := range []string{"$schema", "$defs", "definitions"} {
		if shared, there := whole.Values[key]; there {
			lifted.Set(key, shared)
		}
	}
	return lifted
}
