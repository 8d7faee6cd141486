package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// A Call is a call as it is kept: one with effects, a key or an approval, or one that was
// put on record before it ran.
type Call struct {
	ID         string        `json:"call_id"`
	Operation  string        `json:"operation"`
	Version    string        `json:"version"`
	Status     plugin.Status `json:"status" enum:"succeeded,failed,unknown,in_progress,pending_approval"`
	Code       string        `json:"code,omitzero" doc:"Of its error."`
	Attempt    int64         `json:"attempt"`
	Principal  string        `json:"principal"`
	Actor      string        `json:"actor,omitzero"`
	Origin     string        `json:"origin"`
	Key        string        `json:"key,omitzero" doc:"Its caller's own."`
	Parent     string        `json:"parent,omitzero"`
	Plan       string        `json:"plan,omitzero"`
	Session    string        `json:"session,omitzero"`
	Labels     []string      `json:"labels" nullable:"false"`
	Digest     string        `json:"package_digest"`
	InputHash  string        `json:"input_hash"`
	ResultHash string        `json:"result_hash,omitzero"`
	Cancelled  bool          `json:"cancelled" doc:"It was told to stop."`
	CreatedAt  time.Time     `json:"created_at"`
	UpdatedAt  time.Time     `json:"updated_at"`
	State      string        `json:"state" doc:"As it is kept: what is in progress is queued, running or in_progress." enum:"pending_approval,queued,running,in_progress,succeeded,failed,unknown"`
	Node       string        `json:"node,omitzero" doc:"Whose attempt it is."`
	WakeAt     time.Time     `json:"wake_at,omitzero" doc:"When it is looked at next."`
}

// Calls are a page of them.
type Calls struct {
	Calls []Call `json:"calls" nullable:"false"`
	Next  string `json:"next_page_token" doc:"Empty on the last page."`
}

// An Effect is one effect in the journal of a call.
type Effect struct {
	N           int64     `json:"n"`
	Attempt     int64     `json:"attempt"`
	Method      string    `json:"method"`
	Effect      string    `json:"effect"`
	Class       string    `json:"class" enum:"external,local"`
	State       string    `json:"state"`
	RequestHash string    `json:"request_hash"`
	ProviderKey string    `json:"provider_key,omitzero" doc:"The idempotency key that the other side was sent."`
	At          time.Time `json:"at"`
}

// A CallShown is a call with how it ended or stands, and its journal.
type CallShown struct {
	Call
	Outcome     Outcome            `json:"outcome"`
	Enforcement plugin.Enforcement `json:"enforcement,omitzero" doc:"What held the call to its decision: structural, network, reported or none."`
	Approval    string             `json:"approval,omitzero" doc:"The id of the approval that was asked for."`
	Asked       string             `json:"approval_state,omitzero" doc:"How that stands."`
	Effects     []Effect           `json:"effects" nullable:"false"`

	Entries []plugin.Entry  `json:"entries,omitzero" doc:"What the ledger has of it, where the request asks for entries."`
	Input   json.RawMessage `json:"input,omitzero" doc:"What it was made with, where the request asks for it and it is kept: secrets by their names."`
}

// A CallNamed is a call that is meant.
type CallNamed struct {
	ID string `path:"id" maxLength:"64"`
}

func callOf(row *host.CallRow) Call {
	key, own := strings.CutPrefix(row.Key, "k:")
	if !own {
		key = ""
	}
	return Call{
		ID: row.ID, Operation: row.Operation, Version: row.Version, Status: host.StatusOf(row.State), Code: row.Code, Attempt: row.Attempt,
		Principal: row.Principal, Actor: row.Actor, Origin: row.Origin, Key: key, Parent: row.Parent, Plan: row.Plan, Session: row.Session,
		Labels: append([]string{}, row.Labels...), Digest: row.PackageDigest, InputHash: row.InputHash, ResultHash: row.ResultHash, Cancelled: row.Cancelled,
		CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt, State: string(row.State), Node: row.Node, WakeAt: row.WakeAt,
	}
}

