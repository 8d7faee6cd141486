package rest

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// A CallSpec is a call as a command line asks for it: the operation as a person names it, and
// what it is given beside its input.
type CallSpec struct {
	ExecutionBody
	Operation string   `json:"operation" minLength:"1" maxLength:"512" doc:"plugin/operation@versions; the name of a plugin alone, where it has one operation or its contract lets the input say which."`
	Timeout   float64  `json:"timeout_seconds,omitzero" minimum:"0" doc:"A shorter limit than the operation's own."`
	KeyWait   float64  `json:"key_wait_seconds,omitzero" minimum:"0" doc:"How long to wait for a call with the same key that is at work; until its end where it is left out."`
	Dry       string   `json:"dry_run,omitzero" enum:"all,reads" doc:"Change nothing; reads lets it read outside."`
	Artifacts []string `json:"artifacts,omitzero" maxItems:"1000" nullable:"false" doc:"Artifacts of the session that the input is to name, by their ids."`
	Paths     []string `json:"paths,omitzero" maxItems:"1000" nullable:"false" doc:"Files of the host's machine to hand on, absolute. On the owner's socket alone."`
	Full      bool     `json:"full,omitzero" doc:"Answer with the whole result, in the member result."`
}

// A ResolveSpec is a reference whose meaning is asked for.
type ResolveSpec struct {
	Operation string          `json:"operation" minLength:"1" maxLength:"512" doc:"As in a call."`
	Input     json.RawMessage `json:"input,omitzero" doc:"Where the contract lets it say which operation is meant."`
}

// A Resolved is what a reference means.
type Resolved struct {
	Reference    string     `json:"reference" doc:"Completed by what the input says."`
	Operation    *Operation `json:"operation,omitzero" doc:"Absent where the reference means nothing: a call of it is refused, on the record."`
	Contract     string     `json:"contract,omitzero" doc:"The contract that the plugin is written to."`
	Investigates bool       `json:"investigates,omitzero" doc:"Each call belongs to a session."`
}

// A LinkSpec is a plugin that is to be registered for development.
type LinkSpec struct {
	Path string `json:"path" minLength:"1" maxLength:"4096" doc:"Of its directory or source file on the host's machine, absolute."`
}

// A Linked is such a plugin.
type Linked struct {
	Name string `json:"name"`
}

func (r *registry) making() {
	add(r, route{
		method: "POST", path: "calls", id: "make-call", scope: host.ScopeRun, stays: true, accepts: true, told: outcomes,
		about: "Make a call as a command line does: the operation is named as a person names it. It is answered as an execution is, streams too",
	}, r.makeCall)
	add(r, route{method: "POST", path: "operations:resolve", id: "resolve-operation", scope: host.ScopeRead, about: "What a reference to an operation means; nothing is called"}, r.resolve)
	add(r, route{method: "POST", path: "plugins:link", id: "link-plugin", scope: host.ScopeConfigure, about: "Register the plugin at a path of the host's machine for development; on the owner's socket alone"}, r.link)
}

// ofOwner refuses what names a file of the host's machine, unless it comes over the owner's
// socket: its sender is the user of the operating system who runs the host, and could open the
// file as well. place names the member of the body.
func (q *request) ofOwner(place string, paths ...string) error {
	if len(paths) == 0 {
		return nil
	}
	if !q.caller.Owns {
		return refused(0, plugin.CodePolicyDenied, "a path of the host's machine is for the owner's socket; send the bytes, or run this where the host runs", Place{Pointer: place, Detail: "it is for the owner's socket"})
	}
	for _, path := range paths {
		if !filepath.IsAbs(path) || filepath.Clean(path) != path {
			return refused(0, plugin.CodeInvalidInput, "a path is written whole, from the root", Place{Pointer: place, Detail: "it is not absolute"})
		}
	}
	return nil
}

