package input

import (
	"encoding/json"
	"slices"
	"strings"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// argumentOf reads the text of --name value for an investigation plugin. It is
// text, as these plugins expect, unless the schema of that member says that it is
// something else and the text can be that: an integer, a number, a boolean, an
// object, or an array, whose items may stand between commas.
func argumentOf(text string, property json.RawMessage) any {
	types := typesOf(property)
	if len(types) == 0 || slices.Contains(types, "string") {
		return text
	}
	value := jsontext.Value(strings.TrimSpace(text))
	if value.IsValid() && slices.ContainsFunc(types, func(wanted string) bool { return isOf(value, wanted) }) {
		return value
	}
	if !slices.Contains(types, "array") || strings.TrimSpace(text) == "" || strings.HasPrefix(string(value), "[") {
		return text
	}
	var array struct {
		Items json.RawMessage `json:"items"`
	}
	_ = json2.Unmarshal(property, &array) // it has types, so it is an object
	var items []any
	for item := range strings.SplitSeq(text, ",") {
		items = append(items, argumentOf(strings.TrimSpace(item), array.Items))
	}
	return items
}

// typesOf returns the types that a schema names.
func typesOf(property json.RawMessage) []string {
	var one struct {
		Type string `json:"type"`
	}
	var several struct {
		Type []string `json:"type"`
	}
	switch {
	case len(property) == 0:
		return nil
	case json2.Unmarshal(property, &one) == nil && one.Type != "":
		return []string{one.Type}
	case json2.Unmarshal(property, &several) == nil:
		return several.Type
	}
	return nil
}

// isOf reports whether a JSON value is of a type of JSON Schema.
func isOf(value jsontext.Value, wanted string) bool {
	switch wanted {
	case "integer":
		return value.Kind() == '0' && !strings.ContainsAny(string(value), ".eE")
	case "number":
		return value.Kind() == '0'
	case "boolean":
		return value.Kind() == 't' || value.Kind() == 'f'
	case "array":
		return value.Kind() == '['
	case "object":
		return value.Kind() == '{'
	case "null":
		return value.Kind() == 'n'
	}
	return false
}
