package policy

import (
	"strings"

	"github.com/cedar-policy/cedar-go/types"

	"github.com/mortise-dev/mortise/plugin"
)

// entityOf returns a principal in Cedar's terms, if its type is known.
func entityOf(p plugin.Principal) (uid types.EntityUID, known bool) {
	uid.ID = types.String(p.ID)
	switch p.Type {
	case "user", "":
		uid.Type = "User"
	case "service":
		uid.Type = "Service"
	case "agent":
		uid.Type = "Agent"
	default:
		return uid, false
	}
	return uid, true
}

func unknownType(p plugin.Principal) string {
	return "a principal of the type " + p.Type + " is not known; there are user, service and agent"
}

// actor returns the agent or service that acts in a call, where that is not its
// principal. A plugin that acts is no principal: what it may do it may because
// of whom it does it for.
func actor(call *plugin.Call) (who plugin.Principal, found bool) {
	kind, id, _ := strings.Cut(call.Actor, ":")
	if kind != "agent" && kind != "service" || id == "" || kind == call.Principal.Type && id == call.Principal.ID {
		return who, false
	}
	return plugin.Principal{Type: kind, ID: id, Scopes: call.Principal.Scopes}, true
}

// acting returns the question about the acting principal, or nil if the caller acts for
// itself. Everything except the principal stays the same, also what the person has
// agreed to.
func (e *Engine) acting(q *Question) *Question {
	if q.Call.Actor == "" {
		return nil
	}
	who, found := actor(q.Call)
	if !found {
		return nil
	}
	standing := q.Acting
	if standing == nil {
		known := e.Standing(q.Call.Tenant, who)
		standing = &known
	}
	person := q.Standing
	if person == nil {
		known := e.Standing(q.Call.Tenant, q.Call.Principal)
		person = &known
	}
	call := *q.Call
	call.Principal = who
	return &Question{
		Action: q.Action, Target: q.Target, Call: &call,
		Standing: &Standing{Groups: standing.Groups, Roles: standing.Roles, Consent: person.Consent},
	}
}

// A judged is a decision and the question it answers, which tells about whom.
type judged struct {
	*Question
	plugin.Decision
}

// severity orders verdicts.
var severity = map[plugin.Verdict]int{plugin.Allow: 0, plugin.AllowWithApproval: 1, plugin.Deny: 2}

// stricter returns the stricter of two decisions; of two alike, both. Its
// reasons say of whom they are.
func stricter(principal, actor judged) plugin.Decision {
	d := plugin.Decision{Verdict: principal.Verdict, Policy: principal.Policy}
	if severity[actor.Verdict] > severity[d.Verdict] {
		d.Verdict = actor.Verdict
	}
	for i, one := range []judged{principal, actor} {
		if one.Verdict != d.Verdict {
			continue
		}
		whose := []string{"for ", "for the acting "}[i] + one.Call.Principal.Member() + ": "
		for _, reason := range one.Reasons {
			d.Reasons = append(d.Reasons, whose+reason)
		}
	}
	return d
}
