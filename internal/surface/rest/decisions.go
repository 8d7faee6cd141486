package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// A DecisionQuestion is what a program asks before it runs a tool of its own.
type DecisionQuestion struct {
	Namespace  string          `json:"namespace" minLength:"1" maxLength:"63" doc:"The program that runs the tool, such as claude-code."`
	Tool       string          `json:"tool" minLength:"1" maxLength:"128" doc:"The tool, as the program calls it."`
	Definition json.RawMessage `json:"definition,omitzero" doc:"How the program describes the tool: description, input schema, annotations. A change of it takes an approval."`
	Arguments  json.RawMessage `json:"arguments,omitzero" doc:"An object; an empty one where it is left out."`
	Labels     []string        `json:"labels,omitzero" maxItems:"2" nullable:"false" enum:"untrusted,private" doc:"What the arguments are tainted with."`
	Trace      string          `json:"trace,omitzero" maxLength:"255" doc:"What the program calls the conversation that it belongs to."`
	Use        string          `json:"use,omitzero" maxLength:"255" doc:"The id of the one use of the tool that the answer is for. Of several uses that ask with one key, the first gets what is allowed, and the others are denied."`
}

// A ToolDecision is whether a tool may run. Only the word allow allows it.
type ToolDecision struct {
	ID            string             `json:"decision_id" doc:"The id of its call too."`
	Word          string             `json:"decision" enum:"allow,deny,pending"`
	Reason        string             `json:"reason,omitzero"`
	Code          plugin.Code        `json:"code,omitzero" doc:"Of a denial."`
	Operation     string             `json:"operation,omitzero" doc:"By which policies name the tool."`
	ArgumentsHash string             `json:"arguments_hash,omitzero" doc:"Of the arguments that it is about."`
	Policy        string             `json:"policy,omitzero" doc:"The version of the policies that decided."`
	Enforcement   plugin.Enforcement `json:"enforcement" enum:"reported"`
	Approval      *Pending           `json:"approval,omitzero" doc:"What a person is asked."`
	ExpiresAt     time.Time          `json:"expires_at,omitzero" doc:"When it is over: the tool has to have ended, and be settled, by then."`
	Status        plugin.Status      `json:"status,omitzero" doc:"How its call stands."`
}

// A DecisionAnswer is a decision as it is answered.
type DecisionAnswer struct {
	Status   int
	Location string `header:"Location" doc:"Where a decision that is pending is found."`
	Replayed string `header:"Idempotency-Replayed"`
	Body     ToolDecision
}

func (r *registry) decisions() {
	add(r, route{method: "POST", path: "decisions", id: "decide", scope: host.ScopeDecide, accepts: true, about: "Ask whether a tool may run that runs in another program"}, r.askDecision)
	add(r, route{method: "GET", path: "decisions/{id}", id: "get-decision", scope: host.ScopeDecide, stays: true, about: "How a decision of the caller stands"}, r.getDecision)
	add(r, route{method: "POST", path: "decisions/{id}:settle", id: "settle-decision", scope: host.ScopeDecide, about: "Say how the tool ended"}, r.settleDecision)
}

func (r *registry) askDecision(ctx context.Context, q *request, in *struct {
	Key
	Body DecisionQuestion
}) (*DecisionAnswer, error) {
	if _, err := r.preferenceOf(q.Request); err != nil {
		return nil, err
	}
	b := &in.Body
	if len(b.Arguments) > 0 && b.Arguments[0] != '{' {
		return nil, refused(0, plugin.CodeInvalidInput, "the arguments of a tool are an object", Place{Pointer: "/arguments", Detail: "it is not an object"})
	}
	d, err := q.api.Decisions().Decide(ctx, host.DecisionAsked{
		Program: b.Namespace, Tool: b.Tool, Definition: b.Definition, Arguments: b.Arguments, Key: in.Key.Key, Use: b.Use, Labels: b.Labels, Trace: b.Trace,
	})
	if err != nil {
		if plugin.CodeOf(err) == plugin.CodeKeyConflict {
			return nil, refusal(plugin.Result{}, err)
		}
		return nil, err
	}
	out := decided(d)
	if d.Replayed {
		out.Replayed = "true"
	}
	return out, nil
}

// DecisionOf is a decision as it is answered.
func DecisionOf(d host.ToolDecision) *ToolDecision { return &decided(d).Body }

// decided is the answer that a decision is.
func decided(d host.ToolDecision) *DecisionAnswer {
	out := &DecisionAnswer{Status: http.StatusOK, Body: ToolDecision{ID: d.ID, Word: d.Word, Reason: told(d.Reason), Code: d.Code, Enforcement: plugin.EnforcementReported, ExpiresAt: d.ExpiresAt}}
	if d.Row != nil {
		out.Body.Operation, out.Body.ArgumentsHash, out.Body.Policy, out.Body.Status = d.Row.Operation, d.Row.InputHash, d.Row.PolicyVersion, host.StatusOf(d.Row.State)
	}
	if a := d.Approval; a != nil {
		out.Body.Approval = &Pending{a.ID, a.Why, a.Preview, a.ExpiresAt}
	}
	if d.Word == host.DecisionPending {
		out.Status, out.Location = http.StatusAccepted, Prefix+"decisions/"+d.ID
	}
	return out
}

func (r *registry) getDecision(ctx context.Context, q *request, in *struct {
	CallNamed
	Wait string `query:"wait" maxLength:"16" doc:"How long the request stays for a decision that is pending: 30s, or a number of seconds." example:"30s"`
	Use  string `query:"use" maxLength:"255" doc:"The use that it is asked for, as in the question."`
}) (*struct{ Body ToolDecision }, error) {
	limit, err := r.waitOf(in.Wait)
	if err != nil {
		return nil, err
	}
	q.stays(limit + r.WorkTime)
	ctx, cancel := context.WithTimeout(ctx, limit+r.WorkTime)
	defer cancel()
	d, err := q.api.Decisions().Get(ctx, in.ID, in.Use, limit)
	if err != nil {
		return nil, unlessMissing(err, "decision", in.ID)
	}
	return &struct{ Body ToolDecision }{decided(d).Body}, nil
}

func (r *registry) settleDecision(ctx context.Context, q *request, in *struct {
	CallNamed
	Body struct {
		Outcome       string `json:"outcome" enum:"succeeded,failed,not_run,unknown"`
		ArgumentsHash string `json:"arguments_hash,omitzero" maxLength:"71" doc:"Of the arguments that the tool ran with. Others than those decided about are a conflict."`
		ResultHash    string `json:"result_hash,omitzero" maxLength:"128" doc:"Of what it returned."`
		Summary       string `json:"summary,omitzero" maxLength:"8192" doc:"What it returned, in short."`
	} `nameHint:"SettleDecision"`
}) (*struct{ Body Call }, error) {
	b := &in.Body
	row, err := q.api.Decisions().Settle(ctx, in.ID, host.Report{Outcome: b.Outcome, Arguments: b.ArgumentsHash, Result: b.ResultHash, Summary: b.Summary})
	if plugin.CodeOf(err) == plugin.CodeConflict {
		return nil, refused(http.StatusConflict, plugin.CodeConflict, plugin.AsError(err).Message)
	}
	if err != nil {
		return nil, unlessMissing(err, "decision", in.ID)
	}
	return &struct{ Body Call }{callOf(row)}, nil
}
