package dialect

import (
	"encoding/json"

	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/plugin"
)

// kernel reads the universal manifest of the kernel contracts (5.1.1): one
// operation, named after the plugin. The contract leaves open how the code is
// run; runner and the keys after it are ours, and all may be left out.
func (p *page) kernel(top value) *plugin.Manifest {
	top.mapping("name", "type", "version", "owner", "description", "schemas", "requires", "policy_tags", "observability",
		"effects", "display_name", "runner", "isolation", "timeout", "permissions", "capabilities", "http",
		"preview", "reconcile", "brokered", "labels", "allowed_actions")
	m := p.common(top, Kernel)

	schemas := top.get("schemas")
	schemas.mapping("input", "output")
	op := &plugin.Operation{
		Name:        m.Name,
		Kind:        top.get("type").operationKind(),
		Description: m.Description,
		Input:       schemas.get("input").schema(),
		Output:      schemas.get("output").schema(),
		Effects:     top.get("effects").words(),
		PolicyTags:  top.get("policy_tags").words(),
		Permissions: top.get("permissions").words(),
		Timeout:     top.get("timeout").timeout(timeouts["medium"]),
	}
	top.get("effects").fitting(op)
	op.AllowedActions = top.get("allowed_actions").actions(op)
	top.abilities(op, m.Runner.Protocol)
	if op.Kind == plugin.Operator || op.Kind == plugin.Tool {
		op.Input = schemas.get("input").payload(op.Input, "payload", "idempotency_key", "auth_context", "trace_context")
		op.Output = schemas.get("output").payload(op.Output, "result", "status", "metrics", "error")
	}
	m.Operations = []*plugin.Operation{op}
	return m
}

// payload takes a schema out of the envelope that it describes, if it does:
// the host makes the envelopes itself, and a call's input is the payload alone.
func (v value) payload(raw json.RawMessage, inner string, others ...string) json.RawMessage {
	unwrapped, wrapped := unwrap(raw, inner, others...)
	if !wrapped {
		return raw
	}
	if _, err := schema.Compile(unwrapped); err != nil {
		v.problem("it describes the envelope, and %s in it does not stand for itself: %v", inner, err)
		return raw
	}
	v.note("it describes the envelope of the contract: %s is taken out of it", inner)
	return unwrapped
}
