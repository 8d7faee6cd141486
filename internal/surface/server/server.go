// Package server is what the host answers on the network: it reads requests, has
// them done, and writes what became of them.
//
// That is the door for deliveries of channels (HK-12), two questions about the host's
// health, and whatever [Options.API] and [Options.SignIn] answer:
//
//	POST /api/agents/{id}/channels/{namespace}/webhook
//	     /api/v1/...
//	     /auth/...
//	GET  /healthz
//	GET  /readyz
//	GET  /metrics
//	POST /mcp
//	GET  /.well-known/oauth-protected-resource
//
// A sender is unauthenticated, so everything is bounded before a delivery is looked at: how many
// at a time, how much and for how long. The receiver decides whether a delivery is genuine, from
// the bytes as they came; only one that is counts towards the rate of its channel.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/base/clientaddr"
	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/internal/base/ratelimit"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/internal/surface/signin"
	"github.com/mortise-dev/mortise/plugin"
)

// MaxBody is how many bytes a delivery may have.
const MaxBody = 1 << 20

// A Receiver takes deliveries of channels in. Once it returns without an error
// the message is kept. It calls proved once the sender has proved who it is, and takes nothing in
// if proved fails.
type Receiver interface {
	Receive(ctx context.Context, tenant, agent, namespace string, header http.Header, body []byte, proved func() error) (Received, error)
}

// Received is what became of a delivery.
type Received struct {
	Session   string // in which it has its turn
	Seen      bool   // it came in before
	Ignored   bool   // it is not a message of a user
	Challenge string // to be answered, in place of anything else
}

// Options say what is answered, and within which bounds. Those that are 0 have
// the values in their comments.
type Options struct {
	Agents  Receiver
	Tenant  string                      // whose agents they are
	Health  func(context.Context) error // nil while the host can do what it is for
	Log     *slog.Logger
	Address func(r *http.Request) string               // returns the address of the client; that of the connection if it is nil
	Issuers func() (resource string, issuers []string) // what [MetadataPath] says; nothing where it is nil, or there are none
	SignIn  func() http.Handler                        // returns what answers under /auth/ now, nil for nothing; likewise where it is nil
	API     http.Handler                               // answers under /api/v1/, for callers that it knows; there is nothing where it is nil
	Console http.Handler                               // answers what is read at every other path, while SignIn has something; there is nothing where it is nil

	BodyTime   time.Duration // for a body to come: 10 s
	UnreadTime time.Duration // for the rest of an unwanted body to come: 1 s
	WorkTime   time.Duration // for a delivery that has come to be kept: 20 s
	AtOnce     int           // deliveries before their senders are known, those that are being done, and requests under /api/v1/: 256 of each
	Rate       float64       // deliveries of the known sender of one channel a second: 60
	Burst      float64       // and more than that for a moment: 120
}

