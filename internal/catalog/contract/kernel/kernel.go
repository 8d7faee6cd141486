// Package kernel reads the universal manifest of the kernel contracts.
package kernel

import (
	"encoding/json"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/contract/native"
	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/plugin"
)

// Name is the name of the contract.
const Name = "kernel"

// Contract is the contract of the kernel.
type Contract struct{}

var _ contract.Reader = Contract{}

// Name implements [contract.Contract].
func (Contract) Name() string { return Name }

// Form implements [contract.Reader].
func (Contract) Form() string { return "of the kernel contract (name, with type)" }

// Recognizes implements [contract.Reader].
func (Contract) Recognizes(top contract.Value) bool { return top.Has("type") }

// kernel reads the universal manifest of the kernel contracts (5.1.1): one
// operation, named after the plugin. The contract leaves open how the code is
// run; runner and the keys after it are ours, and all may be left out.
func (Contract) Read(top contract.Value) *plugin.Manifest {
	if top.Has("operations") || top.Has("hooks") {
		top.Get("type").Problem("it makes this a manifest of the kernel contract, which has no operations and hooks; a native manifest gives each operation a kind")
		return nil
	}
	top.Mapping("name", "type", "version", "owner", "description", "schemas", "requires", "policy_tags", "observability",
		"effects", "display_name", "runner", "isolation", "timeout", "permissions", "capabilities", "http", "auth",
		"preview", "reconcile", "brokered", "labels", "allowed_actions")
	m := native.Common(top, Name)

	schemas := top.Get("schemas")
	schemas.Mapping("input", "output")
	op := &plugin.Operation{
		Name:        m.Name,
		Kind:        native.Kind(top.Get("type")),
		Description: m.Description,
		Input:       schemas.Get("input").Schema(),
		Output:      schemas.Get("output").Schema(),
		Effects:     top.Get("effects").Words(),
		PolicyTags:  top.Get("policy_tags").Words(),
		Permissions: top.Get("permissions").Words(),
		Timeout:     top.Get("timeout").Timeout(contract.Timeouts["medium"]),
	}
	native.Fitting(top.Get("effects"), op)
	op.AllowedActions = native.Actions(top.Get("allowed_actions"), op)
	native.Abilities(top, op, m.Runner.Protocol)
	if op.Kind == plugin.Operator || op.Kind == plugin.Tool {
		op.Input = payloadOf(schemas.Get("input"), op.Input, "payload", "idempotency_key", "auth_context", "trace_context")
		op.Output = payloadOf(schemas.Get("output"), op.Output, "result", "status", "metrics", "error")
	}
	op.Auth = native.Account(top.Get("auth"))
	m.Operations = []*plugin.Operation{op}
	native.CheckAccounts(top.Get("http").Get("inject"), m)
	return m
}

// payloadOf takes a schema out of the envelope that it describes, if it does:
// the host makes the envelopes itself, and a call's input is the payload alone.
func payloadOf(v contract.Value, raw json.RawMessage, inner string, others ...string) json.RawMessage {
	unwrapped, wrapped := contract.Unwrap(raw, inner, others...)
	if !wrapped {
		return raw
	}
	if _, err := schema.Compile(unwrapped); err != nil {
		v.Problem("it describes the envelope, and %s in it does not stand for itself: %v", inner, err)
		return raw
	}
	v.Note("it describes the envelope of the contract: %s is taken out of it", inner)
	return unwrapped
}
