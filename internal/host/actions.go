package host

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/mortise-dev/mortise/internal/catalog/contract/shu"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/plugin"
)

// An Action is a write of a Shu plugin, as the contract's list_actions has it.
type Action struct {
	Name             string          `json:"name"`
	Description      string          `json:"description"`
	ParamsSchema     json.RawMessage `json:"params_schema"`
	RequiredScopes   []string        `json:"required_scopes"`
	RequiresApproval bool            `json:"requires_approval"` // a person is asked: its author or policy wants one
	RiskLevel        string          `json:"risk_level,omitempty"`
}

// Actions returns the actions of a plugin that the principal may use:
// "list_actions: filter out actions the subject cannot see/use". Policy is
// asked without arguments, and an action is left out if the principal lacks a
// scope that it requires.
func (p Plugins) Actions(ctx context.Context, ref string) ([]Action, error) {
	shown, err := p.Show(ctx, ref)
	if err != nil {
		return nil, err
	}
	usable := []Action{}
	for _, op := range shown.Manifest.Operations {
		if !slices.Contains(op.PolicyTags, shu.ActionTag) || !holds(p.by, op.Permissions) {
			continue
		}
		verdict := p.g.Policy.May(policy.Execute, &plugin.Target{Manifest: shown.Manifest, Operation: op}, p.g.call(p.by)).Verdict
		if verdict == plugin.Deny {
			continue
		}
		usable = append(usable, Action{
			Name: op.Name, Description: op.Description, ParamsSchema: op.Input, RequiredScopes: append([]string{}, op.Permissions...),
			RequiresApproval: verdict == plugin.AllowWithApproval, RiskLevel: shu.RiskOf(op),
		})
	}
	return usable, nil
}

// holds reports whether a principal has every scope.
func holds(who plugin.Principal, scopes []string) bool {
	return slices.Contains(who.Scopes, "*") || !slices.ContainsFunc(scopes, func(scope string) bool { return !slices.Contains(who.Scopes, scope) })
}
