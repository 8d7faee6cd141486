package kernel

import (
	"github.com/mortise-dev/mortise/plugin"
)

// caged is the level of isolation at which a plugin has no way out but the
// host's services.
const caged = "full"

// mayRunDry refuses to run dry what could act by itself. An operator does that
// unless it says that all its effects go through host services, and nothing but
// a whole cage makes that true. What has no effects is as good as its answer: if policy puts
// that before a person, a dry run does not give it.
func (a *attempt) mayRunDry() error {
	op := a.target.Operation
	switch {
	case len(op.Effects) == 0 && a.record.Decision.Verdict != plugin.Allow:
		return plugin.Errorf(plugin.CodePolicyDenied,
			"%s does not run dry: it has no effects, so a dry run would answer as the call does, and policy asks for approval of that (%s); make the call", a.target.Name(), a.record.Decision.Reasons[0])
	case op.Kind != plugin.Operator && len(op.Effects) == 0:
		return nil
	case !op.Brokered:
		return plugin.Errorf(plugin.CodeEffectUndeclared,
			"%s does not run dry: it does not say that all its effects go through host services; where they do, write brokered: true under operations: %s: in its manifest", a.target.Name(), op.Name)
	case a.k.Runner.Isolation(a.target) != caged:
		return plugin.Errorf(plugin.CodeIsolationUnavailable,
			"%s does not run dry: plugins are isolated at the level %s here, and below %s it could act without the host; 'mortise doctor' says what is missing", a.target.Name(), a.k.Runner.Isolation(a.target), caged)
	}
	return nil
}

// finishDry completes the result of a dry run with what it found out; nothing
// where policy was not asked.
func (a *attempt) finishDry(res *plugin.Result, failure *plugin.Error) {
	if a.call.Dry == nil || a.record.Decision == nil {
		return
	}
	dry := &plugin.DryRun{Verdict: a.record.Decision.Verdict, Reasons: a.record.Decision.Reasons}
	dry.Changes, dry.LeftOut = a.call.Dry.Changes()
	if failure != nil && !a.ran() {
		dry.NotRun = failure.Message
	}
	res.DryRun = dry
}
