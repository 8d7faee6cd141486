package input

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/core/schema"
)

// setMembers puts the values of --set, key=value or outer.inner=value, into their
// places. Those of one object are merged, in whatever order they come; of one
// member that is set twice the last counts. An object that is set as such takes
// the place of the one that the input had.
func setMembers(members map[string]any, pairs []string, schema json.RawMessage) error {
	all := setting{members: map[string]*setting{}}
	for _, pair := range pairs {
		name, text, found := strings.Cut(pair, "=")
		switch {
		case !found || name == "":
			return Misuse{fmt.Errorf("--set %s: write key=value", pair)}
		case !utf8.ValidString(pair):
			return Misuse{fmt.Errorf("--set %s: it is not UTF-8, as JSON must be", pair)}
		}
		path := strings.Split(name, ".")
		if err := all.put(nil, path, valueOf(text, schema, path)); err != nil {
			return Misuse{fmt.Errorf("--set %s: %w", pair, err)}
		}
	}
	if err := all.into(members, nil); err != nil {
		return Misuse{fmt.Errorf("--set: %w", err)}
	}
	return nil
}

// A setting is what all --set together say of one place of the input.
type setting struct {
	value   any                 // where it is no object
	members map[string]*setting // where it is one
	whole   bool                // it was set as an object, not only members of it
}

// put sets a value at path, which begins at s; above is where s itself is.
func (s *setting) put(above, path []string, value any) error {
	if len(path) > 0 {
		at := append(slices.Clone(above), path[0])
		inner := s.members[path[0]]
		if inner == nil {
			inner = &setting{}
			s.members[path[0]] = inner
		}
		if len(path) > 1 {
			if err := inner.open(at); err != nil {
				return err
			}
		}
		return inner.put(at, path[1:], value)
	}
	raw, _ := value.(jsontext.Value)
	if raw.Kind() != '{' {
		if s.members != nil {
			return fmt.Errorf("%s is an object by another --set, and cannot be %v too", strings.Join(above, "."), value)
		}
		s.value = value
		return nil
	}
	if err := s.open(above); err != nil {
		return err
	}
	s.whole = true
	var inner map[string]jsontext.Value
	if err := json2.Unmarshal(raw, &inner); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(inner)) {
		if err := s.put(above, []string{name}, inner[name]); err != nil {
			return err
		}
	}
	return nil
}

// open makes s an object, unless it is something else.
func (s *setting) open(at []string) error {
	if s.value != nil {
		return fmt.Errorf("%s is not an object: another --set makes it %v", strings.Join(at, "."), s.value)
	}
	if s.members == nil {
		s.members = map[string]*setting{}
	}
	return nil
}

// into puts what is set into the members of an object.
func (s *setting) into(members map[string]any, above []string) error {
	for name, inner := range s.members {
		if inner.members == nil {
			members[name] = inner.value
			continue
		}
		at := append(slices.Clone(above), name)
		next := map[string]any{}
		if !inner.whole {
			switch given := members[name].(type) {
			case nil:
			case map[string]any:
				next = given
			case jsontext.Value: // an argument after --
				if given.Kind() != '{' {
					return fmt.Errorf("%s is not an object", strings.Join(at, "."))
				}
				if err := decode(given, &next); err != nil {
					return err
				}
			default:
				return fmt.Errorf("%s is not an object", strings.Join(at, "."))
			}
		}
		members[name] = next
		if err := inner.into(next, at); err != nil {
			return err
		}
	}
	return nil
}

// Property returns the schema of a property, nil where it is not known.
func Property(schema json.RawMessage, name string) json.RawMessage {
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
		place = Property(place, name)
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
	return err == nil && fits.Check(context.Background(), within(path, quoted)) == nil && fits.Check(context.Background(), within(path, []byte(text))) != nil
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
