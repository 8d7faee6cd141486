package rest

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
)

// A RetentionState is what a period removes of one kind of data.
type RetentionState struct {
	Kind   string    `json:"kind" enum:"bodies,calls,sessions,conversations,deliveries,cache,packages"`
	Days   float64   `json:"days" doc:"The period; 0 keeps all."`
	Count  int64     `json:"count" doc:"How many are older."`
	Bytes  int64     `json:"bytes" doc:"Of their contents."`
	Oldest time.Time `json:"oldest,omitzero"`
	Done   int64     `json:"removed,omitzero" doc:"How many were removed."`
}

// An Erasure is the removal of what is kept of a person.
type Erasure struct {
	ID        string           `json:"id,omitzero"`
	Principal string           `json:"principal"`
	By        string           `json:"by"`
	AskedAt   time.Time        `json:"asked_at,omitzero"`
	DoneAt    time.Time        `json:"done_at,omitzero" doc:"Left out while it goes on."`
	Counts    map[string]int64 `json:"counts" nullable:"false" doc:"What was removed so far, by kind."`
	Waiting   int64            `json:"waiting,omitzero" doc:"Calls and plans of theirs that have not ended."`
	DryRun    bool             `json:"dry_run,omitzero"`
}

type retentionStates struct {
	Body struct {
		Periods []RetentionState `json:"periods" nullable:"false"`
	} `nameHint:"Retention"`
}

func statesOf(states []host.RetentionState) *retentionStates {
	out := &retentionStates{}
	out.Body.Periods = []RetentionState{}
	for _, s := range states {
		out.Body.Periods = append(out.Body.Periods, RetentionState{s.Kind, s.Days, s.Count, s.Bytes, s.Oldest, s.Done})
	}
	return out
}

func (r *registry) retention() {
	add(r, route{method: "GET", path: "retention", id: "get-retention", scope: host.ScopeAdmin, about: "What the periods of retention would remove now"}, r.getRetention)
	add(r, route{method: "POST", path: "retention:apply", id: "apply-retention", scope: host.ScopeAdmin, about: "Remove what is older than its period"}, r.applyRetention)
	add(r, route{method: "GET", path: "erasures", id: "list-erasures", scope: host.ScopeAdmin, about: "The erasures of what was kept of people"}, r.listErasures)
	add(r, route{method: "POST", path: "erasures", id: "erase", scope: host.ScopeAdmin, about: "Erase what is kept of a person; it goes on until it is done"}, r.erase)
}

func (r *registry) getRetention(ctx context.Context, q *request, _ *struct{}) (*retentionStates, error) {
	states, err := q.api.Admin().Retention(ctx)
	return statesOf(states), err
}

func (r *registry) applyRetention(ctx context.Context, q *request, _ *struct{}) (*retentionStates, error) {
	states, err := q.api.Admin().ApplyRetention(ctx)
	return statesOf(states), err
}

func (r *registry) listErasures(ctx context.Context, q *request, _ *struct{}) (*struct {
	Body struct {
		Erasures []Erasure `json:"erasures" nullable:"false"`
	} `nameHint:"Erasures"`
}, error) {
	all, err := q.api.Admin().Erasures(ctx)
	out := &struct {
		Body struct {
			Erasures []Erasure `json:"erasures" nullable:"false"`
		} `nameHint:"Erasures"`
	}{}
	out.Body.Erasures = []Erasure{}
	for _, e := range all {
		out.Body.Erasures = append(out.Body.Erasures, Erasure(e))
	}
	return out, err
}

func (r *registry) erase(ctx context.Context, q *request, in *struct {
	Body struct {
		Principal string `json:"principal" minLength:"1" maxLength:"512" doc:"As the ledger names it: ada, service::robot."`
		DryRun    bool   `json:"dry_run,omitzero" doc:"Say what would be removed, and remove nothing."`
	} `nameHint:"Erase"`
}) (*struct{ Body Erasure }, error) {
	e, err := q.api.Admin().Erase(ctx, in.Body.Principal, in.Body.DryRun)
	return &struct{ Body Erasure }{Erasure(e)}, err
}
