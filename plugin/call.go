package plugin

import (
	"context"
	"encoding/json"
	"slices"
	"time"
)

// A Call is one request to run one operation. Every surface comes down to it.
type Call struct {
	ID        string // UUIDv7; the kernel gives one where it is empty
	Tenant    string
	Principal Principal // whose rights
	Actor     string    // who acts, where that is someone else; rights intersect
	By        string    // the principal who acts on behalf of Principal, with --as; "" where none does
	Asker     string    // the original requester, as the surface authenticated them: os:1000; "" if unknown
	Agent     string    // the agent instance on whose behalf, if any
	Origin    Origin
	Parent    string // the call that asked for this one
	Session   string
	Depth     int // how many calls this one is nested in

	// EffectFree says that nothing this call runs may have effects: a tool or
	// an agent asked for it, or something below one.
	EffectFree bool

	Labels    []string
	Operation string // name, name/op or name/op@constraint
	Input     json.RawMessage

	// Overlay is what the host alone decides about the call, a JSON object: the
	// account chosen, the schedule, the knowledge bases. It is not part of the
	// input, so no schema sees it; the surface that builds the call separates the
	// two.
	Overlay json.RawMessage

	// Files are what this call may show to its plugin beside its session: what a
	// person handed on with it where they are, or with the call that asked for
	// this one. They are never read from an input.
	Files []File

	// Definition is how the program that runs a reported tool describes it; nil where it
	// does not, and for all other operations.
	Definition json.RawMessage

	Key     string // idempotency key, 1 to 255 printable ASCII characters; "" for none
	KeyOf   string // what made the key, where that is not the caller: see [KeyOfEvent] and the others
	Trace   Trace
	Timeout time.Duration // shortens the operation's own where it is positive
	Fresh   bool          // do not answer from the cache

	// Patience is how long it waits for an earlier call with its key that is still at
	// work, where that is shorter than its own time; 0 is as long as that.
	Patience time.Duration

	Place    string    // what tells it from the other calls of its parent, or of its schedule, so that it is found when that runs again
	Plan     string    // the plan that this is a step of
	Approval string    // the approval that covers it, where that was given to the plan as a whole
	Filled   []string  // of Labels, those of what was filled in since that approval was asked for
	Digest   string    // the package it was meant for; another is refused
	Attempt  int64     // which run of it this is, from 1; the kernel sets it
	Decision *Decision // what policy said of it; the kernel sets it
	NoWait   bool      // return as soon as the call is on record; another process runs it
	NoWake   bool      // with NoWait: who made it resumes it at once, so no worker is woken for it; a sweep finds it otherwise
	After    time.Time // it is not to run before; only with NoWait
	Whole    bool      // a person reads the result: its summary is not cut to what the contract gives a model
	Stays    bool      // once it is claimed it goes on without who made it: where its host closes, it is queued

	// Dry makes it a dry run: it is resolved, checked and judged like any other,
	// claims nothing, and what it would change is noted there and not done. Nil
	// for a call that counts.
	Dry *DryRecorder

	// Observe hears what the plugin says while it works. It is called from one
	// goroutine at a time and must return quickly; nil hears nothing. With NoWait it
	// hears the call where this process runs it later, until the context of the call ends.
	Observe func(Event)
}

// Labels that the host itself gives (PL-19). They only grow.
const (
	Untrusted = "untrusted" // it came from outside
	Private   = "private"   // it is not everybody's to see
)

// Labels returns the union of two lists of labels, in the order of the alphabet.
func Labels(a, b []string) []string {
	switch {
	case len(b) == 0:
		return a
	case len(a) == 0:
		return b
	}
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// What makes keys besides callers. Keys of each are apart from those of all others.
const (
	KeyOfProposal = "proposal" // a submission, of which an agent makes a plan
	KeyOfEvent    = "event"    // an event that an adapter delivered
	KeyOfReply    = "reply"    // a message of a channel, which is answered once
	KeyOfPlugin   = "plugin/"  // and the name of the plugin that asked for the call
)

// MaxDepth is how deep calls may nest.
const MaxDepth = 8

// A Principal is who asks.
type Principal struct {
	Type   string   `json:"type"` // user, service, agent
	ID     string   `json:"id"`
	Scopes []string `json:"scopes"`

	// Groups are those that the sign-in behind the call gave, beside the ones that the
	// configuration names the principal in.
	Groups []string `json:"groups,omitempty"`
}

// Member is what configuration and people call a principal: a user by the id
// alone, others as service::id and agent::id, so that two types never have one
// name.
func (p Principal) Member() string {
	if p.Type == "" || p.Type == "user" {
		return p.ID
	}
	return p.Type + "::" + p.ID
}

// An Origin is the surface a call came in by.
type Origin string

// The origins that exist.
const (
	OriginCLI     Origin = "cli"     // a person at a terminal, or their script
	OriginAPI     Origin = "api"     // a program, over HTTP
	OriginCall    Origin = "call"    // another plugin, through operations.call
	OriginPlan    Origin = "plan"    // a step of a plan
	OriginAdapter Origin = "adapter" // what an adapter made of something that happened elsewhere
	OriginFeed    Origin = "feed"    // a time of a schedule
	OriginAgent   Origin = "agent"   // an agent instance using one of its tools

	// OriginDecision is a program that asks before it runs a tool of its own.
	OriginDecision Origin = "decision"

	OriginMCP Origin = "mcp" // a program that speaks the Model Context Protocol: a model's choice, as a rule
)

// A Trace is what a call belongs to. The plugin gets it and logs with it.
type Trace struct {
	Correlation string `json:"correlation_id"`
	Workflow    string `json:"workflow_id"`
	Step        string `json:"step_id"`
	Parent      string `json:"traceparent,omitzero"` // the span that it is below, as W3C Trace Context writes it; "" where nothing is traced
}

// An Event is something a plugin says while a call runs.
type Event struct {
	Kind    EventKind       `json:"kind"`
	Level   string          `json:"level,omitempty"`   // of a log record
	Message string          `json:"message,omitempty"` // of a log record or of progress
	Data    json.RawMessage `json:"data,omitzero"`     // fields of a log record, members of progress, or the content
}

// An EventKind is what an event is.
type EventKind string

// The kinds of events.
const (
	EventProgress EventKind = "progress" // may be dropped
	EventContent  EventKind = "content"  // never dropped
	EventLog      EventKind = "log"      // may be dropped
)

// Services answers what a plugin asks of the host during one call. It holds
// exactly what the call was granted, and is safe for concurrent use. It may also
// have a method Used() bool, true once something outside the host was asked.
type Services interface {
	// Serve answers one request, such as "cache.get". args is valid JSON.
	Serve(ctx context.Context, method string, args json.RawMessage) (json.RawMessage, error)
}
