// Package rest is the host's nouns over HTTP, under /api/v1.
//
// A request names its caller by a bearer token, or else by what [Options.Identify] knows
// of where it comes from. What the caller may
// see and do is decided by package host, as for every surface; the scopes of the token
// and its list of operations only narrow it. The routes, with the scope that each needs,
// are in the OpenAPI document, which is served too.
package rest

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/mortise-dev/mortise/internal/base/clientaddr"
	"github.com/mortise-dev/mortise/internal/base/ratelimit"
	"github.com/mortise-dev/mortise/internal/base/telemetry"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// Prefix is where all routes begin.
const Prefix = "/api/v1/"

// AsHeader names the principal on whose behalf the owner asks, escaped as in a query. It is
// for the owner's socket: a request that comes otherwise and has it is refused.
const AsHeader = "Mortise-As"

// Options say what is served, and within which bounds. Those that are 0 have the values
// in their comments.
type Options struct {
	Host *host.Host
	// Authenticate returns who a token stands for. remote is the address that it came from.
	Authenticate func(ctx context.Context, token, remote string) (host.Caller, error)
	// Address returns the address of the client that sent a request. It is that of the connection
	// if Address is nil.
	Address func(r *http.Request) string
	// Identify returns who sends a request without the header Authorization; known is false
	// where that is not known. It may be nil. What [AsHeader] says is for it alone.
	Identify  func(r *http.Request) (c host.Caller, known bool, err error)
	Log       *slog.Logger
	Telemetry *telemetry.Telemetry // of requests, and what /metrics answers; it may be nil

	// MCP returns what answers a request at [MCPPath] for its caller. There is nothing there
	// where it is nil.
	MCP func(api host.API, by host.Caller) http.Handler
	// Metadata is where a client that has no token learns who gives one (RFC 9728); "" for
	// nowhere. It may be nil.
	Metadata func() string

	Config string // the configuration file, which the owner is told on their socket

	// Named reports whether a name, beside those of this machine, is one by which it is
	// reached where it listens on a loopback address: one that a proxy passes on. It may be
	// nil.
	Named func(name string) bool

	Rate  int                        // requests that a token may make a second: 50
	Burst int                        // and so many at once: 200
	Rates *ratelimit.Limiter[string] // what counts them, in the place of these two; see [Rates]

	Share int // requests of one token that are answered at a time: 128, half of what a host answers; those of a tenant have half as many again, together

	MaxInput int           // bytes of an input: 4 MiB, as the kernel has it
	Room     int64         // bytes of bodies that are held at a time, beyond 64 KiB of each: 64 MiB; a quarter for one token, and half as many again for one tenant
	BodyTime time.Duration // for a body to come: 10 s
	WorkTime time.Duration // for what is no call: 20 s
	RunTime  time.Duration // for a call that its request stays for: 10 min
	Wait     time.Duration // that a request waits for a call that is on record: 30 s
	MaxWait  time.Duration // the longest that a request may ask to wait: 1 min

	Closing   context.Context // its end ends the streams; nil for never
	Streams   int             // streams that are open at a time, half of them of one tenant: 1024
	PerToken  int             // of one token: 16
	Beat      time.Duration   // between two signs of life of a stream: 15 s
	WriteTime time.Duration   // for what is sent on a stream to be taken: 10 s
	Recheck   time.Duration   // after which the token of a stream is looked at again: 1 min
}

// A server answers requests.
type server struct {
	Options
	mux    *verbs
	doc    []byte // the OpenAPI document
	bodies bodyRoom
	open   tally // streams
	busy   tally // other requests that are being answered
}

// New returns what answers requests under [Prefix]. It is safe for concurrent use.
func New(o Options) http.Handler {
	o.Rate = cmp.Or(o.Rate, 50)
	o.Burst = cmp.Or(o.Burst, 200)
	o.Share = cmp.Or(o.Share, 128)
	o.MaxInput = cmp.Or(o.MaxInput, 4<<20)
	o.Room = cmp.Or(o.Room, 64<<20)
	o.BodyTime = cmp.Or(o.BodyTime, 10*time.Second)
	o.WorkTime = cmp.Or(o.WorkTime, 20*time.Second)
	o.RunTime = cmp.Or(o.RunTime, 10*time.Minute)
	o.Wait = cmp.Or(o.Wait, 30*time.Second)
	o.MaxWait = cmp.Or(o.MaxWait, time.Minute)
	o.Streams = cmp.Or(o.Streams, 1024)
	o.PerToken = cmp.Or(o.PerToken, 16)
	o.Beat = cmp.Or(o.Beat, 15*time.Second)
	o.WriteTime = cmp.Or(o.WriteTime, 10*time.Second)
	o.Recheck = cmp.Or(o.Recheck, time.Minute)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Address == nil {
		o.Address = clientaddr.Proxies(nil).Of
	}
	s := &server{Options: o, mux: &verbs{http.NewServeMux(), map[string]place{}}}
	if s.Rates == nil {
		s.Rates = Rates(o.Rate, o.Burst)
	}
	s.doc = s.routes()
	return s
}