func (r *registry) makeCall(ctx context.Context, q *request, in *struct {
	Key
	Prefer string `header:"Prefer" maxLength:"255" doc:"respond-async, or wait=SECONDS."`
	Body   CallSpec
}) (*Answered, error) {
	body := in.Body
	p, err := r.preferenceOf(q.Request)
	if err != nil {
		return nil, err
	}
	if err := q.ofOwner("/paths", body.Paths...); err != nil {
		return nil, err
	}
	ref, target := q.api.Plugins().Operation(ctx, body.Operation, body.Input)
	session, err := q.sessionFor(ctx, target, body.Session, body.Dry != "")
	if err != nil {
		return nil, err
	}
	debugs := false
	call := host.Invocation{
		Operation: ref, Target: target, Input: body.Input, Session: session.ID, Joins: body.Session != "", Labels: body.Labels, Fresh: body.Fresh,
		Origin: plugin.OriginAPI, Whole: body.Full, Key: in.Key.Key, Patience: time.Duration(body.KeyWait * float64(time.Second)), Dry: body.Dry, Timeout: time.Duration(body.Timeout * float64(time.Second)),
		Begins: func(debug bool) func(plugin.Event) { debugs = debug; return nil }, // see invoke
	}
	for _, id := range body.Artifacts {
		a, err := q.api.Sessions().Artifact(ctx, session.ID, id)
		if err != nil {
			return nil, unlessMissing(err, "artifact", id)
		}
		call.Given = append(call.Given, host.Attachment{Artifact: a})
	}
	for _, path := range body.Paths {
		if err := q.api.OwnFile(path); err != nil {
			return nil, err
		}
		file, err := host.OpenFile(path)
		if err != nil {
			return nil, err
		}
		call.Given = append(call.Given, host.Attachment{File: file})
	}
	res, err := r.stayFor(ctx, q, call, p)
	if flushed := q.api.Flush(ctx, err != nil || target != nil && len(target.Operation.Effects) > 0 && body.Dry == ""); flushed != nil {
		return nil, flushed
	}
	out, failure := answered(res, err, body.Dry != "", debugs)
	if failure == nil {
		out.Applied = p.applied
		if body.Full {
			out.Body.whole(res, err)
		}
	}
	if refusal := new(Problem); body.Full && errors.As(failure, &refusal) {
		refusal.Result, _ = json.Marshal(res)
	}
	return out, failure
}

// stayFor makes a call as the process of a command would: its request stays for it, and when
// the request is gone the call is one that lost its caller. One that is to be put on record
// first, because it was asked for so, or because the process of its session makes it, is made
// as by [registry.execute].
func (r *registry) stayFor(ctx context.Context, q *request, call host.Invocation, p preference) (plugin.Result, error) {
	if p.async || p.wait > 0 || call.Joins && !q.caller.Owns {
		return r.invoke(ctx, q, call, p)
	}
	limit := r.RunTime
	if call.Target != nil {
		limit = max(limit, call.Target.Operation.Timeout+r.WorkTime)
	}
	q.stays(limit)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	begins := call.Begins
	call.Begins = func(debug bool) func(plugin.Event) { begins(debug); return q.hears(true) }
	return q.api.Invoke(ctx, call)
}

// sessionFor is the session that a call belongs to: the one that is named, or one that begins
// where the operation needs it. A dry run begins none.
func (q *request) sessionFor(ctx context.Context, target *plugin.Target, named string, dry bool) (s host.Session, err error) {
	if named == "" && dry {
		return s, nil
	}
	if s, err = q.api.Sessions().For(ctx, target, named); err != nil {
		return s, unlessMissing(err, "session", named)
	}
	if named != "" && s.ID != named { // an id is written whole here
		return s, missing("session", named)
	}
	return s, nil
}

// shows reports whether a caller is shown what plugins log, which is for the host: its owner,
// on the socket.
func (s *server) shows(q *request) bool { return q.caller.Owns }

// whole adds the whole result to an outcome, as the host has it.
func (o *Outcome) whole(res plugin.Result, err error) {
	if err != nil && o.Error != nil {
		e := plugin.AsError(err)
		_, o.Error.Hint = hinted(e.Message)
		o.Error.RetryAfter = e.RetryAfter.Milliseconds()
	}
	o.Result, _ = json.Marshal(res)
}

func (r *registry) resolve(ctx context.Context, q *request, in *struct{ Body ResolveSpec }) (*struct{ Body Resolved }, error) {
	ref, t := q.api.Plugins().Operation(ctx, in.Body.Operation, in.Body.Input)
	if t == nil { // another process may have registered it just now
		if err := q.api.CatchUp(ctx); err != nil {
			return nil, err
		}
		ref, t = q.api.Plugins().Operation(ctx, in.Body.Operation, in.Body.Input)
	}
	out := &struct{ Body Resolved }{Resolved{Reference: ref}}
	if t == nil || !q.caller.Covers(t.Name()) {
		return out, nil
	}
	op := operationOf(t.Manifest, t.Operation)
	op.Input, op.Output = t.Operation.Input, t.Operation.Output
	out.Body.Operation, out.Body.Contract, out.Body.Investigates = &op, t.Manifest.Dialect, t.Manifest.Contract.Investigates
	return out, nil
}

func (r *registry) link(ctx context.Context, q *request, in *struct{ Body LinkSpec }) (*struct{ Body Linked }, error) {
	if err := q.ofOwner("/path", in.Body.Path); err != nil {
		return nil, err
	}
	name, err := q.api.Plugins().Link(ctx, in.Body.Path)
	if err != nil {
		return nil, err
	}
	return &struct{ Body Linked }{Linked{name}}, nil
}
