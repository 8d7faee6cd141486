package dialect

import "github.com/mortise-dev/mortise/plugin"

// operation reads one operation of a native manifest, whose plugin speaks protocol.
func (v value) operation(name, protocol string) *plugin.Operation {
	if !v.mapping("kind", "description", "input", "output", "effects", "policy_tags", "permissions", "timeout",
		"hidden", "no_cache", "preview", "reconcile", "brokered", "labels", "allowed_actions", "auth", "secrets") {
		return nil
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
	op.Secrets = v.get("secrets").secretNeeds()
	op.Auth = v.get("auth").account()
	v.get("effects").fitting(op)
	op.AllowedActions = v.get("allowed_actions").actions(op)
	v.abilities(op, protocol)
	return op
}

// account reads the account that an operation acts with.
func (v value) account() *plugin.Auth {
	if !v.there || !v.mapping("provider", "mode", "allowed_modes", "scopes", "subject_hint", "optional") {
		return nil
	}
	auth := &plugin.Auth{
		Provider:     v.get("provider").required().word(),
		Mode:         v.get("mode").oneOf("user", authModes...),
		AllowedModes: v.get("allowed_modes").words(),
		Scopes:       v.get("scopes").words(),
		SubjectHint:  v.get("subject_hint").word(),
		Optional:     v.get("optional").truth(),
	}
	for _, mode := range v.get("allowed_modes").list() {
		mode.oneOf("user", authModes...)
	}
	return auth
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

// actions reads the operations that an agent may propose: "Agents are only
// allowed to propose operators/tools in a whitelist" (kernel contracts, 5.2.3).
func (v value) actions(op *plugin.Operation) []string {
	if v.there && op.Kind != plugin.Agent {
		v.problem("only an agent proposes actions, and this is of kind %s", op.Kind)
	}
	v.references()
	return v.words()
}

// references refuses what is no reference to an operation.
func (v value) references() {
	for _, item := range v.list() {
		text, isText := item.is.(string)
		if !isText || badWord(text) != "" {
			continue // words says so
		}
		if _, err := ParseReference(text); err != nil {
			item.problem("%v", err)
		}
	}
}
