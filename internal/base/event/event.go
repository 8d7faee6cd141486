// Package event carries what happens in an agent to the plugins that want to
// hear of it, change it or refuse it.
//
// The [Catalogue] has every event there is; docs/events.md is written from it.
// A [Bus] belongs to one agent, so nothing that a plugin keeps of one agent is
// seen by another. An event has one of three shapes, and a method of the bus for
// each:
//
//	listener   hears                  Bus.Emit
//	transform  hears and rewrites     Bus.Transform
//	veto       allows or refuses      Bus.Veto
//
// Handlers run one after another in the goroutine of the emitter: lower
// priority first; among equals as before and after say; else in the order of
// registration. Each sees what the ones before it left. A handler that fails is
// skipped, and plugin.error@v1 reports it, unless it asked to fail: then the
// dispatch ends with an error. A panic is a failure like any other.
//
// Payloads are frozen: a handler that changes something returns a new one.
//
//	bus := event.NewBus("agent-7", event.Options{})
//	defer bus.Close()
//	off, err := bus.On(event.Subscription{
//		Event: event.ToolBefore, Plugin: "careful", Priority: new(float64(50)),
//		Veto: func(_ context.Context, p *event.Payload) (event.Verdict, error) {
//			return event.Verdict{Allow: p.String("toolName") != "shell", Reason: "no shell here"}, nil
//		},
//	})
package event

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	json2 "github.com/go-json-experiment/json"
)

// A Shape is what the handlers of an event may do.
type Shape string

// The shapes.
const (
	Listener  Shape = "listener"  // hears
	Transform Shape = "transform" // returns what the event shall carry from here on
	Veto      Shape = "veto"      // allows or refuses, and may change what it allows
)

// A way is a method of the bus that emits: the one of a shape.
type way uint8

const (
	emits way = iota
	transforms
	vetoes
)

func (s Shape) way() way {
	switch s {
	case Transform:
		return transforms
	case Veto:
		return vetoes
	default:
		return emits
	}
}

func (w way) String() string { return [...]string{"emit", "transform", "veto"}[w] }

// An Event is one line of the catalogue. It is kept for ever as it is: another
// shape or other fields are another version.
type Event struct {
	Name    string  // with its version: tool.before@v1
	Shape   Shape   // of all versions alike
	Fires   string  // when, in one sentence
	Fields  []Field // what it carries
	Webhook bool    // may be delivered to a plugin outside the host
	HotPath bool    // something waits for it at every turn or tool call: handlers inside the host only
	Example string  // a payload, for the documentation

	// Up makes a payload of the version before into one of this version, Down
	// the reverse. Both are nil in a first version and set in any other. The
	// second argument is the payload of the target version that the first was
	// made from, nil if there was none: what only the other version can say is
	// taken from there.
	Up, Down func(p, was *Payload) (*Payload, error)
}

// A Field is one member of a payload.
type Field struct {
	Name     string
	Type     string // string, time (RFC 3339), integer, boolean, object, array or any
	Doc      string
	Optional bool
	Enum     []string // the values a string may have; any where empty
	Members  []Field  // of an array: what each element, an object, has at least
	Of       string   // of an array with members: what the SDKs call an element
}

// split returns the name without its version, and the version.
func split(name string) (base string, version int, ok bool) {
	base, digits, found := strings.Cut(name, "@v")
	version, err := strconv.Atoi(digits)
	return base, version, found && base != "" && err == nil && version > 0 && strconv.Itoa(version) == digits
}

// Schema returns the JSON Schema (2020-12) of what the event carries. Members
// that it does not name are allowed.
func (e *Event) Schema() json.RawMessage {
	schema := objectSchema(e.Fields)
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = e.Name
	schema["description"] = e.Fires
	raw, err := json2.Marshal(schema, json2.Deterministic(true))
	if err != nil {
		panic(fmt.Sprintf("event: the schema of %s: %v", e.Name, err)) // maps, lists and strings alone: cannot be
	}
	return raw
}

func objectSchema(fields []Field) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, f := range fields {
		properties[f.Name] = f.schema()
		if !f.Optional {
			required = append(required, f.Name)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}
}

func (f Field) schema() map[string]any {
	schema := map[string]any{"description": f.Doc}
	switch f.Type {
	case "any":
	case "time":
		schema["type"], schema["format"] = "string", "date-time"
	default:
		schema["type"] = f.Type
	}
	if len(f.Enum) > 0 {
		schema["enum"] = f.Enum
	}
	if len(f.Members) > 0 {
		schema["items"] = objectSchema(f.Members)
	}
	return schema
}
