package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// KeyMeta is the member of a request's _meta that has its idempotency key: a second call with
// it gets the answer to the first.
const KeyMeta = "dev.mortise/idempotency-key"

// SessionMeta is the member of a request's _meta that has the session that the call belongs to:
// one that its caller may use.
const SessionMeta = "dev.mortise/session"

// KeyHeader is the header of a request over HTTP that has a key of the request itself: where its
// answer is lost, a second request with it gets the same answer. It matters to calls that may have
// effects and have no key of their own, and such a call still joins one that waits for a person.
const KeyHeader = "Idempotency-Key"

const maxKey = 255

// callTool answers tools/call.
func (s *session) callTool(ctx context.Context, r *sdk.CallToolRequest) (sdk.Result, error) {
	ctx, cancel := s.gone(ctx)
	defer cancel()
	key, err := keyOf(r.Params.Meta)
	if err != nil {
		return nil, err
	}
	arguments := json.RawMessage(r.Params.Arguments)
	if len(arguments) == 0 || string(arguments) == "null" {
		arguments = json.RawMessage("{}")
	}
	if do, is := own[r.Params.Name]; is {
		return do.answer(ctx, s, r, arguments, key)
	}
	return s.run(ctx, r, r.Params.Name, arguments, key)
}

// keyOf returns the idempotency key of a call, "" where it has none.
func keyOf(meta sdk.Meta) (string, error) {
	given, has := meta[KeyMeta]
	if !has {
		return "", nil
	}
	key, text := given.(string)
	if !text || strings.TrimSpace(key) == "" || len(key) > maxKey {
		return "", wrongParams(fmt.Sprintf("%s in _meta is a text of 1 to %d bytes", KeyMeta, maxKey))
	}
	return key, nil
}

// requestKey returns the key of a request over HTTP, "" where it has none that can be one.
func requestKey(r *sdk.CallToolRequest) string {
	if r.Extra == nil || len(r.Extra.Header.Values(KeyHeader)) != 1 {
		return ""
	}
	key := r.Extra.Header.Get(KeyHeader)
	if strings.TrimSpace(key) == "" || len(key) > maxKey {
		return ""
	}
	return key
}

// run calls the operation that the name of a tool means. It is the one way into the kernel.
func (s *session) run(ctx context.Context, r *sdk.CallToolRequest, name string, arguments json.RawMessage, key string) (sdk.Result, error) {
	target, err := s.named(ctx, name, arguments)
	if err != nil {
		return nil, err
	}
	in, err := sessionOf(r.Params.Meta)
	if err != nil {
		return nil, err
	}
	if r.Params.RequestState != "" {
		res, state, is, err := s.resumed(ctx, r, target, arguments)
		if is || err != nil && !asks(target) {
			return s.continued(ctx, r, target, arguments, state, res, err), nil
		}
	}
	brought := round{r.Params.InputResponses, r.Params.RequestState, r.ClientCapabilities(), s.newest(r)}
	input, key, err := s.answered(target, arguments, key, brought)
	if err != nil && brought.state != "" {
		return nil, s.refused(err)
	}
	if err != nil {
		return s.result(r, target, plugin.Result{}, err), nil
	}
	if key == "" && s.api.Plugins().Waits(target, input) {
		if res, joined, err := s.join(ctx, target, input, in); joined || err != nil {
			return s.answer(ctx, r, target, arguments, res, err), nil
		}
	}
	if key == "" && len(target.Operation.Effects) > 0 {
		key = requestKey(r)
	}
	began, err := s.api.Sessions().For(ctx, target, in)
	if err != nil {
		return s.result(r, target, plugin.Result{}, err), nil
	}
	res, err := s.invoke(ctx, host.Invocation{
		Operation: target.Name(), Target: target, Input: input, Session: began.ID, Origin: plugin.OriginMCP, Key: key,
		Begins: func(bool) func(plugin.Event) { return s.progress(ctx, r) },
	})
	asked, unclear := inquiryOf(target, &res, err)
	if unclear != nil {
		return s.result(r, target, plugin.Result{CallID: res.CallID}, unclear), nil
	}
	if asked != nil {
		return s.inquire(ctx, r, target, arguments, asked, brought, res.CallID)
	}
	if err == nil && res.Status == plugin.PendingApproval {
		return s.answer(ctx, r, target, arguments, res, nil), nil
	}
	out := s.result(r, target, res, err)
	out.Content = append(out.Content, s.links(began.ID, res.Artifacts)...)
	return out, nil
}

// sessionOf returns the session that a call names, "" where it names none.
func sessionOf(meta sdk.Meta) (string, error) {
	given, has := meta[SessionMeta]
	if !has {
		return "", nil
	}
	id, text := given.(string)
	if !text || !host.WholeSession(id) {
		return "", wrongParams(SessionMeta + " in _meta is the whole id of a session")
	}
	return id, nil
}

