package contract

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/plugin"
)

// Finite returns the number here, def if there is none.
func (v Value) Finite(def float64) float64 {
	if !v.There {
		return def
	}
	n, isNumber := v.Is.(Number)
	if !isNumber {
		v.Wrong("a number")
		return def
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		v.Problem("%s is no finite number", Clip(string(n)))
		return def
	}
	return f
}

// A DescribedHook is a hook as a plugin's code has it.
type DescribedHook struct {
	Event       string   `json:"event"`
	Priority    *float64 `json:"priority"`
	FailureMode string   `json:"failure_mode"`
	DeadlineMS  int64    `json:"deadline_ms"`
	Before      []string `json:"before"`
	After       []string `json:"after"`
}

// Hooks returns the hooks of the code.
func (c *Validator) Hooks(said []DescribedHook) []plugin.Hook {
	var hooks []plugin.Hook
	for n, s := range said {
		at := Child("/hooks", strconv.Itoa(n))
		h := plugin.Hook{
			Event: s.Event, Priority: plugin.HookPriority, FailureMode: plugin.FailureMode(s.FailureMode), Deadline: time.Duration(s.DeadlineMS) * time.Millisecond,
			Before: c.Words(at+"/before", s.Before), After: c.Words(at+"/after", s.After),
		}
		if s.Priority != nil {
			h.Priority = *s.Priority
		}
		if _, found := event.Find(s.Event); !found {
			c.Problem(at+"/event", "there is no event %q; docs/events.md has them all", Clip(s.Event))
		}
		if !slices.Contains([]plugin.FailureMode{"", plugin.FailSkip, plugin.FailTurn}, h.FailureMode) {
			c.Problem(at+"/failure_mode", "%q is neither skip nor fail", Clip(s.FailureMode))
		}
		hooks = append(hooks, h)
	}
	return hooks
}

// Guards reports whether one of the hooks is to veto, and did not say in so many
// words that it may be skipped.
func Guards(m *plugin.Manifest) bool {
	for _, h := range m.Hooks {
		if e, found := event.Find(h.Event); found && e.Shape == event.Veto && h.FailureMode != plugin.FailSkip {
			return true
		}
	}
	return false
}
