// Package toy is a contract that the host does not have: all of it is this folder.
package toy

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/plugin"
)

func init() { contract.Register(toy{}) }

// toy has a manifest of lines, "key: value", in a file of its own.
type toy struct{}

var (
	_ contract.FileOwner = toy{}
	_ contract.Facter    = toy{}
	_ contract.Preparer  = toy{}
	_ contract.Enveloper = toy{}
)

func (toy) Name() string                   { return "toy" }
func (toy) Form() string                   { return "of a toy (toy.txt)" }
func (toy) File() string                   { return "toy.txt" }
func (toy) Recognizes(contract.Value) bool { return false }

func (toy) Owns(files contract.Files) bool {
	_, err := files.Regular("toy.txt")
	return err == nil
}

func (toy) Parse(file string, data []byte) (any, contract.Problems) {
	m := &contract.Mapping{}
	for line := range strings.Lines(string(data)) {
		key, value, found := strings.Cut(strings.TrimSpace(line), ": ")
		if !found || !m.Set(key, value) {
			return nil, contract.Whole(file, "a line is key: value, and no key stands twice")
		}
	}
	return m, nil
}

func (toy) Read(top contract.Value) *plugin.Manifest {
	return &plugin.Manifest{
		Dialect:   "toy",
		Name:      top.Get("toy").Required().Name(),
		Version:   "1.0.0",
		Runner:    plugin.Runner{Kind: contract.ProcessRunner, Protocol: "2", Command: []string{top.Get("program").Required().Word(), "toy"}},
		Isolation: plugin.IsolationTenant,
		Operations: []*plugin.Operation{
			{Name: "say", Kind: plugin.Tool, Timeout: contract.Timeouts["fast"], Input: json.RawMessage(`{"type":"object"}`), Output: json.RawMessage(`{"type":"string"}`)},
			{Name: "sing", Kind: plugin.Tool, Timeout: contract.Timeouts["fast"], Input: json.RawMessage(`{"type":"object"}`), Output: json.RawMessage(`{"type":"string"}`)},
		},
	}
}

func (toy) Facts() plugin.Contract { return plugin.Contract{MaxInput: 64, HostMember: "_host"} }

// Operation takes the member do.
func (toy) Operation(m *plugin.Manifest, params json.RawMessage) string {
	var in struct {
		Do string `json:"do"`
	}
	if json.Unmarshal(params, &in) != nil || m.Operation(in.Do) == nil {
		return ""
	}
	return in.Do
}

func (toy) Prepare(_ *plugin.Operation, input json.RawMessage) (params, overlay json.RawMessage, debug bool, err error) {
	members := map[string]json.RawMessage{}
	if json.Unmarshal(input, &members) != nil {
		return nil, nil, false, plugin.Errorf(plugin.CodeInvalidInput, "an object belongs here")
	}
	overlay = members["_host"]
	delete(members, "_host")
	delete(members, "do")
	params, err = json.Marshal(members)
	return params, overlay, false, err
}

func (t toy) FromModel(op *plugin.Operation, input json.RawMessage) (json.RawMessage, error) {
	params, _, _, err := t.Prepare(op, input)
	return params, err
}

func (toy) Envelope(_ *plugin.Operation, res plugin.Result, err error, _ bool) any {
	var failed *plugin.Error
	if errors.As(err, &failed) {
		return map[string]any{"broken": failed.Code}
	}
	return map[string]any{"toy": res.Data}
}