// Document returns the OpenAPI document that describes the routes.
func Document() []byte { return New(Options{}).(*server).doc }

// Busy answers a request that there is no room for.
func Busy(w http.ResponseWriter) {
	p := refused(0, plugin.CodeOverloaded, "the host has more requests at hand than it takes")
	p.after(time.Second)
	write(w, p)
}

// Refuse answers a request that does not get as far as the API.
func Refuse(w http.ResponseWriter, code plugin.Code, detail string) {
	write(w, refused(0, code, detail))
}

// BackgroundHeader names, in answers on the owner's socket, the identity of a background host.
const BackgroundHeader = "Mortise-Background"

// EndPath is where the owner's socket of a background host is told to end. No listener of the
// network has it.
const EndPath = "/owner/end"

// A request is one request while it is answered.
type request struct {
	*http.Request
	id      string
	caller  host.Caller
	api     host.API
	route   string // its pattern, once it fitted one
	control *http.ResponseController
	live    *live       // where the answer is a stream
	answer  http.Header // of the answer, once the request fitted a route
}

type requestKey struct{}

// of returns the request that a context is of.
func of(ctx context.Context) *request { return ctx.Value(requestKey{}).(*request) }

// stays lets the answer to a request be written later than those of others.
func (q *request) stays(d time.Duration) {
	_ = q.control.SetWriteDeadline(time.Now().Add(d)) // where there is no connection, nothing is late
}

// ServeHTTP implements [http.Handler].
func (s *server) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	q := &request{Request: r, id: requestID(r), control: http.NewResponseController(to)}
	w, over := s.watch(to, q)
	defer over()
	h := w.Header()
	h.Set("X-Request-Id", q.id)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	defer func() {
		if fault := recover(); fault != nil {
			s.Log.Error("a request panicked", "path", r.URL.Path, "request_id", q.id, "cause", fmt.Sprint(fault), "stack", string(debug.Stack()))
			if w.status == 0 { // else the answer, which may be a stream, has begun
				s.refuse(w, q, plugin.Errorf(plugin.CodeInternal, "%s", fault))
			}
		}
	}()
	if r.URL.Path == MetricsPath && s.Telemetry.Metrics() != nil {
		if err := s.metrics(w, q); err != nil {
			s.refuse(w, q, err)
		}
		return
	}
	r, release, err := s.admit(w, q)
	defer release()
	if err != nil {
		if q.ContentLength != 0 { // net/http reads some of a body that is left before it sends the answer
			_ = q.control.SetReadDeadline(time.Now().Add(unreadTime))
		}
		s.refuse(w, q, err)
		return
	}
	if s.atMCP(r) {
		s.mcp(w, r, q)
		return
	}
	if asksForStream(r) {
		s.live(w, r, q)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// admit passes a request through what stands before all routes, the cheapest first, and
// returns it with its body in memory. The token has the scope of the route before anything of
// the body is read. release gives back what the request holds.
func (s *server) admit(w http.ResponseWriter, q *request) (r *http.Request, release func(), err error) {
	release = func() {}
	if err := s.addressed(q.Request); err != nil {
		return nil, release, err
	}
	if q.caller, err = s.authenticate(q.Request); err != nil {
		return nil, release, err
	}
	if err := s.often(&q.caller); err != nil {
		return nil, release, err
	}
	if release, err = s.share(&q.caller, q.Request); err != nil {
		return nil, release, err
	}
	q.api = s.Host.For(q.caller)
	at := place{MCPPath, host.ScopeRun} // a token is for it that may run something
	if r = q.Request; !s.atMCP(r) {
		r, at, err = s.mux.route(r)
	}
	if err != nil {
		return nil, release, err
	}
	q.route = at.path
	if err := holds(q.caller, at.scope); err != nil {
		return nil, release, err
	}
	for name, values := range r.URL.Query() {
		if len(values) > 1 {
			return nil, release, refused(http.StatusBadRequest, plugin.CodeInvalidInput, "a parameter is given once", Place{Pointer: name, Detail: "it is there more than once"})
		}
	}
	body, read, err := s.body(w, r, &q.caller)
	leave := release
	release = func() { read(); leave() }
	if err != nil {
		return nil, release, err
	}
	r.Body = body
	q.Request = r
	return r.WithContext(context.WithValue(r.Context(), requestKey{}, q)), release, nil
}

// refuse answers with an error, outside a route.
func (s *server) refuse(w http.ResponseWriter, q *request, err error) {
	write(w, s.problem(q, err))
}

func write(w http.ResponseWriter, p *Problem) {
	h := w.Header()
	for name, values := range p.header {
		h[name] = values
	}
	h.Set("Content-Type", p.ContentType("application/json"))
	w.WriteHeader(p.Status)
	_ = format.Marshal(w, p) // the client may be gone
}

var _ huma.StatusError = (*Problem)(nil)
