package native

import (
	"slices"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/plugin"
)

// Abilities reads what an operation can do beside being carried out, and what
// its answers are tainted with: preview, reconcile, brokered, labels.
func Abilities(v contract.Value, op *plugin.Operation, protocol string) {
	op.Preview = abilityOf(v, "preview", op, protocol)
	op.Reconcile = abilityOf(v, "reconcile", op, protocol)
	op.Brokered = abilityOf(v, "brokered", op, protocol)
	op.Labels = labelsOf(v.Get("labels"))
}

// abilityOf reads one that only an operator has. Protocol 1 has no messages for
// them and no host services.
func abilityOf(v contract.Value, key string, op *plugin.Operation, protocol string) bool {
	place := v.Get(key)
	able := place.Truth()
	switch {
	case !able:
	case op.Kind != plugin.Operator:
		place.Problem("only an operator can have it, and this is of kind %s", op.Kind)
	case protocol == "1":
		place.Problem("a plugin of protocol 1 cannot have it: it takes protocol 2")
	}
	return able
}

// labelsOf returns the labels here, in the order of the alphabet.
func labelsOf(v contract.Value) []string {
	for _, item := range v.List() {
		if text, isText := item.Is.(string); isText && contract.BadWord(text) == "" && !slices.Contains(contract.TaintLabels, text) {
			item.Problem("%q is none of untrusted, private", contract.Clip(text))
		}
	}
	return slices.Sorted(slices.Values(v.Words()))
}
