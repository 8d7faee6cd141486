package event

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// A Mode says what the failure of a handler means.
type Mode string

// The modes.
const (
	Skip Mode = "skip" // the dispatch goes on without it; the default
	Fail Mode = "fail" // the dispatch ends with an error
)

// DefaultPriority is the priority of a handler that names none.
const DefaultPriority = 100

// Bounds of subscriptions.
const (
	MaxHandlers       = 10_000           // of one bus
	MaxPluginHandlers = 1_000            // of one plugin on one bus
	MaxNeighbours     = 32               // names in before, and in after
	MaxDeadline       = 10 * time.Minute // longer than a call may take
)

// A Subscription is one handler and what it asks for. Exactly one of Listen,
// Transform and Veto is set, the one that fits the shape of the event.
// Concurrent emitters may call the handlers of one bus concurrently.
type Subscription struct {
	Event    string   // with its version
	Plugin   string   // its plugin; empty for a handler without one
	Name     string   // of the handler, for the log
	Priority *float64 // lower comes first; nil means DefaultPriority

	Mode     Mode // empty means Skip
	ModeSaid bool // the plugin asked for that mode in so many words

	// Deadline is how long it may take; 0 sets no bound, and costs nothing. One
	// that has it runs in a goroutine of its own. If it does not come back, the
	// dispatch goes on without it, and it is not called again while it is still at work.
	Deadline time.Duration

	Before, After []string // plugins whose handlers of the same priority it precedes, or follows

	Listen    func(ctx context.Context, p *Payload) error
	Transform func(ctx context.Context, p *Payload) (*Payload, error) // nil leaves the payload as it was
	Veto      func(ctx context.Context, p *Payload) (Verdict, error)  // of the answer Allow, Reason and Payload count
}

// A Verdict is what veto handlers say, one of them or all together.
type Verdict struct {
	Allow   bool
	Reason  string    // of a refusal
	Payload *Payload  // what the handlers made of it, also where one refused or failed; nil where that is what it was
	By      string    // the plugin that refused
	Failed  []Failure // handlers that failed, in their order
}

// A handler is a subscription that a bus has taken.
type handler struct {
	Subscription
	place    int   // of its version among all
	direct   *slot // its event, if it can be called as it is: it has no deadline
	priority float64
	number   uint64      // in the order of registration
	gone     atomic.Bool // it is not called any more
	late     atomic.Int32
}

// shape returns the shape of the function that is set, and how many are.
func (s *Subscription) shape() (shape Shape, set int) {
	if s.Listen != nil {
		shape, set = Listener, set+1
	}
	if s.Transform != nil {
		shape, set = Transform, set+1
	}
	if s.Veto != nil {
		shape, set = Veto, set+1
	}
	return shape, set
}

// newHandler checks a subscription to an event and copies it.
func newHandler(s Subscription, slot *slot) (*handler, error) {
	e := slot.event
	refuse := func(format string, args ...any) (*handler, error) {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "a handler of plugin %s for %s "+format, append([]any{nameOf(s.Plugin), s.Event}, args...)...)
	}
	shape, set := s.shape()
	switch {
	case set != 1:
		return refuse("has %d functions; set one, the %s", set, e.Shape)
	case shape != e.Shape:
		return refuse("is a %s; the event is a %s, so give it a %s function", shape, e.Shape, e.Shape)
	case s.Priority != nil && (math.IsNaN(*s.Priority) || math.IsInf(*s.Priority, 0)):
		return refuse("has the priority %v; it is a finite number, and lower comes first", *s.Priority)
	case s.Mode != "" && s.Mode != Skip && s.Mode != Fail:
		return refuse("has the failure mode %.40q; it is skip or fail", s.Mode)
	case s.Deadline < 0 || s.Deadline > MaxDeadline:
		return refuse("has a deadline of %s; it is between 0 and %s", s.Deadline, MaxDeadline)
	case len(s.Before) > MaxNeighbours || len(s.After) > MaxNeighbours:
		return refuse("names %d plugins before and %d after it; at most %d each", len(s.After), len(s.Before), MaxNeighbours)
	case slices.Contains(s.Before, "") || slices.Contains(s.After, ""):
		return refuse("names a plugin without a name in before or after")
	}
	h := &handler{Subscription: s, place: slot.place, priority: DefaultPriority}
	if s.Deadline == 0 {
		h.direct = slot
	}
	if s.Priority != nil {
		h.priority = *s.Priority
	}
	h.Before, h.After = slices.Clone(s.Before), slices.Clone(s.After)
	return h, nil
}

// guards reports whether a failure of it must not be taken for an allowance.
func (h *handler) guards() bool { return h.Mode == Fail || !h.ModeSaid }

// noPlugin is the name of a handler that named no plugin.
const noPlugin = "<unknown>"

func nameOf(plugin string) string {
	if plugin == "" {
		return noPlugin
	}
	return plugin
}

// cut returns at most n bytes of text, whole runes.
func cut(text string, n int) string {
	if len(text) > n {
		text = text[:n]
	}
	return strings.ToValidUTF8(text, "")
}
