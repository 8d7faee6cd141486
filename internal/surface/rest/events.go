package rest

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// A Reset is told to a reader whose last event is not at hand any more: what came since
// is not told, and has to be read from the nouns.
type Reset struct {
	Reason string `json:"reason"`
}

// An Event is something that happened to a noun. What the noun holds is read from it.
type Event struct {
	Type  string    `json:"type" doc:"What happened: the kind of the entry in the ledger, such as call.succeeded; or ledger.head." example:"call.succeeded"`
	Noun  string    `json:"noun" enum:"call,approval,plan,agent,plugin,ledger"`
	ID    string    `json:"id" doc:"Of the noun; name@version of a plugin, and empty for the ledger."`
	Of    string    `json:"of,omitzero" doc:"The call or plan that an approval is for."`
	At    time.Time `json:"at"`
	Entry string    `json:"entry,omitzero" doc:"The entry, CHAIN/SEQ: the same on every node." example:"1/204"`
	Heads []Head    `json:"chains,omitzero" doc:"The newest entry of each chain, of ledger.head alone."`
}

func eventOf(e *host.Event) Event {
	event := Event{Type: e.Type, Noun: e.Noun, ID: e.Name, Of: e.Of, At: e.At, Entry: e.Entry}
	for _, h := range e.Heads {
		event.Heads = append(event.Heads, Head(h))
	}
	return event
}

// Streamed is an answer that is written piece by piece: server-sent events, or a file.
type Streamed struct {
	Body func(huma.Context)
}

func (r *registry) events() {
	addStream(r, route{
		method: "GET", path: "events", id: "follow-events", scope: host.ScopeRead, stays: true, kind: eventStream, told: []reflect.Type{reflect.TypeFor[Event](), reflect.TypeFor[Reset]()},
		about: "What happens to calls, approvals, plans, agents and plugins that the caller may see, and where the ledger ends, as it happens",
	}, r.follow)
	addStream(r, route{
		method: "GET", path: "calls/{id}/events", id: "follow-call", scope: host.ScopeRead, stays: true, kind: eventStream, told: []reflect.Type{reflect.TypeFor[CallEvent](), reflect.TypeFor[Outcome]()},
		about: "What happened to a call and what happens to it, until its end, which is the event result",
	}, r.followCall)
}

func (r *registry) follow(ctx context.Context, q *request, in *struct {
	Types string `query:"types" maxLength:"1000" doc:"Nouns (call, approval, plan, agent, plugin, ledger) and types of events such as call.failed, with commas; all if empty." example:"call,approval.requested"`
	After string `query:"after" maxLength:"4000" doc:"The id of an event. Only those that come after it."`
	Last  string `header:"Last-Event-ID" maxLength:"16000" doc:"The same, and counts where both are there: a browser that comes again sends it."`
}) (*Streamed, error) {
	query := host.EventQuery{After: in.After}
	if in.Last != "" {
		query.After = in.Last
	}
	if in.Types != "" {
		query.Types = strings.Split(in.Types, ",")
	}
	leave, err := r.enter(q.caller)
	if err != nil {
		return nil, err
	}
	events, lost, err := q.api.Events().Open(ctx, query)
	if err != nil {
		leave()
		return nil, err
	}
	return &Streamed{func(at huma.Context) {
		defer leave()
		defer events.Close()
		_, w := humago.Unwrap(at)
		t := r.begin(w, q)
		if q.Method == http.MethodHead {
			return
		}
		ctx, end := r.attached(ctx)
		defer end()
		text := []byte(retryAfter + "id: " + events.ID() + "\n\n")
		if lost {
			text = appendEvent(text, events.ID(), "reset", Reset{"the events after the one that was named are not at hand; read the nouns that matter again"})
		}
		err := r.tell(ctx, t, q, events, text)
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		r.ended(q, t, err)
	}}, nil
}

