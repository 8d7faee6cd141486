package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"

	"github.com/mortise-dev/mortise/plugin"
)

// An outcome is what the policies said to one request.
type outcome struct {
	permits, forbids []*statement // those that matched, in the order of the set
	failed           []failure    // those that could not be evaluated
	untrustedEffect  bool         // an effect with arguments from outside
	requiresApproval bool         // the operation has the tag requires_approval
}

// A failure is a policy that could not be evaluated, and why.
type failure struct {
	*statement
	message string
}

// judge evaluates the candidates. Cedar passes over a policy that fails, which
// would let a call through when the policy is a forbid; the failures are kept
// for the verdict.
func (p *policies) judge(r *request, found candidates, context types.Record) (o outcome) {
	_, diagnostic := cedar.Authorize(found, r, cedar.Request{Principal: r.subject.entity.UID, Action: actions[r.action], Resource: r.resource.entity.UID, Context: context})
	o.untrustedEffect, o.requiresApproval = r.untrustedEffect(), r.requiresApproval()
	for _, reason := range diagnostic.Reasons {
		// Where a forbid matches, Cedar reports the forbids alone.
		if s := p.byID[reason.PolicyID]; s.permits() {
			o.permits = append(o.permits, s)
		} else {
			o.forbids = append(o.forbids, s)
		}
	}
	for _, e := range diagnostic.Errors {
		o.failed = append(o.failed, failure{p.byID[e.PolicyID], e.Message})
	}
	if len(o.permits) > 1 {
		slices.SortFunc(o.permits, inOrder)
	}
	if len(o.forbids) > 1 {
		slices.SortFunc(o.forbids, inOrder)
	}
	if len(o.failed) > 1 {
		slices.SortFunc(o.failed, func(a, b failure) int { return inOrder(a.statement, b.statement) })
	}
	return o
}

func inOrder(a, b *statement) int { return cmp.Compare(a.order, b.order) }

// untrustedEffect reports whether a call would cause an effect with arguments that came
// from outside: what they say may not be what the principal wants.
func (r *request) untrustedEffect() bool {
	return r.action == Execute && len(r.resource.effects) > 0 && slices.Contains(r.question.Call.Labels, plugin.Untrusted)
}

// requiresApproval reports whether the author of an operation requires approval before
// it runs: "side-effects should only occur after approval when
// requires_approval is true" (Shu, Actions API).
func (r *request) requiresApproval() bool {
	return r.action == Execute && slices.Contains(r.resource.tags, plugin.TagRequiresApproval)
}

// verdict weighs what was said, the strictest first.
func (o *outcome) verdict() plugin.Verdict {
	switch {
	case len(o.forbids) > 0 || len(o.failed) > 0 || len(o.permits) == 0:
		return plugin.Deny
	case slices.ContainsFunc(o.permits, func(s *statement) bool { return s.approval }):
		return plugin.AllowWithApproval
	case o.requiresApproval:
		return plugin.AllowWithApproval
	case o.untrustedEffect && !slices.ContainsFunc(o.permits, func(s *statement) bool { return s.trusting }):
		return plugin.AllowWithApproval
	default:
		return plugin.Allow
	}
}

// maxReasons bounds what a decision tells: it is kept with every call.
const maxReasons = 16

// reasons names the policies that the verdict comes from. The first is what
// the caller reads of a denial.
func (o *outcome) reasons(r *request) []string {
	reasons := make([]string, 0, max(1, len(o.forbids)+len(o.failed), len(o.permits)))
	verdict := o.verdict()
	switch {
	case verdict == plugin.Deny && len(o.forbids)+len(o.failed) == 0:
		return append(reasons, r.nothing())
	case verdict == plugin.Deny:
		for _, s := range o.forbids {
			reasons = append(reasons, s.label+" forbids it"+told(s.why))
		}
		for _, f := range o.failed {
			reasons = append(reasons, f.label+" could not be evaluated, which denies"+told(f.message))
		}
	case verdict == plugin.AllowWithApproval:
		gated := slices.ContainsFunc(o.permits, func(s *statement) bool { return s.approval })
		for _, s := range o.permits {
			switch {
			case s.approval:
				reasons = append(reasons, s.label+" asks for approval"+told(s.why))
			case !gated && o.requiresApproval:
				reasons = append(reasons, s.label+" allows it; but its author wants a person to agree each time, so one is asked")
			case !gated:
				reasons = append(reasons, fmt.Sprintf("%s allows it; but an argument is untrusted and it has the effects %s, so a person is asked", s.label, strings.Join(r.resource.effects, ", ")))
			}
		}
	default:
		for _, s := range o.permits {
			switch {
			case o.untrustedEffect && s.trusting:
				reasons = append(reasons, s.label+" allows it with untrusted arguments too")
			case !o.untrustedEffect:
				reasons = append(reasons, s.label)
			}
		}
	}
	if len(reasons) > 1 {
		reasons = slices.Compact(reasons) // a rule may be several policies of one name
	}
	if more := len(reasons) - maxReasons; more > 0 {
		reasons = append(reasons[:maxReasons], fmt.Sprintf("and %d more", more))
	}
	return reasons
}

func told(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// nothing says what no policy allows, and what rule would.
func (r *request) nothing() string {
	t, who := r.question.Target, r.question.Call.Principal.Member()
	if r.action != Execute {
		return fmt.Sprintf("no policy lets %s %s %s%s", who, r.action, r.resource.entity.UID.ID, remedy[r.action])
	}
	what := fmt.Sprintf("no rule lets %s run %s, %s", who, t.Name(), article(t.Operation.Kind))
	rule := fmt.Sprintf("{operations: [%q]", t.Name())
	if effects := t.Operation.Effects; len(effects) > 0 {
		what += " with the effects " + strings.Join(effects, ", ")
		rule += fmt.Sprintf(", effects: [%s]", strings.Join(effects, ", "))
	}
	return what + "; to allow it, add " + rule + "} to policy.allow in mortise.yaml"
}

// remedy is the permission that would allow an action other than a call.
var remedy = map[Action]string{
	Approve:   "; " + approvalsBy + " in mortise.yaml, or a policy, names those who may",
	Configure: "; " + configureBy + " in mortise.yaml, or a policy, names those who may",
}

func article(kind plugin.Kind) string {
	if kind == plugin.Tool {
		return "a tool"
	}
	return "an " + string(kind)
}
