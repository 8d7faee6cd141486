package rest

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

const (
	eventStream = "text/event-stream"
	retryAfter  = "retry: 2000\n" // milliseconds until a reader whose stream was cut comes again
)

// Follows reports whether a request is for a stream that stays open for as long as its
// reader likes. [New] bounds those itself.
func Follows(r *http.Request) bool {
	rest, ours := strings.CutPrefix(r.URL.Path, Prefix)
	return ours && r.Method == http.MethodGet && (rest == "events" || strings.HasPrefix(rest, "calls/") && strings.HasSuffix(rest, "/events"))
}

// The ends of a stream.
var (
	errCut     = errors.New("the reader does not take what is sent to it")
	errClosing = errors.New("the host stops")
	errBeat    = errors.New("it is time for a sign of life")
	errRights  = errors.New("the rights of the caller changed; come again with the id of the last event")
)

// A stream is an answer of server-sent events. It is safe for concurrent use.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	limit   time.Duration // for one write

	mu  sync.Mutex
	err error // why nothing more is sent
}

// begin starts the answer.
func (s *server) begin(w http.ResponseWriter, q *request) *stream {
	h := w.Header()
	h.Set("Content-Type", eventStream)
	h.Set("X-Accel-Buffering", "no") // a proxy passes each event on
	w.WriteHeader(http.StatusOK)
	return &stream{w: w, control: q.control, limit: s.WriteTime}
}

// send writes whole events, within a time that is bounded. After an error nothing more is sent.
func (t *stream) send(text []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return t.err
	}
	_ = t.control.SetWriteDeadline(time.Now().Add(t.limit)) // where there is no connection, nothing is late
	_, err := t.w.Write(text)
	if err == nil {
		if err = t.control.Flush(); errors.Is(err, http.ErrNotSupported) {
			err = nil
		}
	}
	if err != nil {
		t.err = errCut
	}
	return t.err
}

// appendEvent appends an event to text. Its data is one line of JSON.
func appendEvent(text []byte, id, name string, data any) []byte {
	if id != "" {
		text = append(text, "id: "+id+"\n"...)
	}
	text = append(text, "event: "+name+"\ndata: "...)
	raw, ready := data.(jsontext.Value)
	if !ready {
		var err error
		if raw, err = json.Marshal(data, json.Deterministic(true)); err != nil {
			raw = jsontext.Value("{}")
		}
	}
	if raw = raw.Clone(); raw.Compact() != nil { // a line break would end the data
		raw = jsontext.Value("{}")
	}
	return append(append(text, raw...), "\n\n"...)
}

// eventsOf describes a stream whose events have data of some types; nil if there are none.
func (r *registry) eventsOf(types []reflect.Type) *huma.MediaType {
	if len(types) == 0 {
		return nil
	}
	var data []*huma.Schema
	for _, one := range types {
		data = append(data, r.api.OpenAPI().Components.Schemas.Schema(one, true, one.Name()))
	}
	return &huma.MediaType{Schema: &huma.Schema{
		Type: "string", Description: "Server-sent events; x-event-data has the forms that their data can have.", Extensions: map[string]any{"x-event-data": data},
	}}
}

// enter counts a stream in, where its token and the host have room for one more.
func (s *server) enter(c host.Caller) (leave func(), err error) {
	by, tenant, n := countedAs(&c), s.tenantOf(&c), &s.open
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.by[by] >= s.PerToken {
		return nil, &plugin.Error{Code: plugin.CodeRateLimited, Message: "the token has as many streams open as it may", RetryAfter: 2 * time.Second}
	}
	if tenant != "" && n.by[tenant] >= s.Streams/2 {
		return nil, &plugin.Error{Code: plugin.CodeRateLimited, Message: "the tenant has as many streams open as it may", RetryAfter: 2 * time.Second}
	}
	if n.all >= s.Streams {
		return nil, &plugin.Error{Code: plugin.CodeOverloaded, Message: "the host has as many streams open as it takes", RetryAfter: 2 * time.Second}
	}
	return n.add(by, tenant), nil
}

// attached returns a context that also ends when the host stops.
func (s *server) attached(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := func() bool { return true }
	if s.Closing != nil {
		stop = context.AfterFunc(s.Closing, func() { cancel(errClosing) })
	}
	return ctx, func() { stop(); cancel(nil) }
}

// firstCheck is when a token is looked at again for the first time: what was believed of
// it when the stream was opened is not believed so long.
const firstCheck = 2 * time.Second

// still returns nil while the token of a request is good for a scope, and the rights that it
// gives are those with which the request began, as far as that can be found out.
func (s *server) still(q *request, scope string) error {
	caller, err := s.authenticate(q.Request)
	if err == nil {
		if err = holds(caller, scope); err == nil && !caller.SameRights(&q.caller) {
			err = errRights
		}
		return err
	}
	if p := new(Problem); errors.As(err, &p) && p.Code == plugin.CodeUnauthenticated {
		return err
	}
	return nil
}

// keep sends a sign of life now and then, and ends the stream of a token that is not good any more,
// until ctx ends. stop waits for that.
func (s *server) keep(ctx context.Context, t *stream, q *request, scope string) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		check := time.Now().Add(firstCheck)
		for {
			host.Pause(ctx, s.Beat)
			if ctx.Err() != nil {
				return
			}
			if err := t.send([]byte(":\n\n")); err != nil {
				cancel(err)
				return
			}
			if time.Now().Before(check) {
				continue
			}
			check = time.Now().Add(s.Recheck)
			if err := s.still(q, scope); err != nil {
				cancel(err)
				return
			}
		}
	})
	return ctx, func() { cancel(nil); done.Wait() }
}

// last says why a stream ends, to who still reads it.
func (t *stream) last(why error) {
	_ = t.send(bytes.Join([][]byte{[]byte(":"), []byte(strings.ReplaceAll(why.Error(), "\n", " ")), []byte("\n\n")}, nil))
}
