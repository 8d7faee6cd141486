package plugin

import "slices"

// ReasonSubscription is the reason in the details of a call that is refused as disabled because
// its principal has not subscribed to the plugin (Shu: subscription_required).
const ReasonSubscription = "subscription_required"

// A Mapping is an administrator's word on what an operation does, in place of what its plugin
// declares.
type Mapping struct {
	By       string   `json:"by"` // the principal
	Effects  []string `json:"effects,omitempty"`
	Tool     bool     `json:"tool,omitzero"`     // it computes, and has no effects
	Brokered bool     `json:"brokered,omitzero"` // all its effects go through host services
	Approval bool     `json:"approval,omitzero"` // a person agrees to each call
	Declared Declared `json:"declared"`
}

// A Declared is what a plugin says of an operation itself.
type Declared struct {
	Kind       Kind     `json:"kind"`
	Effects    []string `json:"effects,omitempty"`
	Brokered   bool     `json:"brokered,omitzero"`
	PolicyTags []string `json:"policy_tags,omitempty"`
}

// Narrower reports whether the word leaves an operation less than it declares, or trusts it
// with more than that: an effect less, a tool where it is an operator, effects that all go
// through the host where it does not say so.
func (m *Mapping) Narrower() bool {
	lost := func(effect string) bool { return !slices.Contains(m.Effects, effect) }
	return m.Tool && m.Declared.Kind != Tool || m.Brokered && !m.Declared.Brokered || slices.ContainsFunc(m.Declared.Effects, lost)
}
