package policy

import "github.com/mortise-dev/mortise/plugin"

// Visible returns the operations of a plugin that the caller may see: those it may list
// or execute, or all if it may configure the plugin. whole reports the latter. The
// question carries no arguments, so a caller that may execute an operation only with
// certain arguments sees it only if a policy lets it list the operation.
func (e *Engine) Visible(m *plugin.Manifest, call *plugin.Call) (operations []*plugin.Operation, whole bool) {
	bare := *call
	bare.Input = nil
	whole = e.May(Configure, &plugin.Target{Manifest: m}, &bare).Verdict == plugin.Allow
	for _, op := range m.Operations {
		t := &plugin.Target{Manifest: m, Operation: op}
		if whole || e.May(List, t, &bare).Verdict != plugin.Deny || e.May(Execute, t, &bare).Verdict != plugin.Deny {
			operations = append(operations, op)
		}
	}
	return operations, whole
}

// Runnable returns the verdict on a call of an operation whose arguments are not known yet.
// Deny with some is the verdict of a caller who may list the operation, where a policy that
// concerns it reads the arguments: some may be allowed.
func (e *Engine) Runnable(t *plugin.Target, call *plugin.Call) (v plugin.Verdict, some bool) {
	bare := *call
	bare.Input = nil
	if v = e.May(Execute, t, &bare).Verdict; v != plugin.Deny {
		return v, true
	}
	if e.May(List, t, &bare).Verdict == plugin.Deny { // what the caller may not know of is not told by this either
		return v, false
	}
	p := e.now.Load()
	r, refused := p.request(e, &Question{Action: Execute, Target: t, Call: &bare})
	return v, refused == "" && p.candidates(r).reads().context&inputMember != 0
}
