package dialect

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/plugin"
)

// maxHooks is how many hooks a manifest may have.
const maxHooks = 100

// hookKeys are those of a hook, as our own contract spells them.
var hookKeys = []string{"event", "priority", "failure_mode", "deadline", "before", "after"}

// hooks reads the events that a plugin wants to hear of.
func (v value) hooks() []plugin.Hook {
	if !v.there || v.is == false {
		return nil
	}
	items := v.list()
	if len(items) > maxHooks {
		v.problem("there are %d hooks; at most %d", len(items), maxHooks)
		return nil
	}
	var hooks []plugin.Hook
	for _, item := range items {
		if item.mapping(hookKeys...) {
			hooks = append(hooks, item.hook())
		}
	}
	return hooks
}

func (v value) hook() plugin.Hook {
	h := plugin.Hook{
		Event:       v.get("event").required().event(),
		Priority:    v.get("priority").finite(plugin.HookPriority),
		FailureMode: plugin.FailureMode(v.get("failure_mode").oneOf("", string(plugin.FailSkip), string(plugin.FailTurn))),
		Before:      v.get("before").words(),
		After:       v.get("after").words(),
	}
	if d := v.get("deadline"); d.there {
		h.Deadline = d.timeout(0)
		if h.Deadline > event.MaxDeadline {
			d.problem("a hook has at most %s", event.MaxDeadline)
		}
	}
	return h
}

// event reads the name of an event that there is.
func (v value) event() string {
	name := v.word()
	if name == "" {
		return ""
	}
	if _, found := event.Find(name); !found {
		v.problem("there is no event %q%s; docs/events.md has them all", clip(name), nearestEvent(name))
	}
	return name
}

func nearestEvent(name string) string {
	for _, e := range event.Catalogue {
		if e.Name == name+"@v1" {
			return ": say " + e.Name
		}
	}
	return ""
}

// finite returns the number here, def if there is none.
func (v value) finite(def float64) float64 {
	if !v.there {
		return def
	}
	n, isNumber := v.is.(number)
	if !isNumber {
		v.wrong("a number")
		return def
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		v.problem("%s is no finite number", clip(string(n)))
		return def
	}
	return f
}

// webhooked refuses hooks that no webhook can have: only what nothing waits for
// may leave the host (plugins and hooks, Phase 3).
func (v value) webhooked(hooks []plugin.Hook) {
	for n, h := range hooks {
		if e, found := event.Find(h.Event); found && !e.Webhook {
			v.list()[n].get("event").problem("%s goes to handlers inside the host alone; a webhook may have %s", h.Event, webhookEvents())
		}
	}
	if len(hooks) == 0 {
		v.problem("a plugin behind a webhook has hooks and nothing else: name one of %s", webhookEvents())
	}
}

func webhookEvents() []string {
	var names []string
	for _, e := range event.Catalogue {
		if e.Webhook {
			names = append(names, e.Name)
		}
	}
	return names
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

// hooked returns the hooks of the code.
func (c *checker) hooked(said []DescribedHook) []plugin.Hook {
	var hooks []plugin.Hook
	for n, s := range said {
		at := child("/hooks", itoa(n))
		h := plugin.Hook{
			Event: s.Event, Priority: plugin.HookPriority, FailureMode: plugin.FailureMode(s.FailureMode), Deadline: time.Duration(s.DeadlineMS) * time.Millisecond,
			Before: c.words(at+"/before", s.Before), After: c.words(at+"/after", s.After),
		}
		if s.Priority != nil {
			h.Priority = *s.Priority
		}
		if _, found := event.Find(s.Event); !found {
			c.problem(at+"/event", "there is no event %q; docs/events.md has them all", clip(s.Event))
		}
		if !slices.Contains([]plugin.FailureMode{"", plugin.FailSkip, plugin.FailTurn}, h.FailureMode) {
			c.problem(at+"/failure_mode", "%q is neither skip nor fail", clip(s.FailureMode))
		}
		hooks = append(hooks, h)
	}
	return hooks
}
