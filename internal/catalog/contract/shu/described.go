package shu

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/plugin"
)

// The tags that tell an action of a Shu plugin from its operations, beside
// [plugin.TagRequiresApproval].
const (
	ActionTag = "action" // it came of list_actions, and perform_action does it
	riskTag   = "risk_"  // before the level of risk that its author sees
)

// Merge implements [contract.Merger]: m with what the code of a Shu plugin says: it alone knows
// the schemas, the actions, and operations that no key of the manifest names.
// What those may do comes of the services that the manifest asks for. Merging
// again gives the same.
func (Contract) Merge(c *contract.Validator, m *plugin.Manifest, d contract.Described) *plugin.Manifest {
	merged := *m
	if d.Silent() {
		c.Unsaid(m)
		return &merged
	}
	if merged.Description == "" {
		merged.Description = c.Text("/description", d.Description)
	}
	_, named := d.Operations[OnlyOperation]
	merged.Operations = nil
	for _, declared := range m.Operations {
		if declared.Name == OnlyOperation && !named && len(d.Operations) > 0 && declared.Input == nil && declared.Auth == nil && !declared.AutoInvoke {
			continue // it stood for those that the code has
		}
		op := *declared
		merged.Operations = append(merged.Operations, &op)
	}
	folded := map[string]string{}
	for _, op := range merged.Operations {
		folded[strings.ToLower(op.Name)] = op.Name
	}
	for _, name := range slices.Sorted(maps.Keys(d.Operations)) {
		at, said := contract.Child("/operations", name), d.Operations[name]
		op := merged.Operation(name)
		if op == nil {
			if other, taken := folded[strings.ToLower(name)]; taken {
				c.Problem(at, "it differs from %s in letter case only", other)
				continue
			}
			if !contract.ValidName(name) {
				c.Problem(at, "%q is no name: %s", contract.Clip(name), contract.NameRule)
				continue
			}
			folded[strings.ToLower(name)] = name
			op = newOperation(m, name)
			op.Secrets = sharedOf(m)
			merged.Operations = append(merged.Operations, op)
		}
		fill(c, at, op, said)
	}
	for _, op := range merged.Operations {
		checkCallable(c, m, op)
	}
	return &merged
}

// sharedOf returns the secrets that any operation of a plugin may read.
func sharedOf(m *plugin.Manifest) map[string]plugin.SecretNeed {
	var shared map[string]plugin.SecretNeed
	for _, op := range m.Operations {
		for name, need := range op.Secrets {
			if need.Optional {
				shared = withShared(shared, map[string]plugin.SecretNeed{name: need})
			}
		}
	}
	return shared
}

// fill fills an operation with what the code says of it.
func fill(c *contract.Validator, at string, op *plugin.Operation, said contract.DescribedOperation) {
	if op.Input = c.Schema(at+"/input", said.Input); op.Name != OnlyOperation || slices.Contains(opsOf(op.Input), OnlyOperation) {
		op.Input = opByName(op.Input) // else op says which one is meant
	}
	op.Output = c.Schema(at+"/output", said.Output)
	op.Title, op.Description = c.Text(at+"/input/title", cmp.Or(titleOf(op.Input), labelOf(op.Input, op.Name))), c.Text(at+"/description", said.Description)
	if op.Description == "" {
		op.Description = c.Text(at+"/input/description", descriptionOf(op.Input))
	}
	if tags := c.Words(at+"/policy_tags", said.PolicyTags); slices.Contains(tags, ActionTag) {
		slices.Sort(tags)
		op.Preview, op.PolicyTags = true, tags
	}
	op.Permissions = c.Words(at+"/permissions", said.Permissions)
}

// checkCallable refuses an operation that chats or feeds are to call and whose schema
// does not tell what it is for: that has a title and a description, or else lists
// the operations that there are. An operation without a schema takes anything.
func checkCallable(c *contract.Validator, m *plugin.Manifest, op *plugin.Operation) {
	var who string
	switch {
	case op.AutoInvoke:
		who = "chats"
	case slices.Contains(m.Feed.Allowed, op.Name) || m.Feed.Default == op.Name:
		who = "feeds"
	default:
		return
	}
	if len(op.Input) == 0 || titleOf(op.Input) != "" && descriptionOf(op.Input) != "" {
		return
	}
	if len(opsOf(op.Input)) > 0 {
		return
	}
	c.Problem(contract.Child("/operations", op.Name)+"/input",
		"%s call it, so get_schema_for_op(%q) has to return a schema with a title and a description, or get_schema() one whose property op has an enum", who, op.Name)
}

// unchecked is the comment of a schema that a plugin does not have: it says which
// operation is meant, and nothing of other parameters. What describes the plugin
// writes it.
const unchecked = "unchecked"

// Unchecked reports whether a Shu plugin has no schema for the parameters of an
// operation: they are passed on as they are, null too.
func Unchecked(op *plugin.Operation) bool {
	return op == nil || len(op.Input) == 0 || op.Name == OnlyOperation && textOf(op.Input, "$comment") == unchecked
}

// opsOf returns the operations that a schema lists: the enum of its property op.
func opsOf(schema json.RawMessage) []string {
	var s struct {
		Properties struct {
			Op struct {
				Enum []string `json:"enum"`
			} `json:"op"`
		} `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	return s.Properties.Op.Enum
}

// labelOf returns what a form calls an operation.
func labelOf(schema json.RawMessage, name string) string {
	type hints struct {
		Labels map[string]string `json:"enum_labels"`
	}
	var s struct {
		Properties struct {
			Op struct {
				A hints `json:"x-ui"`
				B hints `json:"x_ui"`
			} `json:"op"`
		} `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return ""
	}
	return strings.TrimSpace(cmp.Or(s.Properties.Op.A.Labels[name], s.Properties.Op.B.Labels[name]))
}

func titleOf(schema json.RawMessage) string       { return textOf(schema, "title") }
func descriptionOf(schema json.RawMessage) string { return textOf(schema, "description") }

// textOf returns a text at the top of a schema.
func textOf(schema json.RawMessage, key string) string {
	var members map[string]json.RawMessage
	var text string
	if json.Unmarshal(schema, &members) != nil || json.Unmarshal(members[key], &text) != nil {
		return ""
	}
	return strings.TrimSpace(text)
}

// opByName lets an input do without op: the operation is named beside it, and
// the host puts the name in.
func opByName(raw json.RawMessage) json.RawMessage {
	tree, err := contract.ParseJSON(raw)
	if err != nil {
		return raw
	}
	top, _ := tree.(*contract.Mapping)
	if top == nil {
		return raw
	}
	required, _ := top.Values["required"].([]any)
	without := slices.DeleteFunc(slices.Clone(required), func(item any) bool { return item == "op" })
	if len(without) == len(required) {
		return raw
	}
	top.Values["required"] = without
	return contract.ToJSON(top)
}

// RiskOf returns the level of risk that the author of an action sees in it, ""
// where they do not say.
func RiskOf(op *plugin.Operation) string {
	for _, tag := range op.PolicyTags {
		if level, found := strings.CutPrefix(tag, riskTag); found && slices.Contains(op.PolicyTags, ActionTag) {
			return level
		}
	}
	return ""
}
