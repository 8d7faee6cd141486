package dialect

import (
	"maps"
	"slices"

	"github.com/mortise-dev/mortise/plugin"
)

// abilities fills in what the code says of an operation that no manifest names.
func (c *checker) abilities(at string, op *plugin.Operation, said DescribedOperation) {
	op.Preview, op.Reconcile, op.Brokered = said.Preview, said.Reconcile, said.Brokered
	op.Labels = c.labels(at+"/labels", said.Labels)
	op.AllowedActions = c.references(at+"/allowed_actions", said.AllowedActions)
	if op.Kind != plugin.Operator {
		for _, a := range []struct {
			key  string
			able bool
		}{{"preview", said.Preview}, {"reconcile", said.Reconcile}, {"brokered", said.Brokered}} {
			if a.able {
				c.problem(at+"/"+a.key, "only an operator can have it, and this is of kind %s", op.Kind)
			}
		}
	}
	if len(said.AllowedActions) > 0 && op.Kind != plugin.Agent {
		c.problem(at+"/allowed_actions", "only an agent proposes actions, and this is of kind %s", op.Kind)
	}
}

// able refuses what the code can do and the manifest does not say.
func (c *checker) able(at string, said DescribedOperation, op *plugin.Operation) {
	for _, a := range []struct {
		key            string
		code, manifest bool
	}{{"preview", said.Preview, op.Preview}, {"reconcile", said.Reconcile, op.Reconcile}, {"brokered", said.Brokered, op.Brokered}} {
		if a.code && !a.manifest {
			c.problem(at+"/"+a.key, "the code says true, the manifest does not")
		}
	}
}

// labels checks labels that the code gives, and returns them in order.
func (c *checker) labels(at string, labels []string) []string {
	words := c.words(at, labels)
	for _, word := range words {
		if !slices.Contains(tainted, word) {
			c.problem(at, "%q is none of untrusted, private", clip(word))
		}
	}
	slices.Sort(words)
	return words
}

// references checks operations that the code names.
func (c *checker) references(at string, names []string) []string {
	words := c.words(at, names)
	for _, word := range words {
		if _, err := ParseReference(word); err != nil {
			c.problem(at, "%v", err)
		}
	}
	return words
}

// contextFields returns what the plugin needs of the context: what the manifest
// says, or what the code says where the manifest says nothing.
func (c *checker) contextFields(m *plugin.Manifest, d Described) []string {
	declared := m.Requires.ContextFields
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(d.Operations)) {
		op, at := d.Operations[name], child("/operations", name)+"/context_fields"
		own := c.words(at, op.ContextFields)
		if len(own) > 0 && op.Kind != plugin.Agent {
			c.problem(at, "only an agent needs context, and this is of kind %s", op.Kind)
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
