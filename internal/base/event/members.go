package event

import "iter"

// Members yields the name and the value, as it is written, of each top-level
// member in the order of the text.
func (p *Payload) Members() iter.Seq2[string, string] {
	return func(yield func(name, raw string) bool) {
		members := p.index()
		for i := range members {
			if !yield(members[i].name, p.text[members[i].value:members[i].end]) {
				return
			}
		}
	}
}
