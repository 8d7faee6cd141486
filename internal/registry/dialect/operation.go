package dialect

import "github.com/mortise-dev/mortise/plugin"

// operation reads one operation of a native manifest.
func (v value) operation(name string) *plugin.Operation {
	if !v.mapping("kind", "description", "input", "output", "effects", "policy_tags", "permissions", "timeout",
		"hidden", "no_cache", "preview", "reconcile", "auth", "secrets") {
		return nil
	}
	for _, key := range []string{"preview", "reconcile", "auth", "secrets"} {
		v.get(key).unsupported()
	}
	op := &plugin.Operation{
		Name:        name,
		Kind:        v.get("kind").operationKind(),
		Description: v.get("description").text(),
		Input:       v.get("input").schema(),
		Output:      v.get("output").schema(),
		Effects:     v.get("effects").words(),
		PolicyTags:  v.get("policy_tags").words(),
		Permissions: v.get("permissions").words(),
		Timeout:     v.get("timeout").timeout(timeouts["medium"]),
		Hidden:      v.get("hidden").truth(),
		NoCache:     v.get("no_cache").truth(),
	}
	v.get("effects").fitting(op)
	return op
}

// operationKind reads one of the four kinds, tool if nothing is said.
func (v value) operationKind() plugin.Kind {
	return plugin.Kind(v.oneOf(string(plugin.Tool), string(plugin.Agent), string(plugin.Operator), string(plugin.Tool), string(plugin.Adapter)))
}

// fitting refuses effects of anything but an operator: "Operators are the only
// modules that can" (kernel contracts, 5.3.1).
func (v value) fitting(op *plugin.Operation) {
	if len(op.Effects) > 0 && op.Kind != plugin.Operator {
		v.problem("only an operator may cause effects, and this is of kind %s", op.Kind)
	}
}