// New returns what answers requests. It is safe for concurrent use.
func New(o Options) http.Handler {
	o.BodyTime = cmp.Or(o.BodyTime, 10*time.Second)
	o.UnreadTime = cmp.Or(o.UnreadTime, time.Second)
	o.WorkTime = cmp.Or(o.WorkTime, 20*time.Second)
	o.AtOnce = cmp.Or(o.AtOnce, 256)
	if o.Address == nil {
		o.Address = clientaddr.Proxies(nil).Of
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &server{Options: o, slots: make(chan struct{}, o.AtOnce), senders: newSenders(o.AtOnce), proofs: make(chan struct{}, maxProofs), calls: make(chan struct{}, o.AtOnce), signs: make(chan struct{}, o.AtOnce), rates: ratelimit.New[string](cmp.Or(o.Rate, 60), cmp.Or(o.Burst, 120), maxRates)}
}

// maxRates is how many channels are counted at a time. Beyond that one is forgotten.
// Only deliveries of known senders are counted.
const maxRates = 4096

type server struct {
	Options
	slots   chan struct{}              // one for each delivery of a known sender that is being done
	senders *senders                   // of the deliveries before that
	proofs  chan struct{}              // one for each delivery whose signature is being verified
	signs   chan struct{}              // one for each request under /auth/, some of which wait for a provider
	calls   chan struct{}              // one for each request under /api/v1/, some of which wait
	rates   *ratelimit.Limiter[string] // of the deliveries of each channel
}

// channelPath is the one way to write where deliveries go. No segment of it can
// be escaped, empty or relative, so that everybody between the sender and the
// host reads the same.
var channelPath = pattern.New(`^/api/agents/([a-z0-9][a-z0-9_-]{0,63})/channels/([a-z0-9][a-z0-9_-]{0,31})/webhook$`)

// ServeHTTP implements [http.Handler].
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if fault := recover(); fault != nil {
			s.Log.Error("a request panicked", "path", r.URL.Path, "cause", fmt.Sprint(fault), "stack", string(debug.Stack()))
			fail(w, plugin.Errorf(plugin.CodeInternal, "%s", fault))
		}
	}()
	if r.ContentLength != 0 { // what is not read of a body is read before the answer is sent, for no longer than this
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.UnreadTime))
	}
	switch path := r.URL.EscapedPath(); {
	case path == "/healthz":
		if only(w, r, http.MethodGet, http.MethodHead) {
			write(w, http.StatusOK, map[string]any{"status": "ok"})
		}
	case path == "/readyz":
		if only(w, r, http.MethodGet, http.MethodHead) {
			s.ready(w, r)
		}
	case s.API != nil && (strings.HasPrefix(path, rest.Prefix) || path == rest.MetricsPath || path == rest.MCPPath):
		s.answer(w, r, s.API, s.calls)
	case s.Issuers != nil && (path == MetadataPath || path == MetadataPath+rest.MCPPath):
		if only(w, r, http.MethodGet, http.MethodHead) {
			s.metadata(w)
		}
	case s.signIn() != nil && strings.HasPrefix(path, signin.Prefix):
		s.answer(w, r, s.signIn(), s.signs)
	default:
		names := channelPath.FindStringSubmatch(path)
		if names == nil && s.Console != nil && s.signIn() != nil && !strings.HasPrefix(path, "/api/") {
			s.Console.ServeHTTP(w, r)
			return
		}
		if names == nil {
			fail(w, plugin.Errorf(plugin.CodeNotFound, "there is nothing at this path"))
			return
		}
		if only(w, r, http.MethodPost) {
			s.channel(w, r, names[1], names[2])
		}
	}
}

// signIn returns what answers under /auth/ now.
func (s *server) signIn() http.Handler {
	if s.SignIn == nil {
		return nil
	}
	return s.SignIn()
}

// answer has a request under /api/v1/ or /auth/ answered, where one of its slots is free.
// Streams are counted by the API.
func (s *server) answer(w http.ResponseWriter, r *http.Request, h http.Handler, slots chan struct{}) {
	if rest.Follows(r) {
		h.ServeHTTP(w, r)
		return
	}
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
		h.ServeHTTP(w, r)
	default:
		rest.Busy(w)
	}
}

// only refuses all methods but some, and reports whether the request's is one.
func only(w http.ResponseWriter, r *http.Request, methods ...string) bool {
	for _, m := range methods {
		if r.Method == m {
			return true
		}
	}
	w.Header().Set("Allow", strings.Join(methods, ", "))
	write(w, http.StatusMethodNotAllowed, errorBody(plugin.CodeInvalidInput, "this path answers "+strings.Join(methods, " and ")+" alone"))
	return false
}

// ready says whether the host can do what it is for, and not why it cannot: its
// log has that.
func (s *server) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	if s.Health != nil {
		if err := s.Health(ctx); err != nil {
			s.Log.Warn("the host is not ready", "cause", err.Error())
			write(w, http.StatusServiceUnavailable, map[string]any{"status": "not ready"})
			return
		}
	}
	write(w, http.StatusOK, map[string]any{"status": "ready"})
}

// channel takes a delivery in.
func (s *server) channel(w http.ResponseWriter, r *http.Request, agent, namespace string) {
	got, err := s.receive(w, r, agent, namespace)
	switch {
	case err != nil:
		s.refused(w, r, err)
	case got.Challenge != "":
		write(w, http.StatusOK, map[string]any{"challenge": got.Challenge})
	case got.Ignored:
		write(w, http.StatusOK, map[string]any{"ignored": true})
	case got.Seen:
		write(w, http.StatusOK, map[string]any{"seen": true})
	default:
		write(w, http.StatusAccepted, map[string]any{"session": got.Session})
	}
}

