package bridge

import (
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/plugin"
)

// A SecretNeed is a secret that an operation needs.
type SecretNeed struct {
	Name string
	plugin.SecretNeed
}

// SecretNeeds returns the secrets that an operation needs, by name and scope: those that it
// declares, and those that the host inserts into its requests. What a call is refused without
// and what people are told is missing both come from here.
func SecretNeeds(m *plugin.Manifest, op *plugin.Operation) []SecretNeed {
	var needs []SecretNeed
	for name, need := range op.Secrets {
		needs = withNeed(needs, name, need)
	}
	if slices.Contains(m.Capabilities, "http") {
		for _, in := range m.HTTP.Inject {
			if in.Secret != "" {
				needs = withNeed(needs, in.Secret, plugin.SecretNeed{AllowedScope: in.AllowedScope, Optional: in.Optional})
			}
		}
	}
	return needs
}

// withNeed adds a need, in order. A secret is optional if no need of it says otherwise.
func withNeed(needs []SecretNeed, name string, need plugin.SecretNeed) []SecretNeed {
	if need.AllowedScope == "" {
		need.AllowedScope = plugin.SecretOfSystemOrUser
	}
	one := SecretNeed{name, need}
	at, found := slices.BinarySearchFunc(needs, one, func(a, b SecretNeed) int {
		if a.Name != b.Name {
			return strings.Compare(a.Name, b.Name)
		}
		return strings.Compare(a.AllowedScope, b.AllowedScope)
	})
	if found {
		needs[at].Optional = needs[at].Optional && need.Optional
		return needs
	}
	return slices.Insert(needs, at, one)
}
