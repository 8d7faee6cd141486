package plugin

import "slices"

// ReasonSubscription is the reason in the details of a call that is refused as disabled because
// its principal has not subscribed to the plugin (Shu: subscription_required).
const ReasonSubscription = "subscription_required"

// A Mapping is an administrator's classification of an operation. It replaces what the plugin
// declares.
type Mapping struct {
	By       string   `json:"by"` // the principal
	Effects  []string `json:"effects,omitempty"`
	Tool     bool     `json:"tool,omitzero"`     // treat it as a tool without effects
	Brokered bool     `json:"brokered,omitzero"` // all its effects go through host services
	Approval bool     `json:"approval,omitzero"` // every call needs an approval
	Declared Declared `json:"declared"`
}

// A Declared is the classification that the plugin itself declares.
type Declared struct {
	Kind       Kind     `json:"kind"`
	Effects    []string `json:"effects,omitempty"`
	Brokered   bool     `json:"brokered,omitzero"`
	PolicyTags []string `json:"policy_tags,omitempty"`
}

// Narrower reports whether the mapping trusts the operation more than its own declaration does:
// it drops a declared effect, makes a tool of an operator, or asserts that all effects go
// through host services.
func (m *Mapping) Narrower() bool {
	lost := func(effect string) bool { return !slices.Contains(m.Effects, effect) }
	return m.Tool && m.Declared.Kind != Tool || m.Brokered && !m.Declared.Brokered || slices.ContainsFunc(m.Declared.Effects, lost)
}
