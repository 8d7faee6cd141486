package shu

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
)

// FromModel implements [contract.Preparer]: what is
// the host's is not a model's to say, text where the schema has no text is what
// it spells, and op is set. What cannot be read so is left for the schema to refuse.
func (Contract) FromModel(op *plugin.Operation, input json.RawMessage) (json.RawMessage, error) {
	params, _, err := Split(input, Unchecked(op))
	if err != nil {
		return nil, err
	}
	return Named(op, Coerced(op.Input, params))
}

// Coerced returns the parameters with each text at the top that the schema types
// as something else, and that spells such a value, as that value.
func Coerced(schema, params json.RawMessage) json.RawMessage {
	members, order, isObject := object(params)
	var s struct {
		Properties map[string]struct {
			Type json.RawMessage `json:"type"`
		} `json:"properties"`
	}
	if !isObject || json.Unmarshal(schema, &s) != nil {
		return params
	}
	for name, value := range members {
		var text string
		if value.Kind() != '"' || json2.Unmarshal(value, &text) != nil {
			continue
		}
		for _, kind := range typesOf(s.Properties[name].Type) {
			if spelled, ok := spelledAs(kind, strings.TrimSpace(text)); ok {
				members[name] = spelled
				break
			}
		}
	}
	return write(order, members)
}

// typesOf returns the types that a schema allows, none where text is one.
func typesOf(raw json.RawMessage) []string {
	var one string
	var all []string
	if json.Unmarshal(raw, &one) == nil {
		all = []string{one}
	} else if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	if slices.Contains(all, "string") {
		return nil
	}
	return all
}

func spelledAs(kind, text string) (jsontext.Value, bool) {
	switch kind {
	case "boolean":
		switch strings.ToLower(text) {
		case "true", "false":
			return jsontext.Value(strings.ToLower(text)), true
		}
	case "integer":
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return jsontext.Value(strconv.FormatInt(n, 10)), true
		}
	case "number":
		value := jsontext.Value(text)
		return value, value.Kind() == '0' && value.IsValid()
	case "array", "object":
		value := jsontext.Value(text)
		return value, value.Kind() == map[string]jsontext.Kind{"array": '[', "object": '{'}[kind] && value.IsValid()
	}
	return nil, false
}