// named returns what the name of a tool means, to a caller who may know of it and whose token
// is for it. The kernel refuses a caller that policy does not let run it. What is not found is
// on the record too.
func (s *session) named(ctx context.Context, name string, arguments json.RawMessage) (found *plugin.Target, err error) {
	candidates := s.profile.operationsOf(name)
	for _, operation := range candidates {
		if _, t := s.api.Plugins().Operation(ctx, operation, arguments); t != nil && s.by.Covers(t.Name()) && t.Operation.Kind != plugin.Adapter {
			if found != nil {
				return nil, unknownTool(name) // two have the name
			}
			found = t
		}
	}
	if found == nil && len(candidates) > 0 {
		_, err = s.api.Plugins().Resolve(ctx, candidates[0], "run")
		if code := plugin.CodeOf(err); code != "" && code != plugin.CodeNotFound {
			return nil, s.failed(err)
		}
	}
	if found == nil {
		return nil, unknownTool(name)
	}
	return found, nil
}

// invoke makes a call and stays for it. One that may have effects is on record before it runs,
// and goes on when its caller is gone; one without ends with its caller.
func (s *session) invoke(ctx context.Context, call host.Invocation) (plugin.Result, error) {
	if len(call.Target.Operation.Effects) == 0 && call.Key == "" {
		ctx, cancel := context.WithTimeout(ctx, max(s.RunTime, call.Target.Operation.Timeout))
		defer cancel()
		return s.flushed(ctx)(s.api.Invoke(ctx, call))
	}
	call.ID, call.Patience, call.Stays = host.NewCallID(), s.Wait, true
	return s.within(ctx, call.ID, func(ctx context.Context) (plugin.Result, error) { return s.flushed(ctx)(s.api.Invoke(ctx, call)) })
}

// flushed returns a result once it is on record, where the options ask for that.
func (s *session) flushed(ctx context.Context) func(plugin.Result, error) (plugin.Result, error) {
	return func(res plugin.Result, err error) (plugin.Result, error) {
		if s.Flush {
			if failed := s.api.Flush(ctx, err != nil); failed != nil {
				return res, failed
			}
		}
		return res, err
	}
}

// within returns what do says of a call, or how the call stands where the time is over or its
// caller is gone: do goes on then.
func (s *session) within(ctx context.Context, id string, do func(context.Context) (plugin.Result, error)) (plugin.Result, error) {
	going := context.WithoutCancel(ctx)
	waiting, stop := context.WithTimeout(ctx, s.Wait)
	defer stop()
	panicked := func(cause any, stack string) {
		s.Log.Error("a call panicked", "call_id", id, "cause", fmt.Sprint(cause), "stack", stack)
	}
	return s.api.Calls().Stay(waiting, id, lastWords, panicked, func() (plugin.Result, error) { return do(going) })
}

// join returns a call that its caller made before with the same arguments, and that waits for
// a person: it is not asked for twice.
func (s *session) join(ctx context.Context, t *plugin.Target, arguments json.RawMessage, in string) (res plugin.Result, joined bool, err error) {
	hash, err := canon.Hash(arguments)
	if err != nil {
		return res, false, nil // the kernel says what is wrong with them
	}
	rows, _, err := s.api.Calls().Own(ctx, host.CallFilter{Operation: t.Name(), State: host.CallPending, Limit: maxJoined})
	if err != nil {
		return res, false, err
	}
	for _, row := range rows {
		if row.InputHash == hash && row.Origin == string(plugin.OriginMCP) && row.Version == t.Manifest.Version && (in == "" || row.Session == in) {
			res, err = s.api.Calls().Standing(ctx, row.ID)
			return res, err == nil && res.Status == plugin.PendingApproval, err
		}
	}
	return res, false, nil
}

// maxJoined is how many calls that wait are looked through for one to join.
const maxJoined = 200

// progress returns what tells a client of the progress of a call, nil where it did not ask.
func (s *session) progress(ctx context.Context, r *sdk.CallToolRequest) func(plugin.Event) {
	token := r.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	var told atomic.Int64
	return func(e plugin.Event) {
		if e.Kind != plugin.EventProgress || ctx.Err() != nil {
			return
		}
		var said struct {
			Message string  `json:"message"`
			Done    float64 `json:"done"`
			Total   float64 `json:"total"`
		}
		_ = json.Unmarshal(e.Data, &said)
		n := &sdk.ProgressNotificationParams{ProgressToken: token, Message: said.Message, Progress: said.Done, Total: said.Total}
		if n.Message == "" {
			n.Message = e.Message
		}
		if step := told.Add(1); n.Progress == 0 {
			n.Progress = float64(step)
		}
		_ = r.Session.NotifyProgress(ctx, n) // the client may be gone
	}
}
