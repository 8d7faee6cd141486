package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// An Outcome is how a call ended, or how it stands.
type Outcome struct {
	CallID      string          `json:"call_id"`
	Operation   string          `json:"operation" doc:"plugin/operation"`
	Version     string          `json:"version,omitzero" doc:"Of the plugin."`
	Status      plugin.Status   `json:"status" enum:"succeeded,failed,unknown,in_progress,pending_approval"`
	Data        json.RawMessage `json:"data,omitzero" doc:"What the operation answered, by its output schema."`
	Error       *Failure        `json:"error,omitzero" doc:"Why the call failed, or why its outcome is unknown."`
	Approval    *Pending        `json:"approval,omitzero" doc:"What the call waits for."`
	Artifacts   []Made          `json:"artifacts,omitzero"`
	Metrics     plugin.Metrics  `json:"metrics,omitzero"`
	Summary     string          `json:"summary,omitzero"`
	Message     string          `json:"message,omitzero"`
	Details     json.RawMessage `json:"details,omitzero"`
	Diagnostics json.RawMessage `json:"diagnostics,omitzero" doc:"Only where the input asks for them."`
	Skips       json.RawMessage `json:"skips,omitzero"`
	Citations   json.RawMessage `json:"citations,omitzero"`
	NextCursor  json.RawMessage `json:"next_cursor,omitzero"`
	Labels      []string        `json:"labels,omitzero" doc:"What the data, the error or the preview is tainted with."`
	Cached      bool            `json:"cached,omitzero" doc:"It is an earlier answer of the same tool to the same input."`
	DryRun      *DryRun         `json:"dry_run,omitzero" doc:"What a dry run found out; nothing of it has happened."`
	Result      json.RawMessage `json:"result,omitzero" doc:"The whole result as the host has it, where the request asks for it with full."`
}

// A Made is a file that a call made. One that is in the session has an id.
type Made struct {
	ID   string `json:"id,omitzero"`
	Type string `json:"type"`
	Name string `json:"name,omitzero"`
	Hash string `json:"hash,omitzero"`
	Size int64  `json:"size,omitzero"`
}

// A Failure is why a call failed: its plugin's words, or what the host says of its plugin.
type Failure struct {
	Code       plugin.Code     `json:"code"`
	PluginCode string          `json:"plugin_code,omitzero" doc:"The plugin's own code."`
	Message    string          `json:"message"`
	Details    json.RawMessage `json:"details,omitzero"`
	Retryable  bool            `json:"retryable" doc:"The same call may succeed later."`
	RetryAfter int64           `json:"retry_after_ms,omitzero" doc:"When, where that is known; with full alone."`
	Hint       string          `json:"hint,omitzero" doc:"What to do about it at the command line; with full alone."`
}

// A Pending is what a person is asked before a call goes on.
type Pending struct {
	ID        string          `json:"id"`
	Why       string          `json:"why" doc:"What policy said."`
	Preview   json.RawMessage `json:"preview,omitzero"`
	ExpiresAt time.Time       `json:"expires_at"`
}

// A DryRun is what a dry run found out.
type DryRun struct {
	Verdict plugin.Verdict    `json:"verdict" doc:"What policy would say of the call."`
	Reasons []string          `json:"reasons"`
	Changes []json.RawMessage `json:"changes"`
	LeftOut int               `json:"left_out,omitzero" doc:"Changes beyond the first 1,000."`
	NotRun  string            `json:"not_run_reason,omitzero" doc:"Why the plugin did not run."`
}

// An Answered is a call that was asked for, as it is answered.
type Answered struct {
	Status   int
	Location string `header:"Location" doc:"Where a call that has not ended is found."`
	Applied  string `header:"Preference-Applied"`
	Replayed string `header:"Idempotency-Replayed" doc:"true where this is the first answer to the key."`
	Body     Outcome
}

// A Key is the key of a request that may be sent again.
type Key struct {
	Key string `header:"Idempotency-Key" maxLength:"255" doc:"A second request with it gets the answer to the first, and nothing is done twice."`
}

// An Execution is a call of an operation.
type Execution struct {
	Plugin    string `path:"plugin" maxLength:"128"`
	Operation string `path:"operation" maxLength:"192" doc:"The name of the operation, or name@versions."`
	Key
	Prefer string `header:"Prefer" maxLength:"255" doc:"respond-async, or wait=SECONDS."`
	Dry    bool   `query:"dry_run" doc:"Check and judge the call, and say what it would change; nothing is done."`
	Body   *ExecutionBody
}

