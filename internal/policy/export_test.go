package policy

import "github.com/mortise-dev/mortise/plugin"

// AskAll decides as Ask does, but evaluates every policy of the set with the
// whole context: without the index, and without what a policy does not read.
func (e *Engine) AskAll(q *Question) plugin.Decision {
	p := e.now.Load()
	r, refused := p.request(e, q)
	if refused != "" {
		return plugin.Decision{Verdict: plugin.Deny, Policy: p.version, Reasons: []string{refused}}
	}
	all := candidates{&group{statements: p.all}}
	for _, s := range p.all {
		all[0].reads = all[0].reads.and(s.reads)
	}
	all[0].reads.context = everything
	context, err := r.context(all.reads())
	if err != nil {
		return plugin.Decision{Verdict: plugin.Deny, Policy: p.version, Reasons: []string{err.Error()}}
	}
	o := p.judge(r, all, context)
	return plugin.Decision{Verdict: o.verdict(), Policy: p.version, Reasons: o.reasons(r)}
}

// Text returns the policies in force as Cedar prints them.
func (e *Engine) Text() string {
	var text []byte
	for _, s := range e.now.Load().all {
		text = append(append(text, s.policy.MarshalCedar()...), '\n')
	}
	return string(text)
}