func (r *registry) calls() {
	add(r, route{method: "GET", path: "calls", id: "list-calls", scope: host.ScopeRead, about: "The calls that the caller made or may see, the newest first"}, r.listCalls)
	add(r, route{method: "GET", path: "calls/{id}", id: "get-call", scope: host.ScopeRead, stays: true, about: "A call, and how it ended or stands"}, r.getCall)
	add(r, route{method: "POST", path: "calls/{id}:cancel", id: "cancel-call", scope: host.ScopeRun, about: "Stop a call: one that waits fails at once, one that runs is told"}, r.cancelCall)
	add(r, route{method: "POST", path: "calls/{id}:settle", id: "settle-call", scope: host.ScopeRun, about: "Record the outcome of a call whose result is unknown, in the name of the caller"}, r.settleCall)
}

func (r *registry) listCalls(ctx context.Context, q *request, in *struct {
	Page
	State     string `query:"state" enum:"pending_approval,in_progress,succeeded,failed,unknown"`
	Operation string `query:"operation" maxLength:"256" doc:"plugin/operation"`
	Plan      string `query:"plan" maxLength:"64" doc:"Only the steps of this plan."`
	Decisions bool   `query:"decisions" doc:"Only decisions about tools that other programs run."`
}) (*struct{ Body Calls }, error) {
	filters := []string{"calls", in.State, in.Operation, in.Plan, strconv.FormatBool(in.Decisions)}
	last, err := in.after(filters...)
	if err != nil {
		return nil, err
	}
	f := host.CallFilter{Operation: in.Operation, Plan: in.Plan, Decisions: in.Decisions, Before: last, Limit: in.size() + 1}
	var rows []host.CallRow
	var rest string
	if in.State != "" {
		rows, rest, err = q.api.Calls().PageIn(ctx, f, plugin.Status(in.State))
	} else {
		rows, rest, err = q.api.Calls().Page(ctx, f)
	}
	if err != nil {
		return nil, err
	}
	out := &struct{ Body Calls }{Calls{Calls: []Call{}}}
	rows, out.Body.Next = cut(rows, in.size(), rest, func(row *host.CallRow) string { return row.ID }, filters...)
	for i := range rows {
		out.Body.Calls = append(out.Body.Calls, callOf(&rows[i]))
	}
	return out, nil
}

func (r *registry) getCall(ctx context.Context, q *request, in *struct {
	CallNamed
	Short
	Full    bool   `query:"full" doc:"With the whole result in outcome.result."`
	Entries bool   `query:"entries" doc:"With the entries of the ledger about it."`
	Input   bool   `query:"input" doc:"With the input that it was made with."`
	Wait    string `query:"wait" maxLength:"16" doc:"How long the request stays for a call that has not ended: 30s, or a number of seconds." example:"30s"`
}) (*struct{ Body CallShown }, error) {
	limit, err := r.waitOf(in.Wait)
	if err != nil {
		return nil, err
	}
	row, err := r.callNamed(ctx, q, in.ID, in.Short.Short)
	if err != nil {
		return nil, err
	}
	in.ID = row.ID
	var res plugin.Result
	q.stays(limit + r.WorkTime)
	switch {
	case row.State.Ended():
		res, err = r.await(ctx, q, in.ID, r.WorkTime)
	case limit > 0:
		res, err = r.await(ctx, q, in.ID, limit)
	default:
		res, err = q.api.Calls().Standing(ctx, in.ID)
	}
	if err != nil && res.CallID == "" {
		return nil, unlessMissing(err, "call", in.ID)
	}
	outcome := outcomeOf(res, err, false)
	if in.Full {
		outcome.whole(res, err)
	}
	shown, err := q.api.Calls().Show(ctx, in.ID)
	if err != nil {
		return nil, unlessMissing(err, "call", in.ID)
	}
	out := &struct{ Body CallShown }{CallShown{Call: callOf(shown.CallRow), Outcome: outcome, Effects: []Effect{}, Enforcement: shown.Enforcement()}}
	if shown.Approval != nil {
		out.Body.Approval, out.Body.Asked = shown.Approval.ID, string(shown.Approval.State)
	}
	if in.Entries {
		out.Body.Entries = shown.Entries
	}
	if in.Input {
		if out.Body.Input, err = q.api.Calls().Input(ctx, in.ID); err != nil {
			return nil, unlessMissing(err, "call", in.ID)
		}
	}
	for _, e := range shown.Effects {
		out.Body.Effects = append(out.Body.Effects, Effect{e.N, e.Attempt, e.Method, e.Effect, e.Class, string(e.State), e.RequestHash, e.ProviderKey, e.At})
	}
	return out, nil
}

