package native

import (
	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/plugin"
)

// maxHooks is how many hooks a manifest may have.
const maxHooks = 100

// hookKeys are those of a hook, as our own contract spells them.
var hookKeys = []string{"event", "priority", "failure_mode", "deadline", "before", "after"}

// hooksOf reads the events that a plugin wants to hear of.
func hooksOf(v contract.Value) []plugin.Hook {
	if !v.There || v.Is == false {
		return nil
	}
	items := v.List()
	if len(items) > maxHooks {
		v.Problem("there are %d hooks; at most %d", len(items), maxHooks)
		return nil
	}
	var hooks []plugin.Hook
	for _, item := range items {
		if item.Mapping(hookKeys...) {
			hooks = append(hooks, hookOf(item))
		}
	}
	return hooks
}

func hookOf(v contract.Value) plugin.Hook {
	h := plugin.Hook{
		Event:       eventOf(v.Get("event").Required()),
		Priority:    v.Get("priority").Finite(plugin.HookPriority),
		FailureMode: plugin.FailureMode(v.Get("failure_mode").OneOf("", string(plugin.FailSkip), string(plugin.FailTurn))),
		Before:      v.Get("before").Words(),
		After:       v.Get("after").Words(),
	}
	if d := v.Get("deadline"); d.There {
		h.Deadline = d.Timeout(0)
		if h.Deadline > event.MaxDeadline {
			d.Problem("a hook has at most %s", event.MaxDeadline)
		}
	}
	return h
}

// eventOf reads the name of an event that there is.
func eventOf(v contract.Value) string {
	name := v.Word()
	if name == "" {
		return ""
	}
	if _, found := event.Find(name); !found {
		v.Problem("there is no event %q%s; docs/events.md has them all", contract.Clip(name), nearestEvent(name))
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

// checkWebhooks refuses hooks that no webhook can have: only what nothing waits for
// may leave the host (plugins and hooks, Phase 3).
func checkWebhooks(v contract.Value, hooks []plugin.Hook) {
	for n, h := range hooks {
		if e, found := event.Find(h.Event); found && !e.Webhook {
			v.List()[n].Get("event").Problem("%s goes to handlers inside the host alone; a webhook may have %s", h.Event, webhookEvents())
		}
	}
	if len(hooks) == 0 {
		v.Problem("a plugin behind a webhook has hooks and nothing else: name one of %s", webhookEvents())
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
