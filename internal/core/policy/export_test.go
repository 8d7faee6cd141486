package policy

import "github.com/mortise-dev/mortise/plugin"

// AskAll decides as Ask does, but evaluates every policy of the set with the
// whole context: without the index, and without what a policy does not read.
func (e *Engine) AskAll(q *Question) plugin.Decision {
	p := e.now.Load()
	d := p.askAll(e, q)
	if acting := e.acting(q); acting != nil {
		d = stricter(judged{q, d}, judged{acting, p.askAll(e, acting)})
	}
	return d
}

func (p *policies) askAll(e *Engine, q *Question) plugin.Decision {
	r, refused := p.request(e, q)
	if refused != "" {
		return p.refuse(refused)
	}
	all := candidates{&group{statements: p.all}}
	for _, s := range p.all {
		all[0].reads = all[0].reads.and(s.reads)
	}
	all[0].reads.context = everything
	return p.decide(r, all)
}

// Text returns the policies in force as Cedar prints them.
func (e *Engine) Text() string {
	var text []byte
	for _, s := range e.now.Load().all {
		text = append(append(text, s.policy.MarshalCedar()...), '\n')
	}
	return string(text)
}
