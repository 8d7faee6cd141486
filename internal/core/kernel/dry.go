package kernel

import (
	"github.com/mortise-dev/mortise/plugin"
)

// caged is the level of isolation at which a plugin has no way out but the
// host's services.
const caged = "full"

// mayRunDry refuses to run dry what could act by itself. An operator does that
// unless it says that all its effects go through host services, and nothing but
// a whole cage makes that true.
func (r *request) mayRunDry() error {
	op := r.target.Operation
	switch {
	case op.Kind != plugin.Operator && len(op.Effects) == 0:
		return nil
	case !op.Brokered:
		return plugin.Errorf(plugin.CodeEffectUndeclared,
			"%s does not run dry: it does not say that all its effects go through host services; where they do, write brokered: true under operations: %s: in its manifest", r.target.Name(), op.Name)
	case r.k.Runner.Level() != caged:
		return plugin.Errorf(plugin.CodeIsolationUnavailable,
			"%s does not run dry: plugins are isolated at the level %s here, and below %s it could act without the host; 'mortise doctor' says what is missing", r.target.Name(), r.k.Runner.Level(), caged)
	}
	return nil
}

// finishDry completes the result of a dry run with what it found out; nothing
// where policy was not asked.
func (r *request) finishDry(res *plugin.Result, failure *plugin.Error) {
	if r.call.Dry == nil || r.record.Decision == nil {
		return
	}
	dry := &plugin.DryRun{Verdict: r.record.Decision.Verdict, Reasons: r.record.Decision.Reasons}
	dry.Changes, dry.LeftOut = r.call.Dry.Changes()
	if failure != nil && !r.ran {
		dry.NotRun = failure.Message
	}
	res.DryRun = dry
}
