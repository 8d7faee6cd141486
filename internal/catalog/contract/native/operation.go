package native

import (
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/plugin"
)

// operationOf reads one operation of a native manifest, whose plugin speaks protocol.
func operationOf(v contract.Value, name, protocol string) *plugin.Operation {
	if !v.Mapping("kind", "description", "input", "output", "effects", "policy_tags", "permissions", "timeout",
		"hidden", "no_cache", "preview", "reconcile", "brokered", "labels", "allowed_actions", "auth", "secrets", "tags", "facets", "consumes", "produces", "mcp") {
		return nil
	}
	op := &plugin.Operation{
		Name:        name,
		Kind:        Kind(v.Get("kind")),
		Description: v.Get("description").Text(),
		Input:       v.Get("input").Schema(),
		Output:      v.Get("output").Schema(),
		Effects:     v.Get("effects").Words(),
		PolicyTags:  v.Get("policy_tags").Words(),
		Permissions: v.Get("permissions").Words(),
		Timeout:     v.Get("timeout").Timeout(contract.Timeouts["medium"]),
		Hidden:      v.Get("hidden").Truth(),
		NoCache:     v.Get("no_cache").Truth(),
	}
	op.Tags, op.Facets = v.Get("tags").Words(), v.Get("facets").Words() // what the router knows it by
	op.Consumes, op.Produces = v.Get("consumes").Words(), v.Get("produces").Words()
	op.Secrets = v.Get("secrets").SecretNeeds()
	op.Auth = Account(v.Get("auth"))
	Fitting(v.Get("effects"), op)
	op.AllowedActions = Actions(v.Get("allowed_actions"), op)
	Abilities(v, op, protocol)
	op.MCP = protocolFace(v.Get("mcp"), op)
	return op
}

// Account reads the account that an operation acts with, nil where there is none.
func Account(v contract.Value) *plugin.Auth {
	if !v.There || !v.Mapping("provider", "mode", "allowed_modes", "scopes", "subject_hint", "optional") {
		return nil
	}
	auth := &plugin.Auth{
		Provider:     v.Get("provider").Required().Word(),
		Mode:         v.Get("mode").OneOf("user", contract.AuthModes...),
		AllowedModes: v.Get("allowed_modes").Words(),
		Scopes:       v.Get("scopes").Words(),
		SubjectHint:  v.Get("subject_hint").Word(),
		Optional:     v.Get("optional").Truth(),
	}
	for _, mode := range v.Get("allowed_modes").List() {
		mode.OneOf("user", contract.AuthModes...)
	}
	return auth
}

// Kind reads one of the four kinds, tool if nothing is said.
func Kind(v contract.Value) plugin.Kind {
	return plugin.Kind(v.OneOf(string(plugin.Tool), string(plugin.Agent), string(plugin.Operator), string(plugin.Tool), string(plugin.Adapter)))
}

// Fitting refuses effects of anything but an operator: "Operators are the only
// modules that can" (kernel contracts, 5.3.1).
func Fitting(v contract.Value, op *plugin.Operation) {
	if len(op.Effects) > 0 && op.Kind != plugin.Operator {
		v.Problem("only an operator may cause effects, and this is of kind %s", op.Kind)
	}
}

// Actions reads the operations that an agent may propose: "Agents are only
// allowed to propose operators/tools in a whitelist" (kernel contracts, 5.2.3).
func Actions(v contract.Value, op *plugin.Operation) []string {
	if v.There && op.Kind != plugin.Agent {
		v.Problem("only an agent proposes actions, and this is of kind %s", op.Kind)
	}
	checkReferences(v)
	return v.Words()
}

// checkReferences refuses what is no reference to an operation.
func checkReferences(v contract.Value) {
	for _, item := range v.List() {
		text, isText := item.Is.(string)
		if !isText || contract.BadWord(text) != "" {
			continue // words says so
		}
		if _, err := contract.ParseReference(text); err != nil {
			item.Problem("%v", err)
		}
	}
}
