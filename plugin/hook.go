package plugin

import "time"

// A Hook is an event of an agent that a plugin wants to hear of (plugins and
// hooks, Phases 0 and 2). What events there are is in docs/events.md.
type Hook struct {
	Event       string        `json:"event"`                  // tool.before@v1
	Priority    float64       `json:"priority"`               // lower runs first
	FailureMode FailureMode   `json:"failure_mode,omitempty"` // what its failing means; empty: skip
	Deadline    time.Duration `json:"deadline,omitzero"`      // nanoseconds; 0: the host's
	Before      []string      `json:"before,omitempty"`       // plugins that are to hear of it later
	After       []string      `json:"after,omitempty"`        // plugins that are to hear of it first
}

// HookPriority is the priority of a hook that names none.
const HookPriority = 100

// A FailureMode says what becomes of a turn whose hook fails.
type FailureMode string

// The failure modes. A hook that says neither is skipped; if it was to veto, a
// call with effects is refused then all the same.
const (
	FailSkip FailureMode = "skip" // the next one is asked, and the failure becomes plugin.error@v1
	FailTurn FailureMode = "fail" // the turn ends
)
