// Package mcp serves the operations of a host to clients of the Model Context Protocol, over
// HTTP and over standard input and output.
//
// A call of a tool enters the kernel as the operation that it names, for the principal of the
// token that came with it: schema, policy, approval and ledger are what they are for every
// other caller, and the protocol adds no right. What a list shows is what its caller may run.
//
// The protocol itself is the official SDK's. No tool is registered with it: each request is
// answered from the catalog as its caller sees it at that moment, and nothing is kept between
// two requests. Revision 2026-07-28 and those before it are answered at the same place.
package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/internal/host"
)

// How tools are listed.
const (
	ListAuto   = ""       // all, where they are at most [Few]; else as by search
	ListAll    = "all"    // every tool, in pages
	ListRouted = "routed" // those that the router chooses for a request that is known before, and what finds others
	ListSearch = "search" // what finds, describes and calls the others
)

// Few is how many tools are listed where nothing says how.
const Few = 40

// A List says which tools a client is shown. It shows less, and never more, than its caller
// may run; what is not shown can be called all the same.
type List struct {
	Mode string // one of the modes
	For  string // the request that ListRouted chooses for
}

// Known reports whether a mode is one.
func (l List) Known() bool {
	return l.Mode == ListAuto || l.Mode == ListAll || l.Mode == ListRouted || l.Mode == ListSearch
}

// Options say how tools are served. Those that are 0 have the values in their comments.
type Options struct {
	List     List
	Profiles map[string]Profile // those that a client may name

	Base string // the address of the host for browsers, without a slash at its end; "" where there is none
	Log  *slog.Logger

	Wait    time.Duration // that a request stays for a call that is on record: 45 s
	RunTime time.Duration // that a request stays for one that is not: 10 min
	Flush   bool          // each answer waits until the call is on record: for a process that ends with its client
}

func (o Options) complete() Options {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Wait = cmp.Or(o.Wait, 45*time.Second)
	o.RunTime = cmp.Or(o.RunTime, 10*time.Minute)
	return o
}

// A session is what one caller asks of one host.
type session struct {
	Options
	profile Profile // that the client names; the zero value where it names none
	api     host.API
	by      host.Caller
	request context.Context // ends when the caller is gone
}

// Handler returns what answers requests over HTTP for one caller, who was authenticated before.
// It keeps nothing between requests.
func Handler(api host.API, by host.Caller, o Options) http.Handler {
	o = o.complete()
	answer := sdk.NewStreamableHTTPHandler(func(r *http.Request) *sdk.Server {
		one, profile := o, Profile{}
		q := r.URL.Query()
		if name := q.Get("profile"); name != "" {
			var known bool
			if profile, known = o.Profiles[name]; !known {
				return nil
			}
			one.List = profile.List
		}
		if q.Has("list") {
			one.List = List{Mode: q.Get("list"), For: q.Get("for")}
		}
		if !one.List.Known() {
			return nil
		}
		return (&session{Options: one, profile: profile, api: api, by: by, request: r.Context()}).server()
	}, &sdk.StreamableHTTPOptions{
		Stateless: true, Logger: o.Log, MaxRequestBodyBytes: -1, PropagateRequestCancellation: true, // bodies and names are bounded and checked before
		DisableLocalhostProtection: true,
	})
	return http.NewCrossOriginProtection().Handler(single(answer))
}

// instructions are what a model reads of the host.
const instructions = "Each tool is an operation of a Mortise host, which checks it against policy and records it. " +
	"A result whose status is pending_approval means that a person is asked: do not call the tool again, " +
	"and ask mortise.call_result for the outcome with the call_id. The same holds for in_progress."

// server returns a server of the SDK that answers for the session.
func (s *session) server() *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "mortise", Title: "Mortise", Version: host.Version}, &sdk.ServerOptions{
		Instructions: instructions, Logger: s.Log,
		Capabilities: &sdk.ServerCapabilities{ // no logging, and no news of lists: they have a time to live
			Tools: &sdk.ToolCapabilities{}, Prompts: &sdk.PromptCapabilities{}, Resources: &sdk.ResourceCapabilities{}, Completions: &sdk.CompletionCapabilities{},
			Extensions: map[string]any{TasksExtension: map[string]any{}},
		},
		SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { c.TTLMs, c.CacheScope = listLife, "private" },
	})
	if err := s.serveTasks(server); err != nil {
		panic(err) // the SDK has taken one of the names
	}
	server.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			switch r := req.(type) {
			case *sdk.ListToolsRequest:
				return s.listTools(ctx, r)
			case *sdk.CallToolRequest:
				res, err := s.callTool(ctx, r)
				if out, is := res.(*sdk.CallToolResult); is && err == nil {
					return typed(ctx, server, next, method, r, out)
				}
				return res, err
			case *sdk.ListPromptsRequest:
				return s.listPrompts(ctx, r)
			case *sdk.GetPromptRequest:
				return s.getPrompt(ctx, r)
			case *sdk.ListResourcesRequest:
				return s.listResources(ctx, r)
			case *sdk.ListResourceTemplatesRequest:
				return s.listTemplates(ctx, r)
			case *sdk.ReadResourceRequest:
				return s.readResource(ctx, r)
			case *sdk.CompleteRequest:
				return s.complete(ctx, r)
			case *sdk.SubscriptionsListenRequest: // it would stay open, and hear nothing
				return nil, unknownMethod(method)
			}
			return next(ctx, method, req)
		}
	})
	return server
}

// typed has the SDK set the type of a result, complete or input_required, which it does for the
// handlers of registered tools alone: the result is that of a tool which is registered for it.
// The server answers one message, see [single], so that no other result is registered meanwhile.
func typed(ctx context.Context, server *sdk.Server, next sdk.MethodHandler, method string, r *sdk.CallToolRequest, out *sdk.CallToolResult) (sdk.Result, error) {
	server.AddTool(&sdk.Tool{Name: typedTool, InputSchema: anyObject}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return out, nil })
	request, params := *r, *r.Params
	params.Name, request.Params = typedTool, &params
	return next(ctx, method, &request)
}

const typedTool = "result"

var anyObject = json.RawMessage(`{"type":"object"}`)

// gone ends with the request that a context is of, which the SDK tells of the newest revision
// alone.
func (s *session) gone(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.request, cancel)
	return ctx, func() { stop(); cancel() }
}