// An ExecutionBody is what a call is made with.
type ExecutionBody struct {
	Input   json.RawMessage `json:"input,omitzero" doc:"By the input schema of the operation; an empty object where it is left out."`
	Session string          `json:"session,omitzero" maxLength:"64" doc:"The session that the call belongs to."`
	Labels  []string        `json:"labels,omitzero" maxItems:"2" nullable:"false" enum:"untrusted,private" doc:"What the input is tainted with."`
	Fresh   bool            `json:"fresh,omitzero" doc:"Do not answer with an earlier result."`
}

func (r *registry) execute(ctx context.Context, q *request, in *Execution) (*Answered, error) {
	body := ExecutionBody{}
	if in.Body != nil {
		body = *in.Body
	}
	p, err := r.preferenceOf(q.Request)
	if err != nil {
		return nil, err
	}
	ref, target := q.api.Plugins().Operation(ctx, in.Plugin+"/"+in.Operation, body.Input)
	session, err := q.sessionFor(ctx, target, body.Session, in.Dry)
	if err != nil {
		return nil, err
	}
	debugs := false
	call := host.Invocation{
		Operation: ref, Target: target, Input: body.Input, Session: session.ID, Joins: body.Session != "", Labels: body.Labels, Fresh: body.Fresh,
		Origin: plugin.OriginAPI, Key: in.Key.Key, Patience: r.Wait,
		Begins: func(debug bool) func(plugin.Event) { debugs = debug; return nil }, // see invoke
	}
	if in.Dry {
		call.Dry = host.DryAll
	}
	res, err := r.invoke(ctx, q, call, p)
	out, err := answered(res, err, in.Dry, debugs)
	if err == nil {
		out.Applied = p.applied
	}
	return out, err
}

// A preference is how long a request stays for its call (RFC 7240).
type preference struct {
	async   bool
	wait    time.Duration // that was asked for; 0 if none was
	applied string
}

// preferenceOf reads the header Prefer. What is unknown there is left alone, as its
// definition demands.
func (s *server) preferenceOf(r *http.Request) (p preference, err error) {
	switch keys := r.Header.Values("Idempotency-Key"); {
	case len(keys) > 1:
		return p, refused(http.StatusBadRequest, plugin.CodeInvalidInput, "a request has one Idempotency-Key", Place{Pointer: "Idempotency-Key", Detail: "it is there more than once"})
	case len(keys) == 1 && strings.TrimSpace(keys[0]) == "":
		return p, refused(http.StatusBadRequest, plugin.CodeInvalidInput, "an Idempotency-Key names something", Place{Pointer: "Idempotency-Key", Detail: "it is empty"})
	}
	for _, part := range strings.Split(strings.Join(r.Header.Values("Prefer"), ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch strings.ToLower(name) {
		case "respond-async":
			p.async = true
		case "wait":
			if n, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 31); err == nil && n > 0 && p.wait == 0 {
				p.wait = min(time.Duration(n)*time.Second, s.MaxWait)
			}
		}
	}
	switch {
	case p.wait > 0:
		p.async = false // it is answered at once where the time is over
		p.applied = fmt.Sprintf("wait=%d", int(p.wait.Seconds()))
	case p.async:
		p.applied = "respond-async"
	}
	return p, nil
}

// invoke makes a call, and stays for it as long as is preferred. A call that may have
// effects, or that belongs to a session, is put on record before it runs: it is found and
// goes on when its request is gone, and keeps its caller's scopes wherever it runs.
func (r *registry) invoke(ctx context.Context, q *request, call host.Invocation, p preference) (plugin.Result, error) {
	effects := call.Target != nil && len(call.Target.Operation.Effects) > 0
	stays := call.Dry != "" || !effects && !call.Joins && !p.async && p.wait == 0
	begins := call.Begins
	call.Begins = func(debug bool) func(plugin.Event) { begins(debug); return q.hears(stays) }
	if stays {
		q.stays(r.RunTime)
		ctx, cancel := context.WithTimeout(ctx, r.RunTime)
		defer cancel()
		return q.api.Invoke(ctx, call)
	}
	limit := p.wait
	if limit == 0 {
		limit = r.Wait
	}
	q.stays(limit + r.WorkTime)
	until := time.Now().Add(limit)
	var res plugin.Result
	var err error
	if effects && !call.Joins && !p.async { // its claim puts it on record
		call.ID, call.Patience, call.Stays = host.NewCallID(), limit, true
		res, err = r.within(ctx, q, until, call.ID, func(context.Context) (plugin.Result, error) {
			return q.api.Invoke(context.WithoutCancel(ctx), call)
		})
	} else {
		call.NoWait, call.NoWake = true, !p.async
		res, err = q.api.Invoke(ctx, call)
	}
	if err != nil || res.Status.Ended() || p.async || res.Status == plugin.PendingApproval && p.wait == 0 || !time.Now().Before(until) {
		return res, err
	}
	replayed := res.Replayed
	res, err = r.await(ctx, q, res.CallID, time.Until(until))
	res.Replayed = replayed
	return res, err
}

