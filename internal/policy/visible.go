package policy

import "github.com/mortise-dev/mortise/plugin"

// Visible returns the operations of a plugin that somebody may know of: those
// they may list or execute, or all where they may configure the plugin. whole
// reports the latter. It is asked without arguments, so that whoever may
// execute something with certain arguments only sees it where a policy lets
// them list it.
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
