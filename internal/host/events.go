package host

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/core/tail"
	"github.com/mortise-dev/mortise/plugin"
)

// The nouns that events are about. An event of the ledger says where its chains end.
const (
	EventCall     = "call"
	EventApproval = "approval"
	EventPlan     = "plan"
	EventAgent    = "agent"
	EventPlugin   = "plugin"
	EventLedger   = "ledger"
)

// EventLedgerHead is the type of the one event that is no entry.
const EventLedgerHead = "ledger.head"

// eventKinds are the entries that are events, with their nouns. An entry that is not
// here is none: what is refused is for who reads the ledger.
var eventKinds = map[plugin.EntryKind]string{
	plugin.EntryCallStarted: EventCall, plugin.EntryCallSucceeded: EventCall, plugin.EntryCallFailed: EventCall, plugin.EntryCallRefused: EventCall,
	plugin.EntryCallUnknown: EventCall, plugin.EntryCallPending: EventCall, plugin.EntryCallQueued: EventCall, plugin.EntryCallProgress: EventCall,
	plugin.EntryCallCancel: EventCall, plugin.EntryCallSettled: EventCall,

	plugin.EntryApprovalRequested: EventApproval, plugin.EntryApprovalApproved: EventApproval, plugin.EntryApprovalDenied: EventApproval,
	plugin.EntryApprovalExpired: EventApproval, plugin.EntryApprovalVoid: EventApproval, plugin.EntryApprovalConsumed: EventApproval,

	plugin.EntryPlanProposed: EventPlan, plugin.EntryPlanStarted: EventPlan, plugin.EntryPlanSucceeded: EventPlan, plugin.EntryPlanFailed: EventPlan,
	plugin.EntryPlanUnknown: EventPlan, plugin.EntryPlanCancelled: EventPlan, plugin.EntryPlanRefused: EventPlan,

	plugin.EntryAgentCreated: EventAgent, plugin.EntryAgentChanged: EventAgent, plugin.EntryAgentStarted: EventAgent, plugin.EntryAgentStopped: EventAgent,
	plugin.EntryAgentDeleted: EventAgent, plugin.EntryAgentAssigned: EventAgent,

	plugin.EntryPluginRegistered: EventPlugin, plugin.EntryPluginEnabled: EventPlugin, plugin.EntryPluginDisabled: EventPlugin,
	plugin.EntryPluginDeleted: EventPlugin, plugin.EntryPluginApproved: EventPlugin, plugin.EntryPluginMapped: EventPlugin, plugin.EntryPluginQuarantined: EventPlugin,
}

