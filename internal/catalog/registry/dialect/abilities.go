package dialect

import (
	"slices"

	"github.com/mortise-dev/mortise/plugin"
)

// abilities reads what an operation can do beside being carried out, and what
// its answers are tainted with: preview, reconcile, brokered, labels.
func (v value) abilities(op *plugin.Operation, protocol string) {
	op.Preview = v.ability("preview", op, protocol)
	op.Reconcile = v.ability("reconcile", op, protocol)
	op.Brokered = v.ability("brokered", op, protocol)
	op.Labels = v.get("labels").labels()
}

// ability reads one that only an operator has. Protocol 1 has no messages for
// them and no host services.
func (v value) ability(key string, op *plugin.Operation, protocol string) bool {
	place := v.get(key)
	able := place.truth()
	switch {
	case !able:
	case op.Kind != plugin.Operator:
		place.problem("only an operator can have it, and this is of kind %s", op.Kind)
	case protocol == "1":
		place.problem("a plugin of protocol 1 cannot have it: it takes protocol 2")
	}
	return able
}

// tainted are the labels that an operation may declare.
var tainted = []string{plugin.Untrusted, plugin.Private}

// labels returns the labels here, in the order of the alphabet.
func (v value) labels() []string {
	for _, item := range v.list() {
		if text, isText := item.is.(string); isText && badWord(text) == "" && !slices.Contains(tainted, text) {
			item.problem("%q is none of untrusted, private", clip(text))
		}
	}
	return slices.Sorted(slices.Values(v.words()))
}
