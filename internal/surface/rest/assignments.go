package rest

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// An Assignment says whether an agent has a plugin.
type Assignment struct {
	Plugin   string    `json:"plugin"`
	Agent    string    `json:"agent" doc:"An id, or * where it is said of all agents there are and will be."`
	Versions string    `json:"versions,omitempty" doc:"A constraint; any version where it is left out."`
	Enabled  bool      `json:"enabled"`
	By       string    `json:"by"`
	At       time.Time `json:"at"`
}

// Assignments are what counts for an agent, by plugin.
type Assignments struct {
	Assignments []Assignment `json:"assignments" nullable:"false"`
}

// An AssignmentSpec is what is to be said.
type AssignmentSpec struct {
	Enabled  bool   `json:"enabled" doc:"The agent has the plugin; false takes it from it, even where all agents have it."`
	Versions string `json:"versions,omitzero" maxLength:"128" doc:"A constraint, of a plugin that is given."`
}

// An AssignmentNamed is the assignment of a plugin to an agent.
type AssignmentNamed struct {
	AgentNamed
	Plugin string `path:"plugin" maxLength:"128"`
}

func (r *registry) assignments() {
	add(r, route{method: "GET", path: "agents/{id}/assignments", id: "list-assignments", scope: host.ScopeRead, about: "What counts for an agent, of each plugin that is given to it, taken from it or given to all"}, r.listAssignments)
	add(r, route{method: "GET", path: "agents/{id}/assignments/{plugin}", id: "get-assignment", scope: host.ScopeRead, about: "Whether an agent has a plugin"}, r.getAssignment)
	add(r, route{method: "PUT", path: "agents/{id}/assignments/{plugin}", id: "put-assignment", scope: host.ScopeConfigure, about: "Give a plugin to an agent, or take it from it"}, r.putAssignment)
	add(r, route{method: "PUT", path: "assignments/{plugin}", id: "put-assignment-of-all", scope: host.ScopeConfigure, about: "Give a plugin to all agents there are and will be, or take it from them"}, r.assignAll)
}

func (r *registry) listAssignments(ctx context.Context, q *request, in *AgentNamed) (*struct{ Body Assignments }, error) {
	all, err := q.api.Agents().Assignments(ctx, in.ID)
	if err != nil {
		return nil, unlessMissing(err, "agent", in.ID)
	}
	out := &struct{ Body Assignments }{Assignments{[]Assignment{}}}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out.Body.Assignments = append(out.Body.Assignments, Assignment(all[name]))
	}
	return out, nil
}

// assignment returns what counts for an agent of a plugin.
func (q *request) assignment(agent, name string) func(ctx context.Context) (Assignment, error) {
	return func(ctx context.Context) (Assignment, error) {
		all, err := q.api.Agents().Assignments(ctx, agent)
		if err != nil {
			return Assignment{}, unlessMissing(err, "agent", agent)
		}
		a, said := all[name]
		if !said {
			return Assignment{}, missing("assignment of", name)
		}
		return Assignment(a), nil
	}
}

func (r *registry) getAssignment(ctx context.Context, q *request, in *struct {
	AssignmentNamed
	Seen
}) (*Tagged[Assignment], error) {
	a, err := q.assignment(in.ID, in.Plugin)(ctx)
	if err != nil {
		return nil, err
	}
	return tagged(q, a)
}

func (r *registry) putAssignment(ctx context.Context, q *request, in *struct {
	AssignmentNamed
	Match
	Body AssignmentSpec
}) (*Tagged[Assignment], error) {
	thing := host.Thing{Noun: host.AnAssignment, ID: in.Plugin, Of: in.ID}
	if in.ID == host.EveryAgent { // what is said of all has a path of its own
		return nil, missing("agent", in.ID)
	}
	a, err := change(ctx, q, thing, q.assignment(in.ID, in.Plugin), func(ctx context.Context) (Assignment, error) {
		return q.assign(ctx, in.Plugin, in.ID, in.Body)
	})
	if err != nil {
		return nil, err
	}
	return tagged(q, a)
}

func (r *registry) assignAll(ctx context.Context, q *request, in *struct {
	Plugin string `path:"plugin" maxLength:"128"`
	Body   AssignmentSpec
}) (*struct{ Body Assignment }, error) {
	a, err := q.assign(ctx, in.Plugin, host.EveryAgent, in.Body)
	return &struct{ Body Assignment }{a}, err
}

func (q *request) assign(ctx context.Context, name, agent string, s AssignmentSpec) (Assignment, error) {
	ref := name
	if s.Versions != "" {
		ref += "@" + s.Versions
	}
	a, err := q.api.Agents().Assign(ctx, ref, agent, s.Enabled)
	if err == nil || plugin.CodeOf(err) != plugin.CodeNotFound {
		return Assignment(a), err
	}
	if agent != host.EveryAgent { // which of both is missing is known to who may see agents
		if _, err := q.api.Agents().Get(ctx, agent); err != nil {
			return Assignment{}, unlessMissing(err, "agent", agent)
		}
	}
	return Assignment{}, missing("plugin", ref)
}
