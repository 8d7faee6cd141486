package plan

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/protocol"
)

// A reference stands in a payload for what an earlier step returned:
//
//	{"$from": "s1", "pointer": "/draft"}
//
// The pointer (RFC 6901) goes into the data of that step's result; without one
// it is the whole.
type reference struct {
	step    string
	pointer string
}

// referenceOf returns the reference that a value is. An object that has $from
// and is none is an error: it would be sent as it stands.
func referenceOf(value jsontext.Value) (ref reference, is bool, err error) {
	if value.Kind() != '{' {
		return ref, false, nil
	}
	var others string
	for m := protocol.ScanMembers(value); m.Next(); {
		switch string(m.Name) {
		case "$from":
			is = true
			ref.step, _ = text(m.Value)
			if m.Value.Kind() != '"' || ref.step == "" {
				err = errors.New("$from names no step")
			}
		case "pointer":
			ref.pointer, _ = text(m.Value)
			if m.Value.Kind() != '"' || ref.pointer != "" && ref.pointer[0] != '/' {
				err = fmt.Errorf("the pointer %.100s is no JSON pointer; one begins with /", m.Value)
			}
		default:
			others = string(m.Name)
		}
	}
	switch {
	case !is:
		return reference{}, false, nil
	case err != nil:
		return ref, true, err
	case others != "":
		return ref, true, fmt.Errorf("a reference has the members $from and pointer, and no %.100q", others)
	}
	return ref, true, nil
}

// references returns all references in a payload, in order.
func references(value jsontext.Value) (refs []reference, err error) {
	_, err = replaced(value, func(ref reference) (jsontext.Value, error) {
		refs = append(refs, ref)
		return jsontext.Value("null"), nil
	})
	return refs, err
}

// resolved returns a payload with what steps returned in the place of references
// to it.
func resolved(value jsontext.Value, results map[string]jsontext.Value) (jsontext.Value, error) {
	return replaced(value, func(ref reference) (jsontext.Value, error) {
		data, there := results[ref.step]
		if !there {
			return nil, fmt.Errorf("step %s has returned nothing", ref.step)
		}
		part, err := at(data, ref.pointer)
		if err != nil {
			return nil, fmt.Errorf("in what step %s returned %w", ref.step, err)
		}
		return part, nil
	})
}

// Literals returns a payload without the members and elements that references
// stand for: what is known before anything has run.
func Literals(value jsontext.Value) (jsontext.Value, error) {
	out, err := replaced(value, func(reference) (jsontext.Value, error) { return nil, nil })
	if err == nil && len(out) == 0 {
		out = jsontext.Value("{}") // the whole payload is a reference
	}
	return out, err
}

// replaced returns a value with every reference in it replaced. Nothing leaves
// the member or element out. The value is known to be valid JSON.
func replaced(value jsontext.Value, by func(reference) (jsontext.Value, error)) (jsontext.Value, error) {
	switch value.Kind() {
	case '{':
		if ref, is, err := referenceOf(value); is || err != nil {
			if err != nil {
				return nil, err
			}
			return by(ref)
		}
		out := jsontext.Value("{")
		for m := protocol.ScanMembers(value); m.Next(); {
			inner, err := replaced(m.Value, by)
			if err != nil {
				return nil, err
			}
			if len(inner) == 0 {
				continue
			}
			if len(out) > 1 {
				out = append(out, ',')
			}
			name, err := jsontext.AppendQuote(nil, m.Name)
			if err != nil {
				return nil, err
			}
			out = append(append(append(out, name...), ':'), inner...)
		}
		return append(out, '}'), nil
	case '[':
		all, err := elements(value)
		if err != nil {
			return nil, err
		}
		out := jsontext.Value("[")
		for _, element := range all {
			inner, err := replaced(element, by)
			if err != nil {
				return nil, err
			}
			if len(inner) == 0 {
				continue
			}
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(out, inner...)
		}
		return append(out, ']'), nil
	}
	return value, nil
}

// list joins names for a message.
func list(names []string) string { return strings.Join(names, ", ") }
