package plugin

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// A Call is one request to run one operation. Every surface builds one.
type Call struct {
	ID        string // UUIDv7; the kernel generates one if it is empty
	Tenant    string
	Principal Principal // whose rights the call uses
	Actor     string    // who acts, if not the principal; the rights of both intersect
	By        string    // the principal who acts on behalf of Principal, with --as; "" for none
	Asker     string    // the original requester, as the surface authenticated them (os:1000); "" if unknown
	Agent     string    // the agent instance that makes the call, if any
	Origin    Origin
	Parent    string // the call that made this one
	Session   string
	Depth     int // nesting depth, 0 for a call of a surface

	// EffectFree forbids effects in this call and the calls below it, because a tool
	// or an agent made it, directly or through other calls.
	EffectFree bool

	Labels    []string
	Operation string // name, name/op or name/op@constraint
	Input     json.RawMessage

	// Overlay is a JSON object of what only the host may decide about the call: the
	// selected account, the schedule, the knowledge bases. It is not part of the
	// input and no schema sees it; the surface that builds the call separates the two.
	Overlay json.RawMessage

	// Files are the files that the plugin may read in addition to its session's: those
	// that a person attached to this call, or to the call that made it. They are never
	// derived from an input.
	Files []File

	// Definition is the description of a reported tool by the program that runs it; nil
	// if there is none, and for all other operations.
	Definition json.RawMessage

	Key     string // idempotency key, 1 to 255 printable ASCII characters; "" for none
	KeyOf   string // the namespace of the key if the caller did not choose it: see [KeyOfEvent] and the others
	Trace   Trace
	Timeout time.Duration // shortens the operation's own timeout if it is positive
	Fresh   bool          // bypass the cache

	// Patience bounds the wait for an earlier call with the same key that is still
	// running; 0 waits until the timeout of this call.
	Patience time.Duration

	Place    string    // distinguishes the call from the other calls of its parent or schedule, so that a second run of those finds it
	Plan     string    // the plan that has this call as a step
	Approval string    // the approval of the whole plan that covers it
	Filled   []string  // the subset of Labels that came with values filled in after that approval was requested
	Digest   string    // the only package that may run it
	Attempt  int64     // the number of this attempt, from 1; set by the kernel
	Decision *Decision // the decision of policy; set by the kernel
	NoWait   bool      // return once the call is recorded; a worker runs it
	NoWake   bool      // with NoWait: the caller resumes it at once, so no worker is woken; the sweeper finds it otherwise
	After    time.Time // the earliest time to run it; only with NoWait
	Whole    bool      // keep the whole summary, for a person; otherwise it is cut to what the contract allows a model
	Stays    bool      // once claimed it outlives its caller: if the host closes, the call is queued

	// Dry makes the call a dry run: it is resolved, validated and judged as usual, but
	// claims nothing; each change is recorded there and not carried out. Nil for a real
	// call.
	Dry *DryRecorder

	// Observe receives the events of the running plugin. It is called by one goroutine at
	// a time and must return quickly; nil discards them. With NoWait it receives them if
	// this process runs the call later, until the context of the call ends.
	Observe func(Event)
}

// Labels that the host itself assigns (PL-19). Labels are never removed.
const (
	Untrusted = "untrusted" // the data came from outside
	Private   = "private"   // not all users may see the data
)

// Labels returns the union of two lists of labels, sorted.
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

// Namespaces of idempotency keys that callers did not choose. A key of one namespace never
// matches a key of another.
const (
	KeyOfProposal = "proposal" // a submission from which an agent makes a plan
	KeyOfEvent    = "event"    // an event that an adapter delivered
	KeyOfReply    = "reply"    // a message of a channel, answered once
	KeyOfPlugin   = "plugin/"  // followed by the name of the plugin that made the call
)

// MaxDepth is the maximum nesting depth of calls.
const MaxDepth = 8

// A Principal is the identity that a call is made as.
type Principal struct {
	Type   string   `json:"type"` // user, service, agent
	ID     string   `json:"id"`
	Scopes []string `json:"scopes"`

	// Groups are the groups that the sign-in provided, in addition to those of the
	// configuration.
	Groups []string `json:"groups,omitempty"`
}

// Member returns the name of the principal in configuration, rows, entries and messages: the
// id for a user, service::id or agent::id for the others. A user whose id begins like such a
// name is user::id, so that no two principals have one name.
func (p Principal) Member() string {
	if p.Type != "" && p.Type != "user" {
		return p.Type + "::" + p.ID
	}
	for _, kind := range [...]string{"user::", "service::", "agent::"} {
		if strings.HasPrefix(p.ID, kind) {
			return "user::" + p.ID
		}
	}
	return p.ID
}

// An Origin is the surface that a call came in through.
type Origin string

// The origins that exist.
const (
	OriginCLI     Origin = "cli"     // a terminal, or a script
	OriginAPI     Origin = "api"     // a program, over HTTP
	OriginCall    Origin = "call"    // another plugin, through operations.call
	OriginPlan    Origin = "plan"    // a step of a plan
	OriginAdapter Origin = "adapter" // an external event, translated by an adapter
	OriginFeed    Origin = "feed"    // a scheduled run
	OriginAgent   Origin = "agent"   // an agent instance using one of its tools

	// OriginDecision is a program that asks for a decision before it runs a tool of its own.
	OriginDecision Origin = "decision"

	OriginMCP Origin = "mcp" // a client of the Model Context Protocol, usually on behalf of a model
)

// A Trace correlates a call with others. The plugin receives it and logs with it.
type Trace struct {
	Correlation string `json:"correlation_id"`
	Workflow    string `json:"workflow_id"`
	Step        string `json:"step_id"`
	Parent      string `json:"traceparent,omitzero"` // the parent span in the form of W3C Trace Context; "" without tracing
}

// An Event is a message of a plugin during a call.
type Event struct {
	Kind    EventKind       `json:"kind"`
	Level   string          `json:"level,omitempty"`   // of a log record
	Message string          `json:"message,omitempty"` // of a log record or of progress
	Data    json.RawMessage `json:"data,omitzero"`     // fields of a log record, members of progress, or the content
}

// An EventKind is the type of an event.
type EventKind string

// The kinds of events.
const (
	EventProgress EventKind = "progress" // may be dropped
	EventContent  EventKind = "content"  // never dropped
	EventLog      EventKind = "log"      // may be dropped
)

// Services serves the host services that were granted to one call, and no others. It is
// safe for concurrent use. An implementation may also have a method Used() bool, which
// reports whether a request left the host.
type Services interface {
	// Serve handles one request, such as "cache.get". args is valid JSON.
	Serve(ctx context.Context, method string, args json.RawMessage) (json.RawMessage, error)
}
