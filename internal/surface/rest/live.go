package rest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
)

// maxSaid is how many events wait for a reader.
const maxSaid = 1024

// asksForStream reports whether a request would rather have events than a body: they are the first
// that its Accept names.
func asksForStream(r *http.Request) bool {
	first, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	kind, _, err := mime.ParseMediaType(first)
	return err == nil && kind == eventStream && r.Method == http.MethodPost
}

// A live is the answer to a request for a call that is streamed: what the plugin says,
// and at the end what the answer would be otherwise. It begins with the call. What is
// refused before that is answered as ever.
type live struct {
	*server
	w   http.ResponseWriter
	q   *request
	cut func() // ends the request, as if its client had gone

	once   sync.Once
	stream *stream // nil until it begins
	said   chan plugin.Event
	done   chan struct{} // closed when the call was answered
	broken chan struct{} // closed when nothing can be sent any more
	told   sync.WaitGroup
}

// live answers a request with a stream, if it is for a call.
func (s *server) live(w http.ResponseWriter, r *http.Request, q *request) {
	leave, err := s.enter(q.caller)
	if err != nil {
		s.refuse(w, q, err)
		return
	}
	defer leave()
	ctx, cut := context.WithCancel(r.Context())
	defer cut()
	l := &live{server: s, w: w, q: q, cut: cut, said: make(chan plugin.Event, maxSaid), done: make(chan struct{}), broken: make(chan struct{})}
	q.live = l
	r = r.WithContext(ctx)
	r.Header.Set("Accept", "application/json")
	answer := &held{header: w.Header().Clone(), status: http.StatusOK}
	defer func() {
		if fault := recover(); fault != nil { // no part of an answer counts as the result
			s.Log.Error("a request panicked", "path", r.URL.Path, "request_id", q.id, "cause", fmt.Sprint(fault), "stack", string(debug.Stack()))
			answer = &held{header: w.Header().Clone(), status: http.StatusOK}
			s.refuse(answer, q, plugin.Errorf(plugin.CodeInternal, "%s", fault))
		}
		l.end(answer)
	}()
	s.mux.ServeHTTP(answer, r)
}

// hears returns what hears the events of a call, nil where no one asked for them. One
// that has effects does not wait for a reader that is slow, as it does not for one that
// has gone.
func (q *request) hears(waits bool) func(plugin.Event) {
	l := q.live
	if l == nil {
		return nil
	}
	l.once.Do(func() {
		l.stream = l.begin(l.w, l.q)
		l.told.Go(l.tell)
	})
	return func(e plugin.Event) {
		if e.Kind == plugin.EventLog && !l.shows(q) { // for the host
			return
		}
		select {
		case <-l.done:
			return
		default:
		}
		if waits {
			select {
			case l.said <- e:
			case <-l.broken:
			case <-l.done:
			}
			return
		}
		select {
		case l.said <- e:
		default:
			if e.Kind == plugin.EventContent { // which is not left out
				l.cut()
			}
		}
	}
}

// tell sends what is said until the call was answered.
func (l *live) tell() {
	beat := time.NewTicker(l.Beat)
	defer beat.Stop()
	broken := false
	send := func(text []byte) {
		if !broken && l.stream.send(text) != nil {
			broken = true
			close(l.broken)
			l.cut()
		}
	}
	say := func(e plugin.Event) {
		if e.Kind == plugin.EventLog {
			send(appendEvent(nil, "", string(e.Kind), e))
			return
		}
		send(appendEvent(nil, "", string(e.Kind), jsontext.Value(e.Data)))
	}
	send([]byte(":\n\n")) // the reader learns that the call was taken
	for {
		select {
		case e := <-l.said:
			say(e)
		case <-beat.C:
			send([]byte(":\n\n"))
		case <-l.done:
			for {
				select {
				case e := <-l.said:
					say(e)
				default:
					return
				}
			}
		}
	}
}

// end sends the answer: as the last event, or as it is where no stream began.
func (l *live) end(answer *held) {
	close(l.done)
	l.once.Do(func() {})
	l.told.Wait()
	if l.stream == nil {
		maps.Copy(l.w.Header(), answer.header)
		l.w.WriteHeader(answer.status)
		_, _ = l.w.Write(answer.body.Bytes()) // the client may be gone
		return
	}
	name := "result"
	if answer.header.Get("Content-Type") == new(Problem).ContentType("") {
		name = "problem"
	}
	_ = l.stream.send(appendEvent(nil, "", name, jsontext.Value(answer.body.Bytes())))
}

// A held is an answer that is not sent yet.
type held struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (h *held) Header() http.Header { return h.header }

func (h *held) WriteHeader(status int) { h.status = status }

func (h *held) Write(text []byte) (int, error) { return h.body.Write(text) }
