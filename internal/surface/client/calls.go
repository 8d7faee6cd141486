package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/plugin"
)

// calls are the calls of a remote host.
type calls struct{ *remote }

// Calls implements [Host].
func (r *remote) Calls() Calls { return calls{r} }

// wholeID is how many characters the id of a call, a plan or an approval has.
const wholeID = 36

// A callQuery is what of a call is asked for.
type callQuery struct {
	wait           time.Duration
	short, entries bool
}

// call reads a call and its outcome. The call is nil where it could not be read.
func (r *remote) call(ctx context.Context, id string, q callQuery) (*rest.CallShown, plugin.Result, error) {
	query := url.Values{"full": {"true"}}
	if q.wait > 0 {
		query.Set("wait", strconv.Itoa(max(1, int(q.wait.Seconds()))))
	}
	if q.short {
		query.Set("short", "true")
	}
	if q.entries {
		query.Set("entries", "true")
	}
	var shown rest.CallShown
	if err := r.get(ctx, &shown, query, "calls", id); err != nil {
		return nil, plugin.Result{CallID: id}, err
	}
	res, err := resultOf(&shown.Outcome)
	return &shown, res, err
}

// rowOf is a call as package host has it, as far as a document says.
func rowOf(c *rest.Call) *host.CallRow {
	row := &host.CallRow{
		ID: c.ID, Operation: c.Operation, Version: c.Version, State: host.CallState(c.State), Code: c.Code, Attempt: c.Attempt, Principal: c.Principal,
		Actor: c.Actor, Origin: c.Origin, Parent: c.Parent, Plan: c.Plan, Session: c.Session, Labels: c.Labels, PackageDigest: c.Digest,
		InputHash: c.InputHash, ResultHash: c.ResultHash, Cancelled: c.Cancelled, CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt, Node: c.Node, WakeAt: c.WakeAt,
	}
	if c.Key != "" {
		row.Key = "k:" + c.Key
	}
	if len(row.Labels) == 0 {
		row.Labels = nil
	}
	return row
}

// List implements [Calls].
func (c calls) List(ctx context.Context, f host.CallFilter) ([]host.CallRow, error) {
	return c.ListIn(ctx, f, "")
}

// ListIn implements [Calls].
func (c calls) ListIn(ctx context.Context, f host.CallFilter, status plugin.Status) ([]host.CallRow, error) {
	query := url.Values{}
	for name, value := range map[string]string{"operation": f.Operation, "plan": f.Plan, "state": string(status)} {
		if value != "" {
			query.Set(name, value)
		}
	}
	found, err := rowsOf[rest.Call](ctx, c.remote, "calls", query, f.Limit, "calls")
	rows := make([]host.CallRow, len(found))
	for i := range found {
		rows[i] = *rowOf(&found[i])
	}
	return rows, err
}

// Find implements [Calls].
func (c calls) Find(ctx context.Context, given, _ string) (*host.CallRow, error) {
	shown, _, err := c.call(ctx, given, callQuery{short: true})
	if shown == nil {
		return nil, err
	}
	return rowOf(&shown.Call), nil
}

// FindToControl implements [Calls]. An id that is whole is not looked up: who may control a
// call need not see it, and what is then done says so.
func (c calls) FindToControl(ctx context.Context, given, action string) (*host.CallRow, error) {
	if len(given) == wholeID {
		return &host.CallRow{ID: given}, nil
	}
	return c.Find(ctx, given, action)
}

// Show implements [Calls].
func (c calls) Show(ctx context.Context, given string) (s host.CallShown, err error) {
	shown, _, err := c.call(ctx, given, callQuery{short: true, entries: true})
	if shown == nil {
		return s, err
	}
	s.CallRow, s.Entries = rowOf(&shown.Call), shown.Entries
	for _, e := range shown.Effects {
		s.Effects = append(s.Effects, host.EffectRow{
			N: e.N, Attempt: e.Attempt, Method: e.Method, Effect: e.Effect, Class: e.Class, State: host.EffectState(e.State), RequestHash: e.RequestHash,
			ProviderKey: e.ProviderKey, At: e.At,
		})
	}
	if shown.Approval != "" {
		s.Approval = &host.ApprovalRow{ID: shown.Approval, State: host.ApprovalState(shown.Asked)}
	}
	return s, nil
}

// Standing implements [Calls].
func (c calls) Standing(ctx context.Context, id string) (plugin.Result, error) {
	shown, res, err := c.call(ctx, id, callQuery{})
	if shown == nil {
		return res, err
	}
	return res, nil
}

// Cancel implements [Calls].
func (c calls) Cancel(ctx context.Context, id, reason string) (*host.CallRow, error) {
	var row rest.Call
	err := c.post(ctx, map[string]string{"reason": reason}, &row, "calls", id+":cancel")
	if err != nil {
		return nil, err
	}
	return rowOf(&row), nil
}

