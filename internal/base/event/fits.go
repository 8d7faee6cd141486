package event

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
)

// fits holds what a handler answered against what its event carries. A member
// that is what it was is not looked at: the host wrote it, or the handler before
// has been held against the same. An error names the first member that does not
// fit, and is a failure of the handler like any other.
func (e *Event) fits(was, answer *Payload) error {
	for i := range e.Fields {
		f := &e.Fields[i]
		before, had := was.Field(f.Name)
		raw, has := answer.Field(f.Name)
		switch {
		case had == has && before == raw:
			continue
		case !has && f.Optional:
			continue
		case !has:
			return misfit(e, f.Name+" is missing; it answers all of the payload, as in {...payload, text: \"x\"}, or nothing")
		}
		if problem := f.problem(f.Name, jsontext.Value(raw)); problem != "" {
			return misfit(e, problem)
		}
	}
	return nil
}

func misfit(e *Event, problem string) error {
	return plugin.Errorf(plugin.CodeInvalidOutput, "what the handler answered is not what %s carries: %s", e.Name, problem)
}

// kinds are what the types of fields are called in JSON.
var kinds = map[string]jsontext.Kind{"string": '"', "time": '"', "integer": '0', "object": '{', "array": '['}

// problem says why a valid value is none of the field's; "" if it is one. at is
// where the value stands.
func (f *Field) problem(at string, raw jsontext.Value) string {
	kind := raw.Kind()
	switch f.Type {
	case "any":
		return ""
	case "boolean":
		if kind != 't' && kind != 'f' {
			return fmt.Sprintf("%s is %s, and has to be a boolean", at, called(kind))
		}
		return ""
	}
	if kind != kinds[f.Type] || f.Type == "integer" && strings.ContainsAny(string(raw), ".eE") {
		return fmt.Sprintf("%s is %s, and has to be %s", at, called(kind), article(f.Type))
	}
	if len(f.Enum) > 0 && !slices.Contains(f.Enum, unquote(string(raw))) {
		return fmt.Sprintf("%s is %.60s, and has to be one of %s", at, raw, strings.Join(f.Enum, ", "))
	}
	if len(f.Members) == 0 {
		return ""
	}
	n := 0
	problem := ""
	elements(raw, func(element jsontext.Value) bool {
		problem = elementProblem(fmt.Sprintf("%s[%d]", at, n), f.Members, element)
		n++
		return problem == ""
	})
	return problem
}

// elementProblem is problem for an element of an array, which is an object.
func elementProblem(at string, members []Field, raw jsontext.Value) string {
	if raw.Kind() != '{' {
		return fmt.Sprintf("%s is %s, and has to be an object", at, called(raw.Kind()))
	}
	text := strings.TrimSpace(string(raw))
	inside := scan(text)
	for i := range members {
		f := &members[i]
		place := find(inside, f.Name)
		switch {
		case place < 0 && f.Optional:
			continue
		case place < 0:
			return fmt.Sprintf("%s.%s is missing", at, f.Name)
		}
		if problem := f.problem(at+"."+f.Name, jsontext.Value(text[inside[place].value:inside[place].end])); problem != "" {
			return problem
		}
	}
	return ""
}

// elements calls f for each element of a valid array until it reports false.
func elements(raw jsontext.Value, f func(element jsontext.Value) bool) {
	text := string(raw)
	i := blank(text, blank(text, 0)+1)
	for text[i] != ']' {
		if text[i] == ',' {
			i = blank(text, i+1)
		}
		end := skip(text, i)
		if !f(jsontext.Value(text[i:end])) {
			return
		}
		i = blank(text, end)
	}
}

// called names what a value is, for a message.
func called(kind jsontext.Kind) string {
	switch kind {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '[':
		return "an array"
	}
	return "an object"
}

// article names the type of a field, for a message.
func article(kind string) string {
	switch kind {
	case "time":
		return "a time, as a string"
	case "integer", "object", "array":
		return "an " + kind
	}
	return "a " + kind
}
