// Package router chooses the few operations that fit a request, and says why.
//
// From the text of a request, the artifacts at hand and what was chosen before
// it derives a pillar and facets by fixed rules, gives each candidate points,
// and returns at most five of them in order. What it leaves out comes back too,
// each with the reason, and so do the chains that lead on from what it chose.
//
// A route is a function of its arguments: no clock, no store, no model. The same query
// over the same candidates, in whatever order, gives the same answer. The caller
// decides which operations a principal may see: the candidates are those.
//
//	answer := router.Route(router.Query{Text: "who talked to 10.0.0.7?", Artifacts: loaded}, candidates)
package router

import (
	"cmp"
	"slices"

	"github.com/mortise-dev/mortise/plugin"
)

// Most is how many operations a route has at most.
const Most = 5

// A Query is a request with what is known around it.
type Query struct {
	Text      string     // the query; read up to [MaxText]
	Pillar    string     // chosen in so many words; "" leaves it to the rest
	Session   string     // the pillar that the session has; "" has none
	Artifacts []Artifact // what is at hand
	Last      string     // the plugin, or plugin/operation, that ran last; "" for none
	Model     bool       // a model is connected
	Hidden    bool       // what is experimental or deprecated counts too
}

// An Artifact is one that is at hand.
type Artifact struct {
	ID   string `json:"id,omitempty"` // "" for a file that is in no session
	Type string `json:"type"`
	Name string `json:"name,omitempty"`
}

// A Candidate is one operation that could be chosen.
type Candidate struct {
	Manifest  *plugin.Manifest
	Operation *plugin.Operation
}

// Name returns plugin/operation.
func (c Candidate) Name() string { return c.Manifest.Name + "/" + c.Operation.Name }

// An Answer is a route.
type Answer struct {
	Pillar       string      `json:"pillar"`
	PillarReason string      `json:"pillar_reason"`
	Facets       []string    `json:"facets"`   // what the request is about, sorted
	Included     []Choice    `json:"included"` // at most [Most], the best first
	Excluded     []Exclusion `json:"excluded"` // all others, the best first
	Chains       []Chain     `json:"chains"`   // at most [MostChains]
	Cut          bool        `json:"text_cut,omitzero"`
}

// A Choice is an operation that fits. Its score is the sum of its marks.
type Choice struct {
	Operation string   `json:"operation"` // plugin/operation
	Version   string   `json:"version"`
	Score     float64  `json:"score"`
	Reasons   []Mark   `json:"reasons"`
	Notes     []string `json:"notes,omitempty"` // why it would have been left out, had it not been named
}

// A Mark is what speaks for an operation.
type Mark struct {
	Points float64 `json:"points"`
	Why    string  `json:"why"`
}

// An Exclusion is an operation that was left out.
type Exclusion struct {
	Operation string  `json:"operation"`
	Version   string  `json:"version"`
	Score     float64 `json:"score"`
	Reason    string  `json:"reason"`
}

// Route chooses among the candidates.
func Route(q Query, candidates []Candidate) Answer {
	r := read(q, candidates)
	var in, out []*scored
	for _, c := range candidates {
		s := r.score(c)
		if s.obstacle != "" && !s.named {
			out = append(out, s)
		} else {
			in = append(in, s)
		}
	}
	slices.SortFunc(in, better)
	for _, s := range in[min(Most, len(in)):] {
		s.obstacle = "five others fit better"
		out = append(out, s)
	}
	in = in[:min(Most, len(in))]
	slices.SortFunc(out, better)

	a := Answer{Pillar: r.pillar, PillarReason: r.why, Facets: r.facets, Cut: r.cut, Included: []Choice{}, Excluded: []Exclusion{}}
	for _, s := range in {
		choice := Choice{Operation: s.Name(), Version: s.Manifest.Version, Score: s.points, Reasons: s.marks}
		if s.obstacle != "" {
			choice.Notes = []string{"it was named, but " + s.obstacle}
		}
		a.Included = append(a.Included, choice)
	}
	for _, s := range out {
		a.Excluded = append(a.Excluded, Exclusion{s.Name(), s.Manifest.Version, s.points, s.obstacle})
	}
	a.Chains = r.chains(in, candidates)
	return a
}

// better puts what was named before all else, then more points, then the name.
func better(a, b *scored) int {
	if a.named != b.named {
		if a.named {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(b.points, a.points), cmp.Compare(a.Name(), b.Name()), cmp.Compare(a.Manifest.Version, b.Manifest.Version))
}
