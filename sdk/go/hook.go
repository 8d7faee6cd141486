package mortise

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/protocol"
)

// A Payload is what an event carries: one JSON object, which may have members
// that the documentation of the event does not name. docs/events.md has the events.
type Payload jsontext.Value

// Decode decodes the payload into a struct or a map. What that does not name is
// passed over.
func (p Payload) Decode(into any) error { return decode(p, into) }

// With returns the payload with a top-level member set to value; every other
// member stays what it was.
func (p Payload) With(name string, value any) (Payload, error) {
	raw, err := encode(value)
	if err != nil {
		return nil, err
	}
	changed := []byte{'{'}
	add := func(name, value []byte) {
		if len(changed) > 1 {
			changed = append(changed, ',')
		}
		changed = protocol.AppendString(changed, string(name))
		changed = append(append(changed, ':'), value...)
	}
	there := false
	for m := protocol.ScanMembers(p); m.Next(); {
		if string(m.Name) == name {
			there = true
			add(m.Name, raw)
		} else {
			add(m.Name, m.Value)
		}
	}
	if !there {
		add([]byte(name), raw)
	}
	return append(changed, '}'), nil
}

// A Verdict is what a veto says.
type Verdict struct {
	Allow   bool
	Reason  string  // of a refusal
	Payload Payload // what is allowed, where that was changed; else nil
}

// Listen lets fn hear of an event that is a listener. An error is a failure of
// the hook. A plugin has one hook for an event. Host services are not available
// in hooks.
func Listen(p *Plugin, event string, fn func(*Call, Payload) error, options ...HookOption) {
	p.hook(event, protocol.ShapeListener, func(c *Call, payload Payload) (hookAnswer, error) {
		return hookAnswer{}, fn(c, payload)
	}, options)
}

// Transform lets fn rewrite what an event carries: it returns all of the payload
// from here on, nil to leave it as it is. The rest is as for [Listen].
func Transform(p *Plugin, event string, fn func(*Call, Payload) (Payload, error), options ...HookOption) {
	p.hook(event, protocol.ShapeTransform, func(c *Call, payload Payload) (hookAnswer, error) {
		changed, err := fn(c, payload)
		return hookAnswer{Payload: jsontext.Value(changed)}, err
	}, options)
}

// Veto lets fn allow or refuse an event, and rewrite what it allows. The zero
// [Verdict] refuses. The rest is as for [Listen].
func Veto(p *Plugin, event string, fn func(*Call, Payload) (Verdict, error), options ...HookOption) {
	p.hook(event, protocol.ShapeVeto, func(c *Call, payload Payload) (hookAnswer, error) {
		v, err := fn(c, payload)
		return hookAnswer{Allow: &v.Allow, Reason: v.Reason, Payload: jsontext.Value(v.Payload)}, err
	}, options)
}

// A HookOption says more about a hook than its event.
type HookOption func(*describedHook)

// Priority says how early a hook hears: a finite number, lower comes first, 100
// unless given.
func Priority(n float64) HookOption { return func(h *describedHook) { h.Priority = &n } }

// FailureMode says what a failure of the hook means: "skip", the event goes on
// without it, or "fail", it ends. Without it a failed veto is skipped too, and a
// call that has effects is refused all the same.
func FailureMode(mode string) HookOption { return func(h *describedHook) { h.FailureMode = mode } }

// Deadline says how long the hook may take, whole milliseconds up to ten minutes.
func Deadline(limit time.Duration) HookOption {
	return func(h *describedHook) { h.DeadlineMS = limit.Milliseconds(); h.limited = true }
}

// Before names plugins whose hooks of the same priority come later.
func Before(plugins ...string) HookOption {
	return func(h *describedHook) { h.Before = append(h.Before, plugins...) }
}

// After names plugins whose hooks of the same priority come first.
func After(plugins ...string) HookOption {
	return func(h *describedHook) { h.After = append(h.After, plugins...) }
}