// receive passes a delivery through the bounds, the cheapest first, and hands it over. Until the
// sender has proved who it is, it uses up nothing that a channel's own sender needs.
func (s *server) receive(w http.ResponseWriter, r *http.Request, agent, namespace string) (got Received, err error) {
	if err := readable(r); err != nil {
		return got, err
	}
	if r.ContentLength > MaxBody {
		return got, errTooLarge
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(s.BodyTime)) // where there is no connection, nothing is slow
	in, err := s.senders.enter(http.MaxBytesReader(w, r.Body, MaxBody), clientaddr.Group(s.Address(r)), func() { _ = control.SetReadDeadline(longAgo) })
	if err != nil {
		_ = control.SetReadDeadline(time.Now().Add(s.UnreadTime))
		return got, err
	}
	defer in.leave()
	body, err := s.body(w, control, in)
	if err != nil {
		return got, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.WorkTime)
	defer cancel()
	select {
	case s.proofs <- struct{}{}:
	case <-ctx.Done():
		return got, errBusy
	}
	verified := sync.OnceFunc(func() { <-s.proofs })
	defer verified()
	done := func() {}
	defer func() { done() }()
	return s.Agents.Receive(ctx, s.Tenant, agent, namespace, r.Header, body, func() (err error) {
		verified()
		in.prove()
		done, err = s.begin(agent + "/" + namespace)
		return err
	})
}

// begin counts a delivery whose sender has proved who it is, within the rate of its channel and
// the number that are worked on at a time.
func (s *server) begin(channel string) (done func(), err error) {
	select {
	case s.slots <- struct{}{}:
	default:
		return func() {}, errBusy
	}
	done = func() { <-s.slots }
	if wait := s.rates.Take(channel, 1, time.Now()); wait > 0 {
		return done, &plugin.Error{Code: plugin.CodeRateLimited, Message: "this channel gets more deliveries than it takes", RetryAfter: wait}
	}
	return done, nil
}

// A refusal is an error that HTTP has a status of its own for.
type refusal struct {
	status int
	err    *plugin.Error
}

func (r refusal) Error() string { return r.err.Error() }

func (r refusal) Unwrap() error { return r.err }

// Malformed returns err, of a delivery that has no one reading, with the status
// for that.
func Malformed(err error) error { return refusal{http.StatusBadRequest, plugin.AsError(err)} }

// readable refuses what is not JSON as it is.
func readable(r *http.Request) error {
	refuse := func(format string, args ...any) error {
		return refusal{http.StatusUnsupportedMediaType, plugin.Errorf(plugin.CodeInvalidInput, format, args...)}
	}
	if len(r.Header.Values("Content-Encoding")) > 0 {
		return refuse("the body of a delivery is sent as it is, without Content-Encoding")
	}
	types := r.Header.Values("Content-Type")
	if len(types) != 1 {
		return refuse("a delivery has one Content-Type, application/json; this one has %d", len(types))
	}
	kind, params, err := mime.ParseMediaType(types[0])
	charset, said := params["charset"]
	if err != nil || kind != "application/json" || said && !strings.EqualFold(charset, "utf-8") {
		return refuse("a delivery is application/json in UTF-8, not %.80q", types[0])
	}
	return nil
}

var errTooLarge = plugin.Errorf(plugin.CodeInputTooLarge, "a delivery has at most %d bytes", MaxBody)

// longAgo is a deadline that has passed.
var longAgo = time.Unix(1, 0)

// body reads the body of a request, within the bounds of size, time and room.
func (s *server) body(w http.ResponseWriter, control *http.ResponseController, in *sender) ([]byte, error) {
	body, err := io.ReadAll(in)
	if err == nil {
		err = in.arrive()
	}
	var large *http.MaxBytesError
	switch {
	case err == nil:
		_ = control.SetReadDeadline(time.Time{}) // else the request would end with it
		return body, nil
	case errors.As(err, &large):
		return nil, errTooLarge
	case errors.Is(err, errNoRoom):
		in.leave()
		_ = control.SetReadDeadline(time.Now().Add(s.UnreadTime))
		_, _ = io.Copy(io.Discard, in.Reader) // a connection closed with bytes unread is reset, and its sender never sees the refusal
		w.Header().Set("Connection", "close")
		return nil, errNoRoom
	}
	w.Header().Set("Connection", "close")
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, refusal{http.StatusRequestTimeout, plugin.Errorf(plugin.CodeTimeout, "the body of the delivery did not come whole within %s", s.BodyTime)}
	}
	return nil, refusal{http.StatusBadRequest, plugin.Errorf(plugin.CodeInvalidInput, "the body of the delivery did not come whole: %w", err)}
}

// refused answers with an error. What is the host's own trouble is told to its
// log; a sender hears of it only that there is some.
func (s *server) refused(w http.ResponseWriter, r *http.Request, err error) {
	level := slog.LevelInfo
	if statusOf(err) >= http.StatusInternalServerError {
		level = slog.LevelWarn
	}
	s.Log.Log(r.Context(), level, "a delivery was not taken", "path", r.URL.Path, "from", s.Address(r), "code", plugin.CodeOf(err), "cause", err.Error())
	fail(w, err)
}
