package shu

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
)

// HostMember is the member of the parameters that is for the host alone.
const HostMember = "__host"

// Split takes what the host alone decides out of the parameters of a call: "The
// executor strips `__host` before plugin validation/execution". What is null at
// the top goes too, unless nulls says that it stays. Parameters that are no object
// are left for the schema to refuse.
func Split(input json.RawMessage, nulls bool) (params, overlay json.RawMessage, err error) {
	members, order, isObject := object(input)
	if !isObject {
		return input, nil, nil
	}
	if host, given := members[HostMember]; given && host.Kind() != 'n' {
		if host.Kind() != '{' {
			return nil, nil, plugin.Errorf(plugin.CodeInvalidInput, "%s is what the host decides about the call: an object belongs there", HostMember)
		}
		overlay = json.RawMessage(host)
	}
	kept := slices.DeleteFunc(order, func(name string) bool { return name == HostMember || !nulls && members[name].Kind() == 'n' })
	return write(kept, members), overlay, nil
}

// Operation implements [contract.Preparer]: it is the one that op names. A default of op in a schema is a hint for forms.
func (Contract) Operation(m *plugin.Manifest, params json.RawMessage) string {
	members, _, _ := object(params)
	var name string
	if json2.Unmarshal(members["op"], &name) == nil && m.Operation(name) != nil {
		return name
	}
	if len(members["op"]) > 0 {
		if op := m.Operation(OnlyOperation); op != nil && name != "" && !listsOps(op.Input) {
			return OnlyOperation // it stands for every op that no list names
		}
		return ""
	}
	return ""
}

// listsOps reports whether a schema lists the operations that there are.
func listsOps(input json.RawMessage) bool {
	var s struct {
		Properties struct {
			Op struct {
				Enum  []jsontext.Value `json:"enum"`
				Const jsontext.Value   `json:"const"`
			} `json:"op"`
		} `json:"properties"`
	}
	return json.Unmarshal(input, &s) == nil && (len(s.Properties.Op.Enum) > 0 || len(s.Properties.Op.Const) > 0)
}

// Named returns the parameters with the name of the operation in op, where its
// schema knows that member: "validation sets op". Another name there is
// refused, since what was allowed is what is called.
func Named(op *plugin.Operation, params json.RawMessage) (json.RawMessage, error) {
	if op.Name == OnlyOperation {
		return params, nil // it stands for whatever op says
	}
	members, order, isObject := object(params)
	if len(params) == 0 {
		members, isObject = map[string]jsontext.Value{}, true
	}
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if !isObject || json.Unmarshal(op.Input, &s) != nil {
		return params, nil
	}
	_, known := s.Properties["op"]
	given, isGiven := members["op"]
	var name string
	switch {
	case isGiven && known && (json2.Unmarshal(given, &name) != nil || name != op.Name):
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "the parameters say op: %s, and %s is called: leave op out, or name that one", strings.TrimSpace(string(given)), op.Name)
	case isGiven && !known && json2.Unmarshal(given, &name) == nil && name == op.Name: // the host was told, and the schema need not know
		return write(slices.DeleteFunc(order, func(name string) bool { return name == "op" }), members), nil
	case isGiven || !known:
		return params, nil
	}
	quoted, err := jsontext.AppendQuote(nil, op.Name)
	if err != nil {
		return nil, err
	}
	members["op"] = quoted
	return write(append(order, "op"), members), nil
}

// Debug reports whether a call is to show its diagnostics: "a per-call parameter
// `debug=true`", or what the host decides about the call. The parameter is left
// out where the schema of the operation refuses what it does not know.
func Debug(op *plugin.Operation, params, overlay json.RawMessage) (rest json.RawMessage, debug bool) {
	var decided struct {
		Debug bool `json:"debug"`
	}
	_ = json.Unmarshal(overlay, &decided) // an object, or nothing
	members, order, isObject := object(params)
	var asked bool
	if !isObject || json2.Unmarshal(members["debug"], &asked) != nil {
		return params, decided.Debug
	}
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Additional json.RawMessage            `json:"additionalProperties"`
	}
	if json.Unmarshal(op.Input, &s) == nil && s.Properties["debug"] == nil && string(s.Additional) == "false" {
		params = write(slices.DeleteFunc(order, func(name string) bool { return name == "debug" }), members)
	}
	return params, asked || decided.Debug
}

// object reads the members of an object and their order.
func object(raw json.RawMessage) (members map[string]jsontext.Value, order []string, isObject bool) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	if token, err := dec.ReadToken(); err != nil || token.Kind() != '{' {
		return nil, nil, false
	}
	members = map[string]jsontext.Value{}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, nil, false
		}
		key := name.String() // the token is void after the next read
		value, err := dec.ReadValue()
		if err != nil {
			return nil, nil, false
		}
		members[key] = value.Clone()
		order = append(order, key)
	}
	return members, order, true
}

// write spells an object whose members were read from one.
func write(order []string, members map[string]jsontext.Value) json.RawMessage {
	raw := []byte{'{'}
	for i, name := range order {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw, _ = jsontext.AppendQuote(raw, name) // it was valid when it was read
		raw = append(append(raw, ':'), members[name]...)
	}
	return append(raw, '}')
}
