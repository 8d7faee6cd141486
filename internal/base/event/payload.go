package event

import (
	"errors"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
)

// MaxPayload is how many bytes a payload may have.
const MaxPayload = 4 << 20

// A Payload is what an event carries: one JSON object. It never changes, so
// handlers may keep it, and it is safe for concurrent use. Its top-level members
// are indexed once, when the first of them is asked for.
type Payload struct {
	text    string
	indexed atomic.Pointer[[]member]
	aside   atomic.Pointer[any]
}

// NewPayload returns text as a payload. It is refused unless it is one JSON
// object without duplicate names, in valid UTF-8 without lone surrogates, of at
// most [MaxPayload] bytes.
func NewPayload(text string) (*Payload, error) {
	text = strings.Trim(text, " \t\r\n")
	switch {
	case len(text) > MaxPayload:
		return nil, tooLarge(len(text))
	case !strings.HasPrefix(text, "{"):
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "the payload of an event is a JSON object; this one begins %.20q", text)
	}
	if err := valid(text); err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "the payload of an event is no valid JSON: %w", err)
	}
	return &Payload{text: text}, nil
}

// Encode returns v, which encodes as a JSON object, as a payload. Strings that
// are no valid UTF-8 are mended.
func Encode(v any) (*Payload, error) {
	raw, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeInternal, "encoding the payload of an event: %w", err)
	}
	return NewPayload(string(raw))
}

// Text returns the object.
func (p *Payload) Text() string { return p.text }

// Field returns the value of a top-level member as it is written.
func (p *Payload) Field(name string) (raw string, ok bool) {
	members := p.index()
	if i := find(members, name); i >= 0 {
		return p.text[members[i].value:members[i].end], true
	}
	return "", false
}

// String returns a top-level member that is a string, else "".
func (p *Payload) String(name string) string {
	raw, found := p.Field(name)
	if !found || raw[0] != '"' {
		return ""
	}
	return unquote(raw)
}

// Aside returns a value derived from the payload, cached beside it for all
// readers that derive the same. There is room for one such value. The first
// caller to finish stores it (compare-and-set); concurrent callers may do the
// same work.
func (p *Payload) Aside(derive func(p *Payload) any) any {
	if kept := p.aside.Load(); kept != nil {
		return *kept
	}
	derived := derive(p)
	if !p.aside.CompareAndSwap(nil, &derived) {
		return *p.aside.Load()
	}
	return derived
}

// Decode decodes the object into v.
func (p *Payload) Decode(v any) error {
	if err := json.Unmarshal([]byte(p.text), v); err != nil {
		return plugin.Errorf(plugin.CodeInvalidInput, "decoding the payload of an event: %w", err)
	}
	return nil
}

// With returns the object with a member set to raw, which is one JSON value: in
// its place, if the object has it, else at the end. Everything else stays byte
// for byte. It panics where [Payload.Set] returns an error, so it is for values
// that the caller knows to be good.
func (p *Payload) With(name, raw string) *Payload {
	changed, err := p.Set(name, raw)
	if err != nil {
		panic(err)
	}
	return changed
}

// Set is [Payload.With] for untrusted values: it refuses invalid JSON, and a
// payload that would be too large.
func (p *Payload) Set(name, raw string) (*Payload, error) {
	raw = strings.Trim(raw, " \t\r\n")
	if len(raw) > MaxPayload {
		return nil, tooLarge(len(raw))
	}
	if err := valid(raw); err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "the value of %.100q is no valid JSON: %w", name, err)
	}
	if !utf8.ValidString(name) {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "the name %.100q of a member is no valid UTF-8", name)
	}
	changed := p.put(name, raw)
	if len(changed.text) > MaxPayload {
		return nil, tooLarge(len(changed.text))
	}
	return changed, nil
}

// Without returns the object without a member; itself, if it has none of that name.
func (p *Payload) Without(name string) *Payload {
	members := p.index()
	i := find(members, name)
	if i < 0 {
		return p
	}
	from, to := members[i].begin, members[i].end
	switch {
	case i+1 < len(members):
		to = members[i+1].begin // and the comma after it
	case i > 0:
		from = members[i-1].end // and the comma before it
	}
	return &Payload{text: p.text[:from] + p.text[to:]}
}

func tooLarge(size int) error {
	return plugin.Errorf(plugin.CodeInputTooLarge, "the payload of an event has %d bytes; at most %d are carried", size, MaxPayload)
}

// valid reports what keeps text from being one JSON value.
func valid(text string) error {
	if simple(text) || jsontext.Value(text).IsValid() {
		return nil
	}
	decoder := jsontext.NewDecoder(strings.NewReader(text)) // again, to say why
	if err := decoder.SkipValue(); err != nil {
		return err
	}
	return errors.New("something follows the value")
}

// simple reports whether text is one of the values that are set most often and
// seen to be valid at a glance: a word, or a string of plain characters.
func simple(text string) bool {
	switch text {
	case "null", "true", "false":
		return true
	}
	last := len(text) - 1
	if last < 1 || text[0] != '"' || text[last] != '"' {
		return false
	}
	for i := 1; i < last; i++ {
		if c := text[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
