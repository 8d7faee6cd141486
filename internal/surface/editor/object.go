package editor

import (
	"bytes"
	"encoding/json"
	"fmt"
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
	place.Value = value.Value
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
	i := slices.IndexFunc(servers.Members, named(name))
	if i < 0 {
		return text, nil
	}
	if last := i == len(servers.Members)-1; last && i > 0 { // the comma before it goes too, unless there is one after it
		servers.Members[i-1].Value.AfterExtra = servers.Members[i].Value.AfterExtra
	}
	servers.Members = slices.Delete(servers.Members, i, i+1)
	if len(servers.Members) == 0 && len(bytes.TrimSpace(servers.AfterExtra)) == 0 {
		servers.AfterExtra = nil
	}
	return root.Pack(), nil
}

func named(name string) func(hujson.ObjectMember) bool {
	return func(m hujson.ObjectMember) bool {
		literal, is := m.Name.Value.(hujson.Literal)
		return is && literal.String() == name
	}
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
