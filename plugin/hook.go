package plugin

import "time"

// A Hook is a subscription of a plugin to an event of agents (plugins and hooks, Phases 0
// and 2). docs/events.md lists the events.
type Hook struct {
	Event       string        `json:"event"`                  // tool.before@v1
	Priority    float64       `json:"priority"`               // lower runs first
	FailureMode FailureMode   `json:"failure_mode,omitempty"` // how a failure is handled; empty: skip
	Deadline    time.Duration `json:"deadline,omitzero"`      // nanoseconds; 0: the host's
	Before      []string      `json:"before,omitempty"`       // plugins whose handlers run later
	After       []string      `json:"after,omitempty"`        // plugins whose handlers run earlier
}

// HookPriority is the priority of a hook that names none.
const HookPriority = 100

// A FailureMode selects how the failure of a hook affects the turn.
type FailureMode string

// The failure modes. The default is skip, with one exception: if a veto hook without a
// declared mode fails, a call with effects is refused (hook_failed).
const (
	FailSkip FailureMode = "skip" // continue with the next handler and emit plugin.error@v1
	FailTurn FailureMode = "fail" // the turn ends
)
