package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/schema"
)

// setMember puts one value of --set into its place.
func setMember(members map[string]any, path []string, text string, wanted json.RawMessage) error {
	for i, name := range path {
		if i == len(path)-1 {
			members[name] = valueOf(text, wanted, path)
			return nil
		}
		switch inner := members[name].(type) {
		case nil:
			next := map[string]any{}
			members[name], members = next, next
		case map[string]any:
			members = inner
		default:
			return fmt.Errorf("%s is not an object", strings.Join(path[:i+1], "."))
		}
	}
	return nil
}

// propertyOf returns the schema of a property, nil where it is not known.
func propertyOf(schema json.RawMessage, name string) json.RawMessage {
	var object struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if len(schema) == 0 || json2.Unmarshal(schema, &object) != nil {
		return nil
	}
	return object.Properties[name]
}

// valueOf reads the text of --set: as it stands where it is no JSON, or where
// the schema of the operation wants text at that place of the input, else as
// JSON.
func valueOf(text string, input json.RawMessage, path []string) any {
	value := jsontext.Value(text)
	if !value.IsValid() || wantsText(input, path, text) {
		return text
	}
	return value
}

// wantsText reports whether JSON is meant as text: as such it fits the schema,
// and as what it says it does not; or the schema says so in so many words.
func wantsText(input json.RawMessage, path []string, text string) bool {
	place := input
	for _, name := range path {
		place = propertyOf(place, name)
	}
	var plain struct {
		Type any `json:"type"`
	}
	if len(place) > 0 && json2.Unmarshal(place, &plain) == nil && plain.Type == "string" {
		return true
	}
	members, err := parts(input)
	if err != nil {
		return false
	}
	fits, err := schema.Compile(members)
	if err != nil {
		return false
	}
	quoted, err := json.Marshal(text)
	return err == nil && fits.Check(within(path, quoted)) == nil && fits.Check(within(path, []byte(text))) != nil
}

// parts returns a schema that says of an object's members what another one
// does, and of the object nothing: the others are still to come.
func parts(input json.RawMessage) (json.RawMessage, error) {
	var whole map[string]json.RawMessage
	if err := json2.Unmarshal(input, &whole); err != nil {
		return nil, err
	}
	for name := range whole {
		if !slices.Contains([]string{"$schema", "$id", "$defs", "definitions", "properties"}, name) {
			delete(whole, name)
		}
	}
	return json2.Marshal(whole)
}

// within returns a value as the only member at a place of an object.
func within(path []string, value []byte) []byte {
	for _, name := range slices.Backward(path) {
		quoted, _ := json.Marshal(name) // text always has a spelling
		value = slices.Concat([]byte("{"), quoted, []byte(":"), value, []byte("}"))
	}
	return value
}
