package policy

import (
	"slices"

	"github.com/mortise-dev/mortise/plugin"
)

// A ruling is a decision that holds for each question that cannot be told from the one it was
// made for: the same policies, subject, resource and action, and equal surroundings. No
// policy that could have spoken looks at the arguments of a call.
type ruling struct {
	surroundings
	decision plugin.Decision
}

// rulingKey has the subject and the resource as the caches hold them: they are others once
// anything about them has changed.
type rulingKey struct {
	subject  *subject
	resource *resource
	action   Action
}

// ruled returns the decision that was made of an equal request.
func (p *policies) ruled(r *request) (plugin.Decision, bool) {
	known, found := p.rulings.get(rulingKey{r.subject, r.resource, r.action})
	if !found || !known.holds(r.question.Call, known.members) {
		return plugin.Decision{}, false
	}
	return known.decision, true
}

// rule keeps a decision, unless it looked at arguments or is about a plugin, which is read
// each time.
func (p *policies) rule(r *request, wanted reads, d plugin.Decision) {
	if wanted.context&inputMember != 0 || r.action == Configure {
		return
	}
	d.Reasons = slices.Clip(d.Reasons) // many hold them, and may add to them
	p.rulings.put(rulingKey{r.subject, r.resource, r.action}, &ruling{r.question.surroundings(wanted.context), d})
}
