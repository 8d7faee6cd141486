// Package placeholder finds what an input leaves for the host to fill in, and fills
// it in.
//
// There are two kinds. A reference stands in the input itself, {"$secret":
// "name"} in place of a text; and a property of the operation's schema may say,
// with x-binding, where its value comes from when the caller leaves it out. The
// input that is hashed and stored is the one with the gaps. Policy judges, and a
// person is shown, what [Seen] makes of it. Where values come from, and who may
// have them, is for others to say.
package placeholder

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
)

// Reference is the member that makes an object a reference to a secret.
const Reference = "$secret"

// A Source is where a value comes from.
type Source string

// The sources.
const (
	Secret   Source = "secret"   // what the operation may know
	Identity Source = "identity" // what the caller is called
	Env      Source = "env"      // what an administrator wrote for the plugin
)

// Sources are all there are.
func Sources() []Source { return []Source{Identity, Secret, Env} }

// ParseHint reads the value of x-binding: identity:google_email.
func ParseHint(text string) (source Source, name string, ok bool) {
	kind, name, named := strings.Cut(text, ":")
	return Source(kind), name, named && name != "" && slices.Contains(Sources(), Source(kind))
}

// A Gap is one value that is still to be filled in.
type Gap struct {
	Source   Source
	Name     string
	Property string // the property of the schema that asks for it; "" for a reference
}

// String returns the gap as a schema would ask for it.
func (g Gap) String() string { return string(g.Source) + ":" + g.Name }

// Gaps returns what the input of an operation leaves open: first the references,
// in order and each name once, then the properties. Agents are not asked: what
// they hand on are references.
func Gaps(op *plugin.Operation, input json.RawMessage) ([]Gap, error) {
	if op.Kind == plugin.Agent {
		return nil, nil
	}
	var gaps []Gap
	if bytes.Contains(input, []byte(Reference)) {
		_, err := replace(jsontext.Value(input), func(name string) (string, error) {
			if g := (Gap{Source: Secret, Name: name}); !slices.Contains(gaps, g) {
				gaps = append(gaps, g)
			}
			return "", nil
		})
		if err != nil {
			return nil, err
		}
	}
	hints := hintsOf(op.Input)
	if len(hints) == 0 {
		return gaps, nil
	}
	var given map[string]jsontext.Value
	if json2.Unmarshal(input, &given) != nil {
		return gaps, nil // no object has no properties
	}
	for _, g := range hints {
		if _, there := given[g.Property]; !there {
			gaps = append(gaps, g)
		}
	}
	return gaps, nil
}

// hintsOf returns the bindings of a schema's own properties, by name.
func hintsOf(schema json.RawMessage) []Gap {
	if !bytes.Contains(schema, []byte("x-binding")) && !bytes.Contains(schema, []byte("x_binding")) {
		return nil
	}
	var top struct {
		Properties map[string]jsontext.Value `json:"properties"`
	}
	if json2.Unmarshal(schema, &top) != nil {
		return nil
	}
	var hints []Gap
	for property, raw := range top.Properties {
		var p map[string]jsontext.Value
		if json2.Unmarshal(raw, &p) != nil {
			continue
		}
		for _, key := range []string{"x-binding", "x_binding"} {
			var text string
			if json2.Unmarshal(p[key], &text) != nil {
				continue
			}
			if source, name, ok := ParseHint(text); ok {
				hints = append(hints, Gap{source, name, property})
				break
			}
		}
	}
	slices.SortFunc(hints, func(a, b Gap) int { return strings.Compare(a.Property, b.Property) })
	return hints
}

// Fill returns the input with the values of the gaps that have one; a
// property may do without, a reference not.
func Fill(input json.RawMessage, values map[Gap]string) (json.RawMessage, error) {
	filled := jsontext.Value(input)
	var err error
	if bytes.Contains(input, []byte(Reference)) {
		filled, err = replace(filled, func(name string) (string, error) {
			value, there := values[Gap{Source: Secret, Name: name}]
			if !there {
				return "", fmt.Errorf("there is no value for the secret %s", name)
			}
			return value, nil
		})
		if err != nil {
			return nil, err
		}
	}
	own := map[string]string{}
	for gap, value := range values {
		if gap.Property != "" {
			own[gap.Property] = value
		}
	}
	if len(own) == 0 {
		return json.RawMessage(filled), nil
	}
	var members map[string]jsontext.Value
	if err := json2.Unmarshal(filled, &members); err != nil {
		return nil, err
	}
	if members == nil {
		members = map[string]jsontext.Value{}
	}
	for property, value := range own {
		raw, err := json2.Marshal(value)
		if err != nil {
			return nil, err
		}
		members[property] = raw
	}
	return json2.Marshal(members, json2.Deterministic(true))
}

// Bound is the member that stands for a value which is not known where an input is
// judged: {"$bound": "env:REGION"}.
const Bound = "$bound"

// Seen returns the input as policy judges it and a person is shown it: the
// properties that the host fills in are there. A secret is shown as a reference to
// it, and everything else as what value returns. Where that finds nothing the
// property is left out, as it is for the plugin; a nil value leaves a placeholder.
func Seen(op *plugin.Operation, input json.RawMessage, value func(Gap) (text string, found bool, err error)) (json.RawMessage, error) {
	gaps, err := Gaps(op, input)
	if err != nil {
		return nil, err
	}
	gaps = slices.DeleteFunc(gaps, func(g Gap) bool { return g.Property == "" })
	if len(gaps) == 0 {
		return input, nil
	}
	var members map[string]jsontext.Value
	if err := json2.Unmarshal(input, &members); err != nil {
		return nil, err
	}
	if members == nil {
		members = map[string]jsontext.Value{}
	}
	for _, g := range gaps {
		var shown any
		switch {
		case g.Source == Secret:
			shown = map[string]string{Reference: g.Name}
		case value == nil:
			shown = map[string]string{Bound: g.String()}
		default:
			text, found, err := value(g)
			if err != nil {
				return nil, err
			}
			if !found {
				continue
			}
			shown = text
		}
		if members[g.Property], err = json2.Marshal(shown); err != nil {
			return nil, err
		}
	}
	return json2.Marshal(members, json2.Deterministic(true))
}

// replace puts what value returns in the place of each reference.
func replace(raw jsontext.Value, value func(name string) (string, error)) (jsontext.Value, error) {
	switch raw.Kind() {
	case '{':
		return replaceMembers(raw, value)
	case '[':
		var items []jsontext.Value
		if err := json2.Unmarshal(raw, &items); err != nil {
			return nil, err
		}
		for i := range items {
			var err error
			if items[i], err = replace(items[i], value); err != nil {
				return nil, err
			}
		}
		return json2.Marshal(items)
	}
	return raw, nil
}

func replaceMembers(raw jsontext.Value, value func(name string) (string, error)) (jsontext.Value, error) {
	var members map[string]jsontext.Value
	if err := json2.Unmarshal(raw, &members); err != nil {
		return nil, err
	}
	if reference, found := members[Reference]; found {
		var name string
		if len(members) != 1 || json2.Unmarshal(reference, &name) != nil || reference.Kind() != '"' || name == "" {
			return nil, fmt.Errorf(`a reference to a secret is {%q: "name"} and nothing else`, Reference)
		}
		text, err := value(name)
		if err != nil {
			return nil, err
		}
		return json2.Marshal(text)
	}
	for name, member := range members {
		replaced, err := replace(member, value)
		if err != nil {
			return nil, err
		}
		members[name] = replaced
	}
	return json2.Marshal(members, json2.Deterministic(true))
}
