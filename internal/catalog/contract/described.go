package contract

import (
	"maps"
	"slices"

	"github.com/mortise-dev/mortise/plugin"
)

// abilities fills in what the code says of an operation that no manifest names.
func (c *Validator) abilities(at string, op *plugin.Operation, said DescribedOperation) {
	op.Preview, op.Reconcile, op.Brokered = said.Preview, said.Reconcile, said.Brokered
	op.Labels = c.labels(at+"/labels", said.Labels)
	op.AllowedActions = c.references(at+"/allowed_actions", said.AllowedActions)
	if op.Kind != plugin.Operator {
		for _, a := range []struct {
			key  string
			able bool
		}{{"preview", said.Preview}, {"reconcile", said.Reconcile}, {"brokered", said.Brokered}} {
			if a.able {
				c.Problem(at+"/"+a.key, "only an operator can have it, and this is of kind %s", op.Kind)
			}
		}
	}
	if len(said.AllowedActions) > 0 && op.Kind != plugin.Agent {
		c.Problem(at+"/allowed_actions", "only an agent proposes actions, and this is of kind %s", op.Kind)
	}
}

// able refuses what the code can do and the manifest does not say.
func (c *Validator) able(at string, said DescribedOperation, op *plugin.Operation) {
	for _, a := range []struct {
		key            string
		code, manifest bool
	}{{"preview", said.Preview, op.Preview}, {"reconcile", said.Reconcile, op.Reconcile}, {"brokered", said.Brokered, op.Brokered}} {
		if a.code && !a.manifest {
			c.Problem(at+"/"+a.key, "the code says true, the manifest does not")
		}
	}
}

// labels checks labels that the code gives, and returns them in order.
func (c *Validator) labels(at string, labels []string) []string {
	words := c.Words(at, labels)
	for _, word := range words {
		if !slices.Contains(TaintLabels, word) {
			c.Problem(at, "%q is none of untrusted, private", Clip(word))
		}
	}
	slices.Sort(words)
	return words
}

// references checks operations that the code names.
func (c *Validator) references(at string, names []string) []string {
	words := c.Words(at, names)
	for _, word := range words {
		if _, err := ParseReference(word); err != nil {
			c.Problem(at, "%v", err)
		}
	}
	return words
}

// contextFields returns what the plugin needs of the context: what the manifest
// says, or what the code says where the manifest says nothing.
func (c *Validator) contextFields(m *plugin.Manifest, d Described) []string {
	declared := m.Requires.ContextFields
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(d.Operations)) {
		op, at := d.Operations[name], Child("/operations", name)+"/context_fields"
		own := c.Words(at, op.ContextFields)
		if len(own) > 0 && op.Kind != plugin.Agent {
			c.Problem(at, "only an agent needs context, and this is of kind %s", op.Kind)
		}
		if len(declared) > 0 {
			c.within(at, own, declared)
		}
		fields = append(fields, own...)
	}
	if len(declared) > 0 {
		return declared
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}
