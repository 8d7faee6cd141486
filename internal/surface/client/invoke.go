package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/plugin"
)

// How long a host is asked to stay for a call, and to answer after the user has gone.
const (
	stays   = 60 * time.Second
	endings = 10 * time.Second
)

// Invoke implements [Host]. What the plugin says comes as it says it. A call whose command is
// interrupted has lost its caller, as one of this process would; one that goes on without
// its request is told to stop.
func (r *remote) Invoke(ctx context.Context, in host.Invocation) (plugin.Result, error) {
	spec := rest.CallSpec{
		ExecutionBody: rest.ExecutionBody{Input: in.Input, Labels: in.Labels, Fresh: in.Fresh},
		Operation:     in.Operation, Timeout: in.Timeout.Seconds(), KeyWait: in.Patience.Seconds(), Dry: in.Dry, Full: true,
	}
	if in.Joins || in.Session != "" {
		spec.Session = in.Session
	}
	for _, given := range in.Given {
		switch {
		case given.File == nil:
			spec.Artifacts = append(spec.Artifacts, given.Artifact.ID)
		case r.who.Manner == OverSocket:
			spec.Paths = append(spec.Paths, given.File.Path)
		default:
			return plugin.Result{}, plugin.Errorf(plugin.CodeInvalidInput, "%s is a file of this machine, which the plugin at %s cannot open; run this where the host runs", filepath.Base(given.File.Path), r.base)
		}
	}
	header := http.Header{"Accept": {"text/event-stream"}}
	keyed := in.Key != ""
	if !keyed && mayEffect(&in) {
		in.Key = host.NewKey()
	}
	if in.NoWait {
		header.Set("Prefer", "respond-async")
	}
	observe := func(plugin.Event) {}
	if in.Begins != nil {
		if o := in.Begins(false); o != nil {
			observe = o
		}
	}
	var out plugin.Result
	err := repeat(ctx, in.Key, func() (err error) {
		out, err = r.invokeOnce(ctx, asking{method: http.MethodPost, path: "calls", header: header, body: spec, key: in.Key}, observe)
		return err
	})
	err = r.lost(&in, err)
	out.Replayed = out.Replayed && keyed // under a key of this client it is the answer to this request
	if err != nil || in.NoWait || out.Status.Ended() || out.Status == plugin.PendingApproval {
		return out, err
	}
	return r.running(ctx, out)
}

// mayEffect reports whether a call may have effects, as far as that is known here.
func mayEffect(in *host.Invocation) bool {
	return in.Dry == "" && (in.Target == nil || len(in.Target.Operation.Effects) > 0)
}

// invokeOnce sends a call, and stays for its end, or for how it stands.
func (r *remote) invokeOnce(ctx context.Context, q asking, observe func(plugin.Event)) (out plugin.Result, err error) {
	life, over := outlast(ctx)
	defer over()
	res, err := r.send(life, q)
	if err != nil {
		return refusedResult(err)
	}
	defer res.Body.Close()
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		out, err = r.told(life, res, observe)
	} else {
		var o rest.Outcome
		if err := json2.UnmarshalRead(res.Body, &o); err != nil {
			return out, r.unreached(ctx, err)
		}
		out, err = resultOf(&o)
	}
	out.Replayed = out.Replayed || res.Header.Get("Idempotency-Replayed") == "true"
	return out, err
}

// told reads the stream of a call to its result.
func (r *remote) told(ctx context.Context, res *http.Response, observe func(plugin.Event)) (out plugin.Result, err error) {
	failed := events(res.Body, func(name string, data []byte) (bool, error) {
		switch name {
		case string(plugin.EventLog):
			var e plugin.Event
			if json2.Unmarshal(data, &e) == nil {
				observe(e)
			}
		case string(plugin.EventProgress), string(plugin.EventContent):
			observe(toldEvent(name, data))
		case "result":
			var o rest.Outcome
			if err := json2.Unmarshal(data, &o); err != nil {
				return false, err
			}
			out, err = resultOf(&o)
			return false, nil
		case "problem":
			var p rest.Problem
			if err := json2.Unmarshal(data, &p); err != nil {
				return false, err
			}
			out, err = refusedResult(&refused{problemError(&p), &p})
			return false, nil
		}
		return true, nil
	})
	if failed != nil { // the host has the call stopped, as that of a command that has gone
		return out, r.unreached(ctx, failed)
	}
	return out, err
}

// toldEvent is what a plugin says, as a stream has it.
func toldEvent(name string, data []byte) plugin.Event {
	var said struct {
		Message string `json:"message"`
	}
	if name == string(plugin.EventProgress) {
		_ = json2.Unmarshal(data, &said)
	}
	return plugin.Event{Kind: plugin.EventKind(name), Message: said.Message, Data: json.RawMessage(data)}
}

// running stays until a call that others run has ended. One that its operator goes on with by
// itself, or that a person is asked about, is left at that.
func (r *remote) running(ctx context.Context, res plugin.Result) (plugin.Result, error) {
	for {
		shown, out, err := r.call(ctx, res.CallID, callQuery{})
		if shown == nil || out.Status.Ended() || shown.State != string(host.CallQueued) && shown.State != string(host.CallRunning) {
			if shown == nil && ctx.Err() != nil {
				return r.stop(ctx, res.CallID)
			}
			return out, err
		}
		if _, out, err = r.call(ctx, res.CallID, callQuery{wait: stays}); ctx.Err() != nil {
			return r.stop(ctx, res.CallID)
		} else if out.Status.Ended() || err != nil {
			return out, err
		}
	}
}

// stop tells a call to stop, for a user who interrupted the command that made it, and returns
// how it ended, or stands.
func (r *remote) stop(ctx context.Context, id string) (plugin.Result, error) {
	cause := context.Cause(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endings)
	defer cancel()
	if _, err := r.Calls().Cancel(ctx, id, "interrupted"); err != nil && plugin.CodeOf(err) != plugin.CodeInvalidInput {
		return plugin.Result{CallID: id, Status: plugin.InProgress}, host.Unfinished{Err: errors.Join(cause, err)}
	}
	shown, out, err := r.call(ctx, id, callQuery{wait: endings / 2})
	if shown == nil || !out.Status.Ended() && err == nil {
		return out, host.Unfinished{Err: cause}
	}
	return out, err
}

// resultOf is the result of an outcome, and why it failed.
func resultOf(o *rest.Outcome) (res plugin.Result, err error) {
	if len(o.Result) > 0 {
		if err := json2.Unmarshal(o.Result, &res); err != nil {
			return res, plugin.Errorf(plugin.CodeUnavailable, "the result is in a form that this version cannot read: %w", err)
		}
	}
	res.CallID, res.Operation, res.Status = o.CallID, o.Operation, o.Status
	if res.Version == "" {
		res.Version = o.Version
	}
	if f := o.Error; f != nil {
		e := &plugin.Error{Code: f.Code, PluginCode: f.PluginCode, Message: f.Message, Details: f.Details, Retryable: f.Retryable, RetryAfter: time.Duration(f.RetryAfter) * time.Millisecond}
		if f.Hint != "" {
			e.Message += "; " + f.Hint
		}
		err = e
	}
	return res, err
}

// refusedResult is what is known of a call that was refused.
func refusedResult(err error) (res plugin.Result, _ error) {
	var r *refused
	if errors.As(err, &r) {
		_ = unmarshalSome(r.problem.Result, &res)
		res.CallID = r.problem.CallID
		if r.err.Code == plugin.CodeOutcomeUnknown {
			res.Status = plugin.Unknown
		}
	}
	return res, err
}