// Settle implements [Calls].
func (c calls) Settle(ctx context.Context, id string, s host.Settlement) (*host.CallRow, error) {
	body := map[string]any{"outcome": map[host.CallState]string{host.CallSucceeded: "succeeded", host.CallFailed: "failed", host.CallQueued: "not_done"}[s.State], "reason": s.Reason}
	if len(s.Data) > 0 {
		body["data"] = s.Data
	}
	if len(s.Evidence) > 0 {
		body["evidence"] = s.Evidence
	}
	return c.settle(ctx, id, body)
}

// Reconcile implements [Calls].
func (c calls) Reconcile(ctx context.Context, id string) (*host.CallRow, error) {
	return c.settle(ctx, id, map[string]any{"outcome": "ask"})
}

func (c calls) settle(ctx context.Context, id string, body any) (*host.CallRow, error) {
	var row rest.Call
	if err := c.post(ctx, body, &row, "calls", id+":settle"); err != nil {
		return nil, err
	}
	return rowOf(&row), nil
}

// Wait implements [Calls]. The host does the waiting; what goes on between is a person at the
// terminal, who may answer.
func (c calls) Wait(ctx context.Context, id string, w host.Waiting) (plugin.Result, error) {
	waiting, stop := ctx, context.CancelFunc(func() {})
	if w.Limit > 0 {
		waiting, stop = context.WithTimeoutCause(ctx, w.Limit, host.ErrNotFinished)
	}
	defer stop()
	for {
		shown, res, err := c.stay(waiting, id, &w)
		if waiting.Err() != nil && (shown == nil || !res.Status.Ended()) {
			break
		}
		if shown == nil || res.Status.Ended() || err != nil {
			if w.Left != nil && w.Between != nil {
				w.Left()
			}
			return res, err
		}
	}
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), endings) // an interrupted caller hears how the call stands
	defer cancel()
	shown, res, err := c.call(look, id, callQuery{})
	if w.Left != nil && w.Between != nil {
		w.Left()
	}
	if shown == nil || res.Status.Ended() {
		return res, err
	}
	return res, host.Unfinished{Err: context.Cause(waiting)}
}

// stay asks the host to stay for a call once, while a person may answer.
func (c calls) stay(ctx context.Context, id string, w *host.Waiting) (*rest.CallShown, plugin.Result, error) {
	limit := stays
	if until, bounded := ctx.Deadline(); bounded {
		limit = min(limit, max(time.Second, time.Until(until)))
	}
	if w.Between == nil {
		return c.call(ctx, id, callQuery{wait: limit})
	}
	type answer struct {
		shown *rest.CallShown
		res   plugin.Result
		err   error
	}
	ended := make(chan answer, 1)
	asking, stop := context.WithCancel(ctx)
	defer stop()
	go func() { // it ends with its request
		shown, res, err := c.call(ctx, id, callQuery{wait: limit})
		ended <- answer{shown, res, err}
		stop()
	}()
	for w.Between != nil && asking.Err() == nil {
		again, err := w.Between(asking)
		if !again {
			w.Between = nil
		}
		if err != nil {
			return nil, plugin.Result{CallID: id}, err
		}
	}
	a := <-ended
	return a.shown, a.res, a.err
}

// Follow implements [Calls].
func (c calls) Follow(ctx context.Context, id string, show func(*plugin.Entry)) (over bool, err error) {
	seen := map[[2]int64]bool{}
	for {
		over, err = c.follow(ctx, id, seen, show)
		var cut *cutOff
		if !errors.As(err, &cut) {
			return over, err
		}
		host.Pause(ctx, time.Second) // the host ends streams now and then
	}
}

// A cutOff is the end of a stream before what it is of.
type cutOff struct{ error }

func (c calls) follow(ctx context.Context, id string, seen map[[2]int64]bool, show func(*plugin.Entry)) (over bool, err error) {
	res, err := c.send(ctx, asking{method: http.MethodGet, path: at("calls", id, "events"), query: url.Values{"entries": {"true"}, "full": {"true"}}})
	if ctx.Err() != nil {
		return false, host.Unfinished{Err: context.Cause(ctx)}
	}
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	failed := events(res.Body, func(name string, data []byte) (bool, error) {
		if name == "result" {
			var o rest.Outcome
			if err := json2.Unmarshal(data, &o); err != nil {
				return false, err
			}
			over = o.Status.Ended()
			_, err = resultOf(&o)
			return false, nil
		}
		var e rest.CallEvent
		if err := json2.Unmarshal(data, &e); err != nil {
			return false, err
		}
		if at := [2]int64{e.Chain, e.Seq}; e.Entry != nil && !seen[at] {
			seen[at] = true
			show(e.Entry)
		}
		return true, nil
	})
	switch {
	case failed == nil:
		return over, err
	case ctx.Err() != nil:
		return false, host.Unfinished{Err: context.Cause(ctx)}
	}
	return false, &cutOff{failed}
}