// call returns the row of a call that the caller may see.
func (r *registry) call(ctx context.Context, q *request, id string) (*host.CallRow, error) {
	row, err := q.api.Calls().Get(ctx, id, "see")
	if err == nil && row == nil {
		err = missing("call", id)
	}
	return row, unlessMissing(err, "call", id)
}

// callNamed is call, for an id that may be cut short.
func (r *registry) callNamed(ctx context.Context, q *request, id string, short bool) (*host.CallRow, error) {
	if !short {
		return r.call(ctx, q, id)
	}
	return q.api.Calls().Find(ctx, id, "see")
}

// waitOf reads how long a request is to stay, up to the longest that it may.
func (s *server) waitOf(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if n, numeric := strconv.ParseUint(text, 10, 31); numeric == nil {
		d, err = time.Duration(n)*time.Second, nil
	}
	if err != nil || d < 0 {
		return 0, refused(0, plugin.CodeInvalidInput, "how long the request is to stay is not a time", Place{Pointer: "wait", Detail: "it is not a time such as 30s"})
	}
	return min(d, s.MaxWait), nil
}

func (r *registry) cancelCall(ctx context.Context, q *request, in *struct {
	CallNamed
	Body *struct {
		Reason string `json:"reason,omitzero" maxLength:"2000" doc:"Why, for the record."`
	} `nameHint:"CancelCall"`
}) (*struct{ Body Call }, error) {
	reason := ""
	if in.Body != nil {
		reason = in.Body.Reason
	}
	row, err := q.api.Calls().Cancel(ctx, in.ID, reason)
	switch plugin.CodeOf(err) {
	case "":
		return &struct{ Body Call }{callOf(row)}, nil
	case plugin.CodeInvalidInput: // it has ended
		return nil, refused(http.StatusConflict, plugin.CodeInvalidInput, plugin.AsError(err).Message)
	}
	return nil, unlessMissing(err, "call", in.ID)
}

// settled are the states that a person can record.
var settled = map[string]host.CallState{"succeeded": host.CallSucceeded, "failed": host.CallFailed, "not_done": host.CallQueued}

func (r *registry) settleCall(ctx context.Context, q *request, in *struct {
	CallNamed
	Body struct {
		Outcome  string          `json:"outcome" enum:"succeeded,failed,not_done,ask" doc:"A call that was not done may be run again; ask has its operator find out."`
		Data     json.RawMessage `json:"data,omitzero" doc:"What it would have answered, where it succeeded."`
		Reason   string          `json:"reason,omitzero" maxLength:"2000" doc:"What is known, and from where; needed but with ask."`
		Evidence json.RawMessage `json:"evidence,omitzero" doc:"What shows it, for the record."`
	} `nameHint:"SettleCall"`
}) (*struct{ Body Call }, error) {
	if len(in.Body.Data) > 0 && in.Body.Outcome != "succeeded" {
		return nil, refused(0, plugin.CodeInvalidInput, "data is the answer of a call that succeeded", Place{Pointer: "/data", Detail: "it is of a call that succeeded alone"})
	}
	if !q.caller.Owns { // what a token does not show is not there for it
		if _, err := r.call(ctx, q, in.ID); err != nil {
			return nil, err
		}
	}
	if in.Body.Outcome == "ask" {
		row, err := q.api.Calls().Reconcile(ctx, in.ID)
		if err != nil {
			return nil, unlessMissing(err, "call", in.ID)
		}
		return &struct{ Body Call }{callOf(row)}, nil
	}
	if in.Body.Reason == "" {
		return nil, refused(0, plugin.CodeInvalidInput, "the record needs a reason", Place{Pointer: "/reason", Detail: "it is missing"})
	}
	row, err := q.api.Calls().Settle(ctx, in.ID, host.Settlement{
		State: settled[in.Body.Outcome], Data: in.Body.Data, Reason: in.Body.Reason, Evidence: in.Body.Evidence,
	})
	if err != nil {
		return nil, unlessMissing(err, "call", in.ID)
	}
	return &struct{ Body Call }{callOf(row)}, nil
}
