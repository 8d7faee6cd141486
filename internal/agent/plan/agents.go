package plan

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/mortise-dev/mortise/plugin"
)

// A Registry knows every plugin.
type Registry interface {
	Resolve(ctx context.Context, ref string) (*plugin.Target, error)
	// ResolveFor is Resolve for one who sees some operations of each plugin.
	ResolveFor(ctx context.Context, ref string, sees func(m *plugin.Manifest) (operations []*plugin.Operation, whole bool)) (*plugin.Target, error)
}

// A Policy judges calls. Silence means no.
type Policy interface {
	Decide(t *plugin.Target, call *plugin.Call) plugin.Decision
	Version() string
	// Visible returns the operations of a plugin that the caller may see.
	Visible(m *plugin.Manifest, call *plugin.Call) (operations []*plugin.Operation, whole bool)
}

// Agents is what stands around the call of an agent: what it is told
// ([Agents.Brief]) and what of its answer may count ([Agents.Judge]). It keeps
// nothing and is safe for concurrent use.
type Agents struct {
	Registry Registry
	Policy   Policy

	// Operations returns the names of a plugin's operations that may be shown.
	// The reference is name or name@versions; what cannot be used has none.
	Operations func(ctx context.Context, ref string) []string

	MaxInput func() int // bytes of an operation's input, as agents are told; 4 MiB where it is nil
}

// MaxSteps is how many steps a plan may have, and how many actions an agent may
// propose.
const MaxSteps = 64

// allowed finds what an agent proposes among what it may propose, and returns
// the reference to resolve: with the declared range where the agent gave none.
// A declared plugin covers all its operations.
func allowed(declared []string, asked string) (ref string, ok bool) {
	name, limits, ranged := strings.Cut(asked, "@")
	owner, op, _ := strings.Cut(name, "/")
	for _, one := range declared {
		own, limit, limited := strings.Cut(one, "@")
		ownOwner, ownOp, _ := strings.Cut(own, "/")
		if owner != ownOwner || op != "" && ownOp != "" && op != ownOp {
			continue
		}
		if limited && ranged && limits != limit {
			continue // it asks for other versions than it declared
		}
		if op == "" {
			name = own
		}
		switch {
		case limited:
			return name + "@" + limit, true
		case ranged:
			return name + "@" + limits, true
		}
		return name, true
	}
	return "", false
}

// refuseAction says that an agent may not propose what it proposed.
func refuseAction(agent *plugin.Target, asked string) *plugin.Error {
	may := "it declares no allowed_actions"
	if declared := agent.Operation.AllowedActions; len(declared) > 0 {
		may = "its allowed_actions are " + strings.Join(declared, ", ")
	}
	return plugin.Errorf(plugin.CodePolicyDenied, "%s may not propose %.200s; %s", agent.Name(), asked, may)
}

// details is the JSON object that goes with an error.
func details(value any) json.RawMessage {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	return raw
}
