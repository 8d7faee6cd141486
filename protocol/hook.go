package protocol

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
)

// The shapes of hooks, which say what an answer may hold.
const (
	ShapeListener  = "listener"  // nothing
	ShapeTransform = "transform" // the payload from here on, or nothing
	ShapeVeto      = "veto"      // whether the event may go on, why not, and with which payload
)

// A Hook is the params of a hook request, as a plugin reads them.
type Hook struct {
	Call       string         `json:"call,omitempty"` // of this request, for $/cancel and log
	Event      string         `json:"event"`          // with its version: tool.before@v1
	Shape      string         `json:"shape"`
	Payload    jsontext.Value `json:"payload"`
	Agent      string         `json:"agent"`
	Session    string         `json:"session,omitempty"`
	DeadlineMS int64          `json:"deadline_ms"`
}

// AppendHook appends a hook request for an event of call.Agent in call.Session.
// payload is spliced in as it is, and must hold no raw newline.
func AppendHook(b []byte, id int64, token, event, shape string, payload []byte, call *plugin.Call, deadlineMS int64) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = appendInt(b, id)
	b = append(b, `,"method":"hook","params":{"call":`...)
	b = AppendString(b, token)
	b = append(b, `,"event":`...)
	b = AppendString(b, event)
	b = append(b, `,"shape":`...)
	b = AppendString(b, shape)
	b = append(b, `,"payload":`...)
	b = append(b, payload...)
	b = append(b, `,"agent":`...)
	b = AppendString(b, call.Agent)
	if call.Session != "" {
		b = append(b, `,"session":`...)
		b = AppendString(b, call.Session)
	}
	b = append(b, `,"deadline_ms":`...)
	b = appendInt(b, deadlineMS)
	return append(b, "}}\n"...)
}

// A Hooked is what a plugin answers to a hook.
type Hooked struct {
	Allow   bool           // always true but for a veto
	Reason  string         // of a refusal
	Payload jsontext.Value // an object; nil where the payload stays as it is
}

// ParseHooked reads the result member of an answer to a hook of that shape,
// which is known to be valid JSON. An error means that it is no such answer.
func ParseHooked(shape string, raw []byte) (Hooked, error) {
	h := Hooked{Allow: shape != ShapeVeto}
	if kind := jsontext.Value(raw).Kind(); kind == 'n' && h.Allow {
		return h, nil
	} else if kind != '{' {
		return h, errors.New("the result is not an object")
	}
	if shape == ShapeListener {
		for m := ScanMembers(raw); m.Next(); {
			if name := string(m.Name); (name == "payload" || name == "allow") && m.Value.Kind() != 'n' {
				return h, errors.New("a listener changes and allows nothing, and the result has " + name)
			}
		}
		return h, nil
	}
	said := h.Allow
	for m := ScanMembers(raw); m.Next(); {
		var err error
		switch value := m.Value; string(m.Name) {
		case "payload":
			if h.Payload = unlessNull(value); h.Payload != nil && h.Payload.Kind() != '{' {
				return h, errors.New("payload is not an object")
			}
		case "allow":
			if shape == ShapeVeto {
				h.Allow, err = member[bool]("allow", value)
				said = value.Kind() != 'n'
			}
		case "reason":
			if shape == ShapeVeto {
				h.Reason, err = member[string]("reason", value)
				h.Reason = cut(h.Reason, MaxMessage)
			}
		}
		if err != nil {
			return h, err
		}
	}
	if !said {
		return h, errors.New("the result does not say whether it allows the event")
	}
	return h, nil
}
