package rest

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// A Recovery says whether the host is in recovery, in which nothing with effects runs, and
// what would go on by itself once it is not.
type Recovery struct {
	Recovery *RecoveryWhy `json:"recovery,omitzero" doc:"Left out where it is in none."`
	Queued   int          `json:"queued_calls"`
	Pending  int          `json:"pending_calls" doc:"They wait for approval."`
	Unknown  int          `json:"unknown_calls"`
	Plans    int          `json:"plans" doc:"That have not ended."`
	Feeds    int          `json:"feeds" doc:"That are not paused."`
}

// A RecoveryWhy is why the host is, or was, in recovery.
type RecoveryWhy struct {
	Since   time.Time       `json:"since" doc:"Of which time the copy is, or when it was noticed."`
	Why     string          `json:"why,omitzero" doc:"For who may end the recovery."`
	Anchors json.RawMessage `json:"anchors,omitzero" doc:"Heads of the ledger that were remembered, and that its chains do not pass through."`
}

func whyOf(r *host.Recovery) (*RecoveryWhy, error) {
	why := &RecoveryWhy{Since: r.Since, Why: r.Why}
	if len(r.Anchors) == 0 {
		return why, nil
	}
	var err error
	why.Anchors, err = json.Marshal(r.Anchors)
	return why, err
}

func (r *registry) recovery() {
	add(r, route{method: "GET", path: "recovery", id: "get-recovery", scope: host.ScopeRead, about: "Whether the host is in recovery"}, r.getRecovery)
	add(r, route{method: "POST", path: "recovery:confirm", id: "confirm-recovery", scope: host.ScopeAdmin, about: "End the recovery: calls with effects run again"}, r.confirmRecovery)
}

func (r *registry) getRecovery(ctx context.Context, q *request, _ *struct{}) (*struct{ Body Recovery }, error) {
	s, err := q.api.Admin().Recovery(ctx)
	if err != nil {
		return nil, err
	}
	out := &struct{ Body Recovery }{Recovery{Queued: s.Queued, Pending: s.Pending, Unknown: s.Unknown, Plans: s.Plans, Feeds: s.Feeds}}
	if s.Recovery != nil {
		out.Body.Recovery, err = whyOf(s.Recovery)
	}
	return out, err
}

func (r *registry) confirmRecovery(ctx context.Context, q *request, in *struct {
	Body struct {
		Reason string `json:"reason" minLength:"1" maxLength:"2000" doc:"How it is known what was done since the backup, for the record."`
	} `nameHint:"ConfirmRecovery"`
}) (*struct{ Body RecoveryWhy }, error) {
	ended, err := q.api.Admin().ConfirmRecovery(ctx, in.Body.Reason)
	if plugin.CodeOf(err) == plugin.CodeNotFound {
		err = refused(0, plugin.CodeNotFound, "this host is not in recovery")
	}
	if err != nil {
		return nil, err
	}
	why, err := whyOf(&ended)
	return &struct{ Body RecoveryWhy }{*why}, err
}
