package mortise

import (
	"reflect"

	"github.com/mortise-dev/mortise/protocol"
)

// describedOperation is what describe says of one operation.
type describedOperation struct {
	Kind        string         `json:"kind"`
	Description string         `json:"description,omitempty"`
	Input       map[string]any `json:"input,omitempty"`
	Output      map[string]any `json:"output,omitempty"`
	Effects     []string       `json:"effects,omitempty"`
	PolicyTags  []string       `json:"policy_tags,omitempty"`
	Permissions []string       `json:"permissions,omitempty"`
	Timeout     string         `json:"timeout,omitempty"`
	Labels      []string       `json:"labels,omitempty"`

	Preview   bool `json:"preview,omitzero"`
	Reconcile bool `json:"reconcile,omitzero"`
	Brokered  bool `json:"brokered,omitzero"`

	AllowedActions []string `json:"allowed_actions,omitempty"`
	ContextFields  []string `json:"context_fields,omitempty"`
}

// describe returns the answer to describe.
func (p *Plugin) describe() any {
	type described struct {
		protocol.Peer `json:",inline"`
		Description   string                        `json:"description"`
		Capabilities  []string                      `json:"capabilities"`
		Operations    map[string]describedOperation `json:"operations"`
		Hooks         []describedHook               `json:"hooks,omitempty"`
	}
	d := described{
		Peer: protocol.Peer{Name: p.name, Version: p.version}, Description: p.Description, Capabilities: p.Capabilities,
		Operations: map[string]describedOperation{}, Hooks: p.describedHooks(),
	}
	if d.Capabilities == nil {
		d.Capabilities = []string{}
	}
	for name, op := range p.operations {
		d.Operations[name] = op.described
	}
	return map[string]any{"plugins": []described{d}}
}

const draft = "https://json-schema.org/draft/2020-12/schema"

// outputSchema returns the schema of what a function of that type answers, nil
// where it says nothing.
func outputSchema(t reflect.Type) map[string]any {
	if t.Implements(reflect.TypeFor[answerer]()) { // a Result speaks of its data
		data, _ := t.FieldByName("Data")
		t = data.Type
	}
	return writtenShape(t).schema()
}
