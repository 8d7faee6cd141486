package editor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// An object is a configuration in JSON, with comments or without, whose servers are the members
// of one object in it.
type object struct {
	at    []string // the way to that object
	entry func(Entry) any
}

// An entry as most programs read it.
type plainEntry struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env,omitempty"`
}

func plain(e Entry) any { return plainEntry{e.Command, e.Args, e.Env} }

// typed is an entry of a program that asks for the transport too.
func typed(e Entry) any {
	return struct {
		Type string `json:"type"`
		plainEntry
	}{"stdio", plainEntry{e.Command, e.Args, e.Env}}
}

// local is an entry of OpenCode.
func local(e Entry) any {
	return struct {
		Type        string            `json:"type"`
		Command     []string          `json:"command"`
		Environment map[string]string `json:"environment,omitempty"`
		Enabled     bool              `json:"enabled"`
	}{"local", append([]string{e.Command}, e.Args...), e.Env, true}
}

func (o object) put(text []byte, e Entry) ([]byte, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		var value any = map[string]any{e.Name: o.entry(e)}
		for _, name := range slices.Backward(o.at) {
			value = map[string]any{name: value}
		}
		fresh, err := json.MarshalIndent(value, "", "  ")
		return append(fresh, '\n'), err
	}
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, err
	}
	within, unit := &root, indentOf(text)
	for depth, name := range o.at {
		if within, err = member(within, name, unit, depth, true); err != nil {
			return nil, err
		}
	}
	raw, err := json.MarshalIndent(o.entry(e), strings.Repeat(unit, len(o.at)+1), unit)
	if err != nil {
		return nil, err
	}
	value, err := hujson.Parse(raw)
	if err != nil {
		return nil, err
	}
	place, err := member(within, e.Name, unit, len(o.at), true)
	if err != nil {
		return nil, err
	}
	there, is := place.Value.(*hujson.Object)
	if !is || len(there.Members) == 0 {
		replaceValue(place, value.Value)
		return root.Pack(), nil
	}
	if i := slices.IndexFunc(there.Members, func(m hujson.ObjectMember) bool { return slices.Contains(addresses, literal(m.Name)) }); i >= 0 {
		return nil, fmt.Errorf("it has another server called %q, at a url: rename that one", e.Name)
	}
	if err := updateObject(place, value.Value.(*hujson.Object), unit, len(o.at)+1); err != nil {
		return nil, err
	}
	return root.Pack(), nil
}

func (o object) remove(text []byte, name string) ([]byte, error) {
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, err
	}
	within := &root
	for _, name := range o.at {
		if within, err = member(within, name, "", 0, false); within == nil || err != nil {
			return text, err
		}
	}
	servers, is := within.Value.(*hujson.Object)
	if !is {
		return text, nil
	}
	found := false
	for i := range slices.Backward(servers.Members) {
		if named(name)(servers.Members[i]) {
			found = true
			cutPart(servers, i)
		}
	}
	if !found {
		return text, nil
	}
	return root.Pack(), nil
}

// addresses are members of entries of servers that are not started but reached.
var addresses = []string{"url", "serverUrl", "httpUrl"}

// environments are the members of an entry that have the variables of a command.
var environments = []string{"env", "environment"}

// updateObject gives an entry that is there the values of another one. What else the entry has stays:
// other members, variables that are not of the host, and comments.
func updateObject(place *hujson.Value, want *hujson.Object, unit string, depth int) error {
	there := place.Value.(*hujson.Object)
	for _, m := range want.Members {
		name := literal(m.Name)
		old, err := member(place, name, unit, depth, true)
		if err != nil {
			return err
		}
		_, isObject := old.Value.(*hujson.Object)
		switch {
		case slices.Contains(environments, name) && isObject:
			if err := updateObject(old, m.Value.Value.(*hujson.Object), unit, depth+1); err != nil {
				return err
			}
		case !sameJSON(*old, m.Value):
			replaceValue(old, m.Value.Value)
		}
	}
	for i := range slices.Backward(there.Members) {
		switch name := literal(there.Members[i].Name); {
		case slices.Contains(Variables, name) && !slices.ContainsFunc(want.Members, named(name)):
			cutPart(there, i)
		case slices.Contains(environments, name) && !slices.ContainsFunc(want.Members, named(name)):
			if env, is := there.Members[i].Value.Value.(*hujson.Object); is {
				if err := updateObject(&there.Members[i].Value, &hujson.Object{}, unit, depth+1); err != nil {
					return err
				}
				if len(env.Members) == 0 {
					cutPart(there, i)
				}
			}
		}
	}
	return nil
}

// sameJSON reports whether two values mean the same.
func sameJSON(a, b hujson.Value) bool {
	meaning := func(v hujson.Value) (any, error) {
		standard, err := hujson.Standardize(v.Pack())
		if err != nil {
			return nil, err
		}
		var is any
		return is, json.Unmarshal(standard, &is)
	}
	x, errX := meaning(a)
	y, errY := meaning(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

// literal returns the name that a member has.
func literal(name hujson.Value) string {
	l, _ := name.Value.(hujson.Literal)
	return l.String()
}

func named(name string) func(hujson.ObjectMember) bool {
	return func(m hujson.ObjectMember) bool { return literal(m.Name) == name }
}

// member returns the value of a member of an object, nil where there is none. Where make says
// so one is made, on a line of its own, at that depth.
func member(of *hujson.Value, name, unit string, depth int, make bool) (*hujson.Value, error) {
	o, is := of.Value.(*hujson.Object)
	if !is {
		return nil, fmt.Errorf("what %q is to be in is no object", name)
	}
	if i := slices.IndexFunc(o.Members, named(name)); i >= 0 {
		return &o.Members[i].Value, nil
	}
	if !make {
		return nil, nil
	}
	made := hujson.ObjectMember{
		Name:  hujson.Value{BeforeExtra: hujson.Extra("\n" + strings.Repeat(unit, depth+1)), Value: hujson.String(name)},
		Value: hujson.Value{BeforeExtra: hujson.Extra(" "), Value: &hujson.Object{}},
	}
	end := hujson.Extra("\n" + strings.Repeat(unit, depth))
	if n := len(o.Members); n > 0 {
		if after := o.Members[n-1].Value.AfterExtra; after != nil { // there is a comma after the last one
			made.Value.AfterExtra = hujson.Extra{}
		}
	}
	if strings.TrimSpace(string(o.AfterExtra)) == "" {
		o.AfterExtra = end
	} else { // a comment stands there, and stays above the member
		made.Name.BeforeExtra = append(bytes.TrimRight(o.AfterExtra, " \t\r\n"), made.Name.BeforeExtra...)
		o.AfterExtra = end
	}
	o.Members = append(o.Members, made)
	return &o.Members[len(o.Members)-1].Value, nil
}

// indentOf returns what the lines of a text are indented by: what stands before the first line
// that is, two spaces where none is.
func indentOf(text []byte) string {
	for line := range strings.Lines(string(text)) {
		if rest := strings.TrimLeft(line, " \t"); len(rest) < len(line) && strings.HasPrefix(rest, `"`) {
			return line[:len(line)-len(rest)]
		}
	}
	return "  "
}
