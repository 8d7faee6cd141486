package rest

import (
	"context"
	"encoding/json"

	"github.com/mortise-dev/mortise/internal/host"
)

// mostExcluded is how many of the operations that do not fit are named.
const mostExcluded = 50

// A RouteSpec is a request for which operations are to be chosen.
type RouteSpec struct {
	Text    string          `json:"text" maxLength:"32768" doc:"In the words of who asks."`
	Pillar  string          `json:"pillar,omitzero" maxLength:"128" doc:"The field that it is in, where that is known."`
	Session string          `json:"session,omitzero" maxLength:"64" doc:"Whose artifacts are at hand, but for those that tools made."`
	Last    string          `json:"last,omitzero" maxLength:"256" doc:"The plugin, or plugin/operation, that ran last."`
	Files   []RouteArtifact `json:"artifacts,omitzero" maxItems:"1000" nullable:"false" doc:"What is at hand beside that."`
	Hidden  bool            `json:"hidden,omitzero" doc:"What is experimental or deprecated counts too."`
	Of      string          `json:"session_pillar,omitzero" maxLength:"128" doc:"The field that the session is in, where the session itself is not named."`
	Full    bool            `json:"full,omitzero" doc:"Answer with all of it, in the member answer: for a token that is for all operations."`
}

// A RouteArtifact is something that is at hand.
type RouteArtifact struct {
	ID   string `json:"id,omitzero" maxLength:"64" doc:"Of an artifact of a session."`
	Type string `json:"type" maxLength:"64"`
	Name string `json:"name,omitzero" maxLength:"255"`
}

// A Route is what was chosen.
type Route struct {
	Pillar   string           `json:"pillar"`
	Why      string           `json:"pillar_reason"`
	Facets   []string         `json:"facets" nullable:"false" doc:"What the request is about."`
	Included []RouteChoice    `json:"included" nullable:"false" doc:"The best first."`
	Excluded []RouteExclusion `json:"excluded" nullable:"false" doc:"The best 50 of the others."`
	Answer   json.RawMessage  `json:"answer,omitzero" doc:"All of it, with what speaks for each, where the request asks for it with full."`
}

// A RouteChoice is an operation that fits.
type RouteChoice struct {
	Operation string   `json:"operation"`
	Version   string   `json:"version"`
	Score     float64  `json:"score"`
	Reasons   []string `json:"reasons" nullable:"false"`
}

// A RouteExclusion is an operation that was left out.
type RouteExclusion struct {
	Operation string `json:"operation"`
	Version   string `json:"version"`
	Reason    string `json:"reason"`
}

func (r *registry) choosing() {
	add(r, route{method: "POST", path: "operations:route", id: "route-request", scope: host.ScopeRead, about: "Choose among the operations that the caller may know of, for a request; nothing is called"}, r.choose)
}

func (r *registry) choose(ctx context.Context, q *request, in *struct{ Body RouteSpec }) (*struct{ Body Route }, error) {
	s := in.Body
	query := host.RouteQuery{Text: s.Text, Pillar: s.Pillar, Session: s.Of, Hidden: s.Hidden}
	if s.Session != "" {
		session, err := q.session(ctx, s.Session)
		if err != nil {
			return nil, err
		}
		list, err := q.api.Sessions().AtHand(ctx, &query, session.ID)
		if err != nil {
			return nil, err
		}
		for _, a := range list {
			if a.SourceTool == "" { // what tools made says what was done, not what is asked
				query.Artifacts = append(query.Artifacts, host.RouteArtifact{ID: a.ID, Type: a.Type, Name: a.Name})
			}
		}
	}
	if s.Last != "" {
		query.Last = s.Last
	}
	for _, a := range s.Files {
		query.Artifacts = append(query.Artifacts, host.RouteArtifact{ID: a.ID, Type: a.Type, Name: a.Name})
	}
	answer, err := q.api.Plugins().Route(ctx, query)
	if err != nil {
		return nil, err
	}
	out := &struct{ Body Route }{Route{answer.Pillar, answer.PillarReason, append([]string{}, answer.Facets...), []RouteChoice{}, []RouteExclusion{}, nil}}
	if s.Full && len(q.caller.Operations) == 0 {
		if out.Body.Answer, err = json.Marshal(answer); err != nil {
			return nil, err
		}
	}
	for _, c := range answer.Included {
		if !q.caller.Covers(c.Operation) {
			continue
		}
		choice := RouteChoice{c.Operation, c.Version, c.Score, []string{}}
		for _, mark := range c.Reasons {
			choice.Reasons = append(choice.Reasons, mark.Why)
		}
		out.Body.Included = append(out.Body.Included, choice)
	}
	for _, e := range answer.Excluded {
		if q.caller.Covers(e.Operation) && len(out.Body.Excluded) < mostExcluded {
			out.Body.Excluded = append(out.Body.Excluded, RouteExclusion{e.Operation, e.Version, e.Reason})
		}
	}
	return out, nil
}
