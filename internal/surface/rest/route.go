package rest

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// anyScope is the scope of a route that every token may be used for.
const anyScope = "any"

// A route is one method at one path.
type route struct {
	method, path string
	id           string // of the operation in the document
	scope        string // that the token needs
	about        string
	stays        bool   // its request may stay for a call, and bounds its time itself
	accepts      bool   // it may answer 202
	kind         string // of what it answers, where that is not the JSON of its body

	told []reflect.Type // the data of the events that it streams, if it does
}

// routes registers all routes and returns the document that describes them.
func (s *server) routes() []byte {
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{Title: "Mortise", Version: "1", Description: "What a Mortise host has and does, for programs. docs/api.md says how to use it. " +
			"Each operation names the scope that a token needs for it in x-scope."},
		Components: &huma.Components{
			Schemas:         huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer),
			SecuritySchemes: map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer", Description: "An API token, mrt_..."}},
		},
		Security: []map[string][]string{{"token": {}}},
	}
	api := humago.New(s.mux, huma.Config{
		OpenAPI: doc, Formats: map[string]huma.Format{"application/json": format, "json": format}, DefaultFormat: "application/json",
		RejectUnknownQueryParameters: true, Transformers: []huma.Transformer{s.spell},
	})
	r := &registry{s, api}
	r.document()
	r.me()
	r.operations()
	r.making()
	r.plugins()
	r.calls()
	r.decisions()
	r.approvals()
	r.tokens()
	r.users()
	r.tenants()
	r.plans()
	r.adapters()
	r.ledger()
	r.policies()
	r.secrets()
	r.accounts()
	r.identities()
	r.models()
	r.quotas()
	r.knowledge()
	r.references()
	r.recovery()
	r.retention()
	r.events()
	r.sessions()
	r.agents()
	r.feeds()
	r.choosing()
	for _, unused := range []string{"ErrorModel", "ErrorDetail"} { // huma's own
		delete(doc.Components.Schemas.Map(), unused)
	}
	text, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		panic(err) // it is the same each time, and a test reads it
	}
	return append(text, '\n')
}

// A registry is where the routes of each noun are registered.
type registry struct {
	*server
	api huma.API
}

// add registers a route. Its scope is in the document, and [server.admit] asks for it.
func add[I, O any](r *registry, at route, do func(ctx context.Context, q *request, in *I) (*O, error)) {
	op := r.operation(at)
	answer := describe(r.api.OpenAPI().Components.Schemas, &op, reflect.TypeFor[O]())
	huma.Register(r.api, op, func(ctx context.Context, in *I) (*reply, error) {
		q := of(ctx)
		ctx, cancel := r.bounded(ctx, at)
		defer cancel()
		out, err := do(ctx, q, in)
		if err != nil {
			return nil, r.problem(q, err)
		}
		if out == nil { // it was streamed
			return nil, nil
		}
		return answer.reply(q, reflect.ValueOf(out).Elem()), nil
	})
	r.complete(at)
}

// addStream registers a route that writes its answer itself.
func addStream[I any](r *registry, at route, do func(ctx context.Context, q *request, in *I) (*Streamed, error)) {
	huma.Register(r.api, r.operation(at), func(ctx context.Context, in *I) (*Streamed, error) {
		q := of(ctx)
		ctx, cancel := r.bounded(ctx, at)
		defer cancel()
		out, err := do(ctx, q, in)
		if err != nil {
			return nil, r.problem(q, err)
		}
		return out, nil
	})
	r.complete(at)
}

// bounded bounds the time of a request, where it does not do that itself.
func (r *registry) bounded(ctx context.Context, at route) (context.Context, context.CancelFunc) {
	if at.stays {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, r.WorkTime)
}

// operation is what huma is told of a route.
func (r *registry) operation(at route) huma.Operation {
	r.mux.enter(at)
	answer := &huma.MediaType{Schema: r.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Problem](), true, "Problem")}
	op := huma.Operation{
		Method: at.method, Path: Prefix + at.path, OperationID: at.id, Summary: at.about, BodyReadTimeout: -1, MaxBodyBytes: -1,
		Extensions: map[string]any{"x-scope": at.scope},
		Responses: map[string]*huma.Response{
			"200":     {Description: "OK"},
			"default": {Description: "The host refused the request.", Content: map[string]*huma.MediaType{"application/problem+json": answer}},
		},
		Middlewares: huma.Middlewares{func(ctx huma.Context, next func(huma.Context)) {
			_, w := humago.Unwrap(ctx)
			of(ctx.Context()).answer = w.Header()
			next(ctx)
		}},
	}
	if at.kind != "" {
		op.Responses["200"].Content = map[string]*huma.MediaType{at.kind: {Schema: &huma.Schema{}}}
	}
	if at.kind == eventStream {
		op.Responses["200"].Content[eventStream] = r.eventsOf(at.told)
	}
	return op
}

// complete adds to the document of a registered route how else it may answer.
func (r *registry) complete(at route) {
	if at.accepts {
		item := r.api.OpenAPI().Paths[Prefix+at.path]
		done := item.Post.Responses["200"]
		item.Post.Responses["202"] = &huma.Response{Description: "The call has not ended. Location is where it is found.", Content: done.Content, Headers: done.Headers}
	}
	if events := r.eventsOf(at.told); events != nil && at.kind == "" {
		done := r.api.OpenAPI().Paths[Prefix+at.path].Post.Responses["200"]
		done.Content = maps.Clone(done.Content)
		done.Content[eventStream] = events
	}
}

// staying gives a request that may last as long as a call its time.
func (r *registry) staying(ctx context.Context, q *request) (context.Context, context.CancelFunc) {
	q.stays(r.RunTime)
	return context.WithTimeout(ctx, r.RunTime)
}

// holds returns nil where a token has a scope.
func holds(c host.Caller, scope string) error {
	if scope == anyScope || c.Has(scope) {
		return nil
	}
	p := refused(http.StatusForbidden, plugin.CodeScopeDenied, "the token has not the scope "+scope+", which this route needs")
	p.header.Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+scope+`"`)
	return p
}

// owns refuses a caller who is not at the socket of the owner, where a request asks for what
// is the owner's alone: what names something of the machine of the host.
func (q *request) owns(what string, asked bool) error {
	if !asked || q.caller.Owns {
		return nil
	}
	return refused(http.StatusForbidden, plugin.CodePolicyDenied, what+" is for the owner, on the socket of the data directory")
}

// A documented is the document that describes the routes.
type documented struct {
	Type    string `header:"Content-Type" hidden:"true"`
	Version string `header:"X-Mortise-Version" doc:"The release of the host."`
	Body    []byte
}

func (r *registry) document() {
	at := route{method: "GET", path: "openapi.json", id: "get-document", scope: host.ScopeRead, kind: "application/openapi+json", about: "This document"}
	add(r, at, func(context.Context, *request, *struct{}) (*documented, error) {
		return &documented{"application/openapi+json", host.Version, r.doc}, nil
	})
}
