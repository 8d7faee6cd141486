package script

import (
	"context"
	"encoding/json"
	"time"
)

// An Environment is what a plugin is opened in.
type Environment struct {
	Tenant, Agent, Plugin string

	Memory  Memory                                              // nil: the agent remembers nothing
	Session func(ctx context.Context) Session                   // in which session the event of ctx happens; nil: in none
	Log     func(level, message string, fields json.RawMessage) // level is debug, info, warn or error; fields an object or nil; nil drops
	Limits  Limits

	// Disabled is told once that the instance will run no code any more, and why;
	// it may be nil.
	Disabled func(err error)

	// Ignored is told once for each listener that returned a value, which changes nothing.
	// If it is nil, the log has a warning in its place.
	Ignored func(what string)
}

// A Memory is what a plugin may read of an agent's memory.
type Memory interface {
	Get(ctx context.Context, key string) (value string, found bool, err error)
	// Search answers with a JSON array, the best first.
	Search(ctx context.Context, query string, limit int) (json.RawMessage, error)
}

// A Session is what a plugin reads of a conversation.
type Session struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Channel string `json:"channel"`
	Turn    int    `json:"turn"`
}

// Limits bound one instance. What is zero gets its default.
type Limits struct {
	Memory      int           // bytes that the engine may hold: 16 MiB
	Deadline    time.Duration // of a handler that names none: 50 ms
	MaxDeadline time.Duration // that a handler may name: 1 s
	Tool        time.Duration // deadline of a tool: 1 s
	Start       time.Duration // deadline of register: 1 s
	Wait        time.Duration // that one call may wait for the host's answers: 2 s
	Result      int           // bytes of what a handler or tool returns: 1 MiB

	grace time.Duration // defaultGrace, except in tests of code that must not be ended by force
}

// Bounds that are the same for every instance.
const (
	maxHandlers  = 256      // subscriptions of one plugin
	maxTools     = 64       // tools of one plugin
	maxAsks      = 1000     // requests to the host during one call
	maxMessage   = 4 << 10  // bytes of a line of the log, and of a text that was thrown
	maxReason    = 1000     // bytes of why a veto refuses
	maxText      = 64 << 10 // bytes of what a request to the host may carry
	maxAnswer    = 1 << 20  // bytes of the host's answer
	maxStops     = 3        // deadlines that one instance may pass
	maxFound     = 100      // results that a search may ask for
	defaultFound = 10
	logBurst     = 50 // lines of the log at once
	logEvery     = 100 * time.Millisecond
	defaultGrace = 25 * time.Millisecond // between asking code to stop and taking its memory away
)

func (l Limits) withDefaults() Limits {
	fill := func(d *time.Duration, otherwise time.Duration) {
		if *d <= 0 {
			*d = otherwise
		}
	}
	if l.Memory <= 0 {
		l.Memory = 16 << 20
	}
	if l.Result <= 0 {
		l.Result = 1 << 20
	}
	fill(&l.Deadline, 50*time.Millisecond)
	fill(&l.MaxDeadline, time.Second)
	fill(&l.Tool, time.Second)
	fill(&l.Start, time.Second)
	fill(&l.Wait, 2*time.Second)
	fill(&l.grace, defaultGrace)
	return l
}

// A Tool is an operation that a plugin has added.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema"` // JSON Schema of the input
}