// A hook is one function that hears of an event.
type hook struct {
	described describedHook
	run       func(c *Call, payload Payload) (hookAnswer, error)
}

type describedHook struct {
	Event       string   `json:"event"`
	Priority    *float64 `json:"priority,omitempty"`
	FailureMode string   `json:"failure_mode,omitempty"`
	DeadlineMS  int64    `json:"deadline_ms,omitzero"`
	Before      []string `json:"before,omitempty"`
	After       []string `json:"after,omitempty"`
	limited     bool
}

// hookAnswer is the result member of an answer to a hook.
type hookAnswer struct {
	Allow   *bool          `json:"allow,omitempty"`
	Reason  string         `json:"reason,omitzero"`
	Payload jsontext.Value `json:"payload,omitzero"`
}

// maxHookMS is the longest deadline that a host takes.
const maxHookMS = 10 * 60 * 1000

// hook keeps a hook. It panics for what cannot be right: a mistake of the
// programmer that shows at start-up.
func (p *Plugin) hook(event, shape string, run func(*Call, Payload) (hookAnswer, error), options []HookOption) {
	h := &hook{describedHook{Event: event}, run}
	for _, option := range options {
		option(&h.described)
	}
	d := &h.described
	switch known := events[event]; {
	case known == "" && events[event+"@v1"] != "":
		panic(fmt.Sprintf("mortise: there is no event %q: say %s@v1", event, event))
	case known == "":
		panic(fmt.Sprintf("mortise: there is no event %q; docs/events.md has them all", event))
	case known != shape:
		panic(fmt.Sprintf("mortise: %s is a %s, and this hook is a %s", event, known, shape))
	case p.hooks[event] != nil:
		panic("mortise: there are two hooks of " + event)
	case !slices.Contains([]string{"", "skip", "fail"}, d.FailureMode):
		panic(fmt.Sprintf("mortise: the hook of %s has the failure mode %q; it is skip or fail", event, d.FailureMode))
	case d.limited && (d.DeadlineMS < 1 || d.DeadlineMS > maxHookMS):
		panic(fmt.Sprintf("mortise: the hook of %s has a deadline of %d ms; it is 1 to %d", event, d.DeadlineMS, maxHookMS))
	}
	if p.hooks == nil {
		p.hooks = map[string]*hook{}
	}
	p.hooks[event] = h
	p.heard = append(p.heard, event)
}

// answer returns the result member of the hook's answer.
func (h *hook) answer(c *Call, payload Payload) ([]byte, error) {
	said, err := h.run(c, payload)
	if err != nil {
		return nil, err
	}
	if raw := said.Payload; raw != nil && raw.Kind() != '{' {
		return nil, Errorf("INVALID_RESULT", "the payload of %s is no JSON object", h.described.Event)
	}
	return marshal(said)
}

// hook starts a hook in a goroutine of its own.
func (s *server) hook(f *protocol.Frame) {
	var in protocol.Hook
	if err := json.Unmarshal(f.Params, &in); err != nil {
		s.fail(f.ID, &protocol.Error{Number: protocol.RPCInvalidParams, Message: err.Error()})
		return
	}
	h := s.plugin.hooks[in.Event]
	if h == nil {
		s.fail(f.ID, &protocol.Error{Number: protocol.RPCMethodNotFound, Message: fmt.Sprintf("%s has no hook of %.128q", s.plugin.name, in.Event)})
		return
	}
	c := &Call{server: s, token: in.Call, Operation: in.Event, Agent: in.Agent}
	c.limit(in.DeadlineMS)
	if in.Session != "" {
		c.about = append(protocol.AppendString([]byte(`{"session":`), in.Session), '}')
	}
	s.begin(job{method: protocol.MethodHook, call: c, hook: h, id: f.ID, input: in.Payload})
}

// describedHooks returns what describe says of the plugin's hooks, in the order in which
// they were added.
func (p *Plugin) describedHooks() []describedHook {
	var all []describedHook
	for _, event := range p.heard {
		all = append(all, p.hooks[event].described)
	}
	return all
}
