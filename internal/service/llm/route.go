package llm

import (
	"fmt"
	"slices"
)

// longAnswer is how many tokens make an answer one for the heavy tier, where
// the plugin does not say what kind of query it is.
const longAnswer = 3500

// tier returns the tier that a query is for.
func (q *Query) tier() Tier {
	switch {
	case q.Hints == nil && q.MaxTokens > longAnswer, q.Hints != nil && (q.Hints.Tier == Heavy || q.Hints.NeedsReasoning):
		return Heavy
	}
	return Light
}

// A route is the models that can take a query, best first, and why it is not
// as was wished.
type route struct {
	models   []*Model
	fallback string
}

// route finds the models for a query: those of its tier, then those of the
// other one, which stands in where the first lacks what is needed or has used up
// its quota. What cannot be taken at all is a gap. talk is whether it goes on
// with a conversation.
func (d *Dispatcher) route(q *Query, talk bool) (route, *Error) {
	if len(d.models) == 0 {
		return route{}, noModel()
	}
	wanted := q.tier()
	all := slices.Concat(d.of(wanted), d.of(wanted.other()))
	var r route
	switch {
	case talk:
		r.models = filter(all, func(m *Model) bool { _, able := m.Asks.(Converser); return able })
		if len(r.models) == 0 {
			return r, errorf(Gap, "no configured model holds conversations with tools; name one of openai, anthropic or gemini under models in mortise.yaml")
		}
	case q.Image != nil:
		r.models = filter(all, func(m *Model) bool { return m.Vision })
		if len(r.models) == 0 {
			return r, errorf(Gap, "no configured model has vision, which an image needs")
		}
	case q.Document != nil:
		readers := filter(all, func(m *Model) bool { return m.Reads(q.Document.MIME) })
		if len(readers) == 0 {
			return r, errorf(Gap, "no configured model reads %s natively; extract the text and ask about that", q.Document.MIME)
		}
		r.models = filter(readers, func(m *Model) bool { return m.path(q.Document) != PathNone })
		if len(r.models) == 0 {
			return r, errorf(Gap, "the document has %d bytes, and no model that reads %s takes so many at once; extract the text and ask about that",
				q.Document.Size, q.Document.MIME)
		}
	default:
		r.models = all
	}
	if q.Hints != nil && q.Hints.StructuredOutput {
		// Those with a JSON mode come first within their tier: a hint about the form
		// of the answer changes no tier.
		slices.SortStableFunc(r.models, func(a, b *Model) int {
			rank := func(m *Model) int {
				switch {
				case m.Tier != wanted:
					return 2
				case !m.JSON:
					return 1
				}
				return 0
			}
			return rank(a) - rank(b)
		})
		if !r.models[0].JSON {
			r.fallback = "no model for this query has a JSON mode"
		}
	}
	if first := r.models[0]; first.Tier != wanted && r.fallback == "" {
		r.fallback = fmt.Sprintf("no model of the %s tier can take this query", wanted)
	}
	return r, nil
}

func noModel() *Error {
	return errorf(NotConfigured, "no model is configured; an administrator names them under models in mortise.yaml")
}

// of returns the models of a tier, in the order of the configuration.
func (d *Dispatcher) of(t Tier) []*Model {
	return filter(d.models, func(m *Model) bool { return m.Tier == t })
}

func filter(models []*Model, keep func(*Model) bool) []*Model {
	var kept []*Model
	for _, m := range models {
		if keep(m) {
			kept = append(kept, m)
		}
	}
	return kept
}