// ended says why a stream ends: to its reader, and to the log where that is the host's own trouble.
func (r *registry) ended(q *request, t *stream, err error) {
	var refusal *Problem // of the token, which was looked at again
	switch {
	case errors.Is(err, errCut), q.Context().Err() != nil: // no one reads
	case errors.Is(err, errClosing), errors.Is(err, errRights):
		t.last(err)
	case errors.As(err, &refusal), plugin.CodeOf(err) == plugin.CodeUnauthenticated:
		t.last(errors.New("the token is not valid any more"))
	default:
		_ = r.problem(q, err) // for the log
		t.last(errors.New("the stream is interrupted; come again with the id of the last event"))
	}
}

// maxPiece is how many bytes of events are gathered before they are sent.
const maxPiece = 16 << 10

// tell sends events as they come, beginning with a text, until that ends with an error.
func (r *registry) tell(ctx context.Context, t *stream, q *request, events *host.EventStream, text []byte) error {
	told := events.ID()
	check, beat := time.Now().Add(firstCheck), time.Now().Add(r.Beat)
	for {
		e, err := events.Next(ctx, nil)
		if err == nil && e.Type == "" || len(text) > maxPiece {
			if len(text) > 0 {
				if err := t.send(text); err != nil {
					return err
				}
				text = text[:0]
			}
			if now := time.Now(); now.After(check) {
				check = now.Add(r.Recheck)
				if err := r.still(q, host.ScopeRead); err != nil {
					return err
				}
			}
			if err == nil && e.Type == "" {
				next := beat
				if check.Before(beat) {
					next = check
				}
				wait, cancel := context.WithDeadlineCause(ctx, next, errBeat)
				e, err = events.Next(ctx, wait)
				cancel()
			}
		}
		switch {
		case errors.Is(err, errBeat):
			if time.Now().Before(beat) { // it was for the check
				continue
			}
			beat = time.Now().Add(r.Beat)
			text = append(text, ":\n"...)
			if id := events.ID(); id != told { // what came since was not for this reader, who need not hear of it again
				text, told = append(text, "id: "+id+"\n"...), id
			}
			text = append(text, '\n')
		case err != nil:
			return err
		default:
			if e.ID != "" {
				told = e.ID
			}
			text = appendEvent(text, e.ID, e.Type, eventOf(&e))
		}
	}
}

// A CallEvent is an entry of the ledger about a call.
type CallEvent struct {
	Type  plugin.EntryKind `json:"type"`
	At    time.Time        `json:"at"`
	Chain int64            `json:"chain"`
	Seq   int64            `json:"seq"`
	Entry *plugin.Entry    `json:"entry,omitzero" doc:"The whole entry, where the request asks for entries."`
}

func (r *registry) followCall(ctx context.Context, q *request, in *struct {
	CallNamed
	Entries bool `query:"entries" doc:"With the entries as the ledger has them."`
	Full    bool `query:"full" doc:"With the whole result in the last event."`
}) (*Streamed, error) {
	if _, err := r.call(ctx, q, in.ID); err != nil {
		return nil, err
	}
	leave, err := r.enter(q.caller)
	if err != nil {
		return nil, err
	}
	return &Streamed{func(at huma.Context) {
		defer leave()
		_, w := humago.Unwrap(at)
		t := r.begin(w, q)
		if q.Method == http.MethodHead {
			return
		}
		ctx, end := r.attached(ctx)
		defer end()
		ctx, stop := r.keep(ctx, t, q, host.ScopeRead)
		defer stop()
		over, err := q.api.Calls().Follow(ctx, in.ID, func(e *plugin.Entry) {
			_ = t.send(appendEvent(nil, "", string(e.Kind), CallEvent{e.Kind, e.At, e.Chain, e.Seq, entryIf(in.Entries, e)})) // the next sign of life finds out
		})
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		} else if over || plugin.CodeOf(err) == plugin.CodeApprovalExpired {
			res, failure := r.await(ctx, q, in.ID, r.WorkTime)
			if failure == nil || res.CallID != "" {
				outcome := outcomeOf(res, failure, false)
				if in.Full {
					outcome.whole(res, failure)
				}
				_ = t.send(appendEvent(nil, "", "result", outcome))
				return
			}
			err = failure
		}
		r.ended(q, t, err)
	}}, nil
}

// entryIf is a copy of an entry, where it is asked for.
func entryIf(asked bool, e *plugin.Entry) *plugin.Entry {
	if !asked {
		return nil
	}
	whole := *e
	return &whole
}