// await waits for a call, and returns how it stands when the time is over. Where no other process
// runs the call it is run here, and goes on when the request is gone.
func (r *registry) await(ctx context.Context, q *request, id string, limit time.Duration) (plugin.Result, error) {
	return r.within(ctx, q, time.Now().Add(limit), id, func(ctx context.Context) (plugin.Result, error) {
		return q.api.Calls().Wait(ctx, id, host.Waiting{})
	})
}

// within returns what do says of a call, or how the call stands where the time is over first:
// do goes on then, and when the request is gone.
func (r *registry) within(ctx context.Context, q *request, until time.Time, id string, do func(ctx context.Context) (plugin.Result, error)) (plugin.Result, error) {
	waiting, stop := context.WithDeadline(ctx, until)
	defer stop()
	panicked := func(cause any, stack string) {
		r.Log.Error("waiting for a call panicked", "call_id", id, "request_id", q.id, "cause", fmt.Sprint(cause), "stack", stack)
	}
	return q.api.Calls().Stay(waiting, id, r.WorkTime, panicked, func() (plugin.Result, error) { return do(waiting) })
}

// answered is the answer to a call: how it ended, that it has not, or why the host
// refused it.
func answered(res plugin.Result, err error, dry, debug bool) (*Answered, error) {
	ran := ofRun[plugin.CodeOf(err)] || res.Status == plugin.Unknown
	if dry && res.DryRun == nil {
		ran = false // a dry run that there was not
	}
	if err != nil && (res.CallID == "" || !ran) {
		return nil, refusal(res, err)
	}
	out := &Answered{Status: http.StatusOK, Body: outcomeOf(res, err, debug)}
	if !out.Body.Status.Ended() {
		out.Status, out.Location = http.StatusAccepted, Prefix+"calls/"+res.CallID
	}
	if res.Replayed {
		out.Replayed = "true"
	}
	return out, nil
}

// inputMember is where the input of a call stands in the body of its request.
const inputMember = "/input"

// refusal is the problem that a call was refused with.
func refusal(res plugin.Result, err error) error {
	e := plugin.AsError(err)
	if e.Code == plugin.CodeInternal {
		return err // its cause is for the log
	}
	p := refusedBy(e)
	if e.Code == plugin.CodeKeyConflict { // the key is part of the request
		p.Status = http.StatusUnprocessableEntity
	}
	p.CallID = res.CallID
	for _, at := range host.Misfits(err) {
		p.Errors = append(p.Errors, Place{inputMember + at.Pointer, at.Reason, at.Members})
	}
	return p
}

// outcomeOf is how a call ended or stands. What a failed call has is what its record has,
// so that the first answer is the same as all later ones.
func outcomeOf(res plugin.Result, err error, debug bool) Outcome {
	if err != nil {
		e, status := plugin.AsError(err), plugin.Failed
		if res.Status == plugin.Unknown {
			status = plugin.Unknown
		}
		return Outcome{CallID: res.CallID, Operation: res.Operation, Status: status, Labels: res.Labels, DryRun: dryRunOf(res.DryRun),
			Error: &Failure{Code: e.Code, PluginCode: e.PluginCode, Message: told(e.Message), Details: e.Details, Retryable: e.Retryable}}
	}
	o := Outcome{
		CallID: res.CallID, Operation: res.Operation, Version: res.Version, Status: res.Status, Data: res.Data,
		Metrics: res.Metrics, Summary: res.Summary, Message: res.Message, Details: res.Details, Skips: res.Skips, Citations: res.Citations,
		NextCursor: res.NextCursor, Labels: res.Labels, Cached: res.Cached, DryRun: dryRunOf(res.DryRun),
	}
	for _, a := range res.Artifacts {
		o.Artifacts = append(o.Artifacts, Made{a.ID, a.Type, a.Name, a.Hash, a.Size})
	}
	if !o.Status.Ended() {
		o.Metrics = nil // those of the request that asked first
	}
	if debug {
		o.Diagnostics = res.Diagnostics
	}
	if a := res.Approval; a != nil {
		o.Approval = &Pending{a.ID, a.Why, a.Preview, a.ExpiresAt}
	}
	return o
}

func dryRunOf(d *plugin.DryRun) *DryRun {
	if d == nil {
		return nil
	}
	run := &DryRun{Verdict: d.Verdict, Reasons: append([]string{}, d.Reasons...), Changes: []json.RawMessage{}, LeftOut: d.LeftOut, NotRun: d.NotRun}
	for _, change := range d.Changes {
		if raw, err := json.Marshal(change); err == nil {
			run.Changes = append(run.Changes, raw)
		}
	}
	return run
}
