package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"

	"github.com/mortise-dev/mortise/plugin"
)

// Approvers returns the source of a policy that lets these principals of a
// tenant agree to anything. It yields to policies that say who may: where a
// permit of any other document names the action approve, this one is not part
// of the set.
func Approvers(tenant string, who []plugin.Principal) Source {
	return holders(approvalsBy, Approve, tenant, who)
}

// Configurers returns the source of a policy that lets these principals of a tenant
// configure any plugin, and change policies. It is added to the permits of other
// documents; otherwise a document that permits one more principal could lock out all
// others.
func Configurers(tenant string, who []plugin.Principal) Source {
	return holders(configureBy, Configure, tenant, who)
}

// holders writes a list of principals who may do something out as policies.
func holders(name string, action Action, tenant string, who []plugin.Principal) Source {
	return func() ([]Document, error) {
		var text strings.Builder
		for _, p := range who {
			uid, known := entityOf(p)
			if !known {
				return nil, fmt.Errorf("%s: %s", name, unknownType(p))
			}
			fmt.Fprintf(&text, "permit (principal == %s::%s, action == Action::%s, resource)\nwhen { context.tenant == %s };\n", uid.Type, literal(uid.ID), literal(action), literal(tenant))
		}
		return []Document{{Name: name, Text: []byte(text.String())}}, nil
	}
}

// yield takes out of a set what holds only where no other document speaks.
func (p *policies) yield() {
	approve := actions[Approve]
	spoken := slices.ContainsFunc(p.all, func(s *statement) bool {
		return s.file != approvalsBy && s.permits() && names(s.ast.Action, approve)
	})
	if !spoken {
		return
	}
	kept := &policies{byID: map[types.PolicyID]*statement{}, index: emptyIndex()}
	for _, s := range p.all {
		if s.file != approvalsBy {
			kept.add(s)
		}
	}
	p.all, p.byID, p.index, p.effects = kept.all, kept.byID, kept.index, kept.effects
	for i := range p.texts {
		if p.texts[i].Name == approvalsBy {
			p.texts[i].Policies = 0
		}
	}
}

// names reports whether a scope names an action; one that is about all does not.
func names(scope ast.IsActionScopeNode, action types.EntityUID) bool {
	_, all := scope.(ast.ScopeTypeAll)
	return !all && lets(scope, action)
}