// EventTypes returns what events can be asked for: the nouns, and the type of each event.
func EventTypes() []string {
	types := []string{EventLedger, EventLedgerHead}
	for kind, noun := range eventKinds {
		types = append(types, noun, string(kind))
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// An Event is something that happened to a noun. It says which, and nothing of what it
// holds.
type Event struct {
	ID    string // the position after it; empty for [EventLedgerHead]
	Type  string // call.succeeded
	Noun  string // call
	Name  string // the id of the noun; empty for the ledger
	Of    string // the call or plan that an approval is for
	At    time.Time
	Entry string // CHAIN/SEQ in the ledger, which is the same on all nodes
	Heads []Head // of [EventLedgerHead]
}

// An EventQuery says which events are wanted.
type EventQuery struct {
	Types []string // of [EventTypes]; all if empty
	After string   // the id of an event; only later ones
}

// Events are what happens to the nouns of the host's tenant, as one principal may see them.
type Events struct {
	api  API
	tail *tail.Tail
	seen *seenEvents
}

// Events returns what happens.
func (a API) Events() Events { return Events{a, a.host.parts.Tail, &a.host.seen} }

// Open returns the events that come after one, or from now on. Where that one is not of
// this history any more, lost is true and they come from now on. Who asks for those of the
// ledger and may not read it is refused, on the record; who asks for all gets none of them.
// The stream must be closed. Errors: policy_denied, invalid_input.
func (e Events) Open(ctx context.Context, q EventQuery) (s *EventStream, lost bool, err error) {
	known := EventTypes()
	for _, name := range q.Types {
		if !slices.Contains(known, name) {
			return nil, false, plugin.Errorf(plugin.CodeInvalidInput, "%.64q is no type of events; there are %s", name, strings.Join(known, ", "))
		}
	}
	s = &EventStream{events: e, types: q.Types}
	s.heads = s.wants(EventLedger, EventLedgerHead)
	if len(q.Types) > 0 && s.heads {
		if err := e.api.Admin().mayReadHeads(ctx); err != nil {
			return nil, false, err
		}
	} else {
		s.heads = s.heads && !e.api.host.parts.Guard.Divided && e.api.kept().all(LedgerPlugin)
	}
	var after tail.Position
	if q.After != "" {
		formed := false
		if after, formed = tail.Parse(q.After); !formed {
			after, lost = nil, true
		}
	}
	gone := false
	if s.reader, gone, err = e.tail.Open(ctx, after); err != nil {
		return nil, false, err
	}
	return s, lost || gone, nil
}

// An EventStream is the events that one principal asked for. It is for one goroutine.
type EventStream struct {
	events Events
	types  []string
	heads  bool   // they get those of the ledger
	told   string // where the chains ended when they were last told
	reader *tail.Reader
}

// Close ends the stream.
func (s *EventStream) Close() { s.reader.Close() }

// ID returns the position of the stream: of the last event, or after it where those that
// came since are not for its reader.
func (s *EventStream) ID() string { return s.reader.Position().String() }

// wants reports whether a type of events, of a noun, was asked for.
func (s *EventStream) wants(noun, name string) bool {
	return len(s.types) == 0 || slices.Contains(s.types, noun) || slices.Contains(s.types, name)
}

// errTokenGone ends the stream of a token that was revoked or rotated.
var errTokenGone = plugin.Errorf(plugin.CodeUnauthenticated, "the token was revoked or rotated")

// Next waits for the next event until wait ends, whose cause is then the error: nothing is
// lost by that, and the stream can be asked again. Where wait is nil and there is none it
// returns one without a type. After every other error it has to be
// opened again, after the last event. The token of the caller being revoked is such an
// error: unauthenticated.
func (s *EventStream) Next(ctx, wait context.Context) (Event, error) {
	for {
		e, err := s.reader.Next(ctx, nil)
		if e == nil && err == nil {
			if head, news := s.head(); news {
				return head, nil
			}
			if wait == nil {
				return Event{}, nil
			}
			e, err = s.reader.Next(ctx, wait)
		}
		if err != nil {
			return Event{}, err
		}
		noun, listed := eventKinds[e.Kind]
		tenant := e.Tenant == s.events.api.Tenant()
		caller := s.events.api.caller
		if tenant && caller != nil && caller.Token != "" && e.Subject == caller.Token && (e.Kind == plugin.EntryTokenRevoked || e.Kind == plugin.EntryTokenRotated) {
			return Event{}, errTokenGone
		}
		sees := false
		if listed && tenant && s.wants(noun, string(e.Kind)) {
			if sees, err = s.events.sees(ctx, noun, e); err != nil {
				return Event{}, err
			}
		}
		s.reader.Done()
		if sees {
			return s.event(noun, e), nil
		}
	}
}

func (s *EventStream) event(noun string, e *tail.Entry) Event {
	event := Event{ID: s.ID(), Type: string(e.Kind), Noun: noun, Name: e.Subject, At: e.At, Entry: fmt.Sprintf("%d/%d", e.Chain, e.Seq)}
	switch {
	case noun == EventApproval:
		event.Name, event.Of = e.Of, e.Subject
	case e.Kind == plugin.EntryAgentAssigned: // its subject is a plugin, which they may not know of
		event.Name = e.Of
	}
	return event
}

// head returns where the chains end, where they may know it and it is news.
func (s *EventStream) head() (Event, bool) {
	if !s.heads {
		return Event{}, false
	}
	at := s.reader.Head()
	if text := at.String(); text == s.told {
		return Event{}, false
	} else {
		s.told = text
	}
	head := Event{Type: EventLedgerHead, Noun: EventLedger, At: time.Now().UTC(), Heads: []Head{}}
	for chain, place := range at {
		head.Heads = append(head.Heads, Head{chain, place.Seq, place.Hash})
	}
	slices.SortFunc(head.Heads, func(a, b Head) int { return int(a.Chain - b.Chain) })
	return head, true
}

// sees reports whether they may see what an entry is about, which is asked once for all
// streams of a principal.
func (e Events) sees(ctx context.Context, noun string, entry *tail.Entry) (bool, error) {
	if e.api.kept().unbounded() {
		return true, nil
	}
	key := seenKey{e.api.host.parts.Guard.Policy.Version() + "\x00" + principal.Key(e.api.by), entry.Hash}
	if sees, known := e.seen.get(key); known {
		return sees, nil
	}
	sees, err := e.look(ctx, noun, entry)
	if err == nil {
		e.seen.put(key, sees)
	}
	return sees, err
}

// look asks what a request for the noun itself would be answered. What is not there any
// more is not seen.
func (e Events) look(ctx context.Context, noun string, entry *tail.Entry) (bool, error) {
	a := e.api
	switch noun {
	case EventCall:
		return a.Calls().sees(ctx, entry.Subject)
	case EventApproval:
		return a.Approvals().sees(ctx, entry.Of)
	case EventPlan:
		return a.Plans().sees(ctx, entry.Subject)
	case EventAgent:
		return a.host.parts.Guard.right(AgentsPlugin, a.by).Verdict == plugin.Allow, nil
	case EventPlugin:
		name, version, _ := strings.Cut(entry.Subject, "@")
		p := a.Plugins()
		_, err := p.registry.ShowFor(ctx, name+"@="+version, p.sees)
		return permitted(err)
	}
	return false, nil
}

// permitted reports whether a question about a right was answered with yes. An error that
// does not say no is one.
func permitted(err error) (bool, error) {
	if code := plugin.CodeOf(err); err != nil && (code.Passes() || code == plugin.CodeInternal || code == plugin.CodeCancelled) {
		return false, err
	}
	return err == nil, nil
}

// seenEvents remembers what was decided about entries, by principal.
type seenEvents struct {
	mu   sync.Mutex
	sees map[seenKey]bool
}

type seenKey struct{ by, hash string }

// mostSeen bounds what is remembered.
const mostSeen = 8192

func (s *seenEvents) get(key seenKey) (sees, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sees, known = s.sees[key]
	return sees, known
}

func (s *seenEvents) put(key seenKey, sees bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sees == nil || len(s.sees) >= mostSeen {
		s.sees = map[seenKey]bool{}
	}
	s.sees[key] = sees
}
