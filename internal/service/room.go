package service

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/plugin"
)

// take waits for room for so many bytes of the answer that is made under ctx: for
// what is about to be read, with its encoded form. What waits, or is waited for on
// the network without a bound, is done before.
func take(ctx context.Context, name string, bytes int) error {
	return noRoom(name, budget.AnswerOf(ctx).Take(ctx, bytes))
}

func noRoom(name string, err error) error {
	if !errors.Is(err, budget.ErrNoRoom) {
		return err
	}
	return &plugin.Error{Code: plugin.CodeOverloaded, Retryable: true, RetryAfter: time.Second, Message: fmt.Sprintf("%s: %v", name, err)}
}

// A sized is an answer that knows how many bytes it has at most as JSON, and writes
// itself without a second copy of what is large in it.
type sized interface {
	size() int
	appendJSON(b []byte) ([]byte, error)
}

// sizeOfAnswer returns about how many bytes an answer has as JSON, 0 for those that are
// small whatever they are.
func sizeOfAnswer(value any) (n int) {
	switch v := value.(type) {
	case sized:
		return v.size()
	case stored:
		return len(v.Value)
	case cacheFound:
		return len(v.Value)
	case looked:
		return len(v.Value)
	case plugin.Result:
		n = len(v.Data) + len(v.Diagnostics) + quotedSize(v.Summary)
		return n + len(v.Artifacts)<<10
	case kb.Document:
		return sizeOfDocument(&v)
	case kb.DocumentFound:
		n = len(v.Manifest) + len(v.Relational) + 4<<10
		if v.Content != nil {
			n += quotedSize(*v.Content)
		}
		return n
	case kb.ChunkFound:
		return len(v.Topics) + 4<<10
	case *kb.Found:
		for _, one := range v.Results {
			n += sizeOfAnswer(one)
		}
		return n
	case documentsListed:
		for i := range v.Documents {
			n += sizeOfDocument(&v.Documents[i])
		}
		return n
	case hitsFound:
		for i := range v.Results {
			n += 1<<10 + quotedSize(v.Results[i].Text)
		}
		return n
	case queried:
		if v.Text != nil {
			n = quotedSize(*v.Text)
		}
		return n
	case extracted:
		return quotedSize(v.Text)
	case opened:
		return sizeOfRefs(v.Artifacts)
	case artifactList:
		return sizeOfRefs(v.Artifacts)
	}
	return 0
}

func sizeOfDocument(d *kb.Document) int {
	return 1<<10 + len(d.Attributes) + len(d.Extraction) + len(d.Title) + len(d.URL) + quotedSize(d.Text)
}

func sizeOfRefs(list []ref) (n int) {
	for i := range list {
		n += 512 + len(list[i].Metadata)
	}
	return n
}

// quotedSize is how many bytes a text has as a JSON string.
func quotedSize(text string) int {
	n := len(text) + 2
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"', c == '\\', c == '\n', c == '\r', c == '\t', c == '\b', c == '\f':
			n++
		case c < ' ':
			n += 5
		case c >= utf8.RuneSelf:
			if r, size := utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && size == 1 {
				n += 2
			} else {
				i += size - 1
			}
		}
	}
	return n
}

// encode returns an answer as the plugin gets it. A large one has its room before it
// is encoded, and one that is longer than a line may be is not encoded at all.
func (g *grant) encode(ctx context.Context, name string, value any, t task) (raw json.RawMessage, err error) {
	n := sizeOfAnswer(value)
	if limit := g.broker.maxAnswer(); n > limit+limit/8+4<<10 {
		return nil, g.tooLong(name, n, t)
	}
	if n <= budget.AnswerFree {
		raw, err = json2.Marshal(value, json2.Deterministic(true))
	} else {
		room := budget.AnswerOf(ctx)
		if err := room.TakeInHand(ctx, 2*n); err != nil {
			err = noRoom(name, err)
			var e *plugin.Error
			if errors.As(err, &e) && (t.effect != "" || t.class == Nested) { // it must not be repeated for its answer
				return nil, plugin.Errorf(e.Code, "%s; what was asked for has been done", e.Message)
			}
			return nil, err
		}
		work := func() error { raw, err = json2.Marshal(value, json2.Deterministic(true)); return err }
		weight := min(3*n, budget.Capacity)
		if s, ok := value.(sized); ok {
			weight, work = n, func() error { raw, err = s.appendJSON(make([]byte, 0, n)); return err }
		}
		err = budget.Do(weight, work)
	}
	if err != nil {
		return nil, err
	}
	if len(raw) > g.broker.maxAnswer() {
		return nil, g.tooLong(name, len(raw), t)
	}
	return raw, nil
}

func (g *grant) tooLong(name string, n int, t task) error {
	done := ""
	if t.effect != "" && g.call.Dry == nil {
		done = "; the effect has happened"
	}
	return plugin.Errorf(plugin.CodeLimitExceeded,
		"%s: the answer has %d bytes, and %d fit into one line of the protocol; ask for less, or let an administrator raise limits.frame_bytes%s", name, n, g.broker.maxAnswer(), done)
}

// size implements [sized].
func (f *fetched) size() int {
	n := 1<<10 + len(f.URL) + len(f.JSON) + (len(f.BodyBase64)+2)/3*4
	for name, value := range f.Headers {
		n += quotedSize(name) + quotedSize(value) + 2
	}
	if f.Body != nil {
		n += quotedSize(*f.Body)
	}
	return n + 4<<10 // the failure
}

// appendJSON implements [sized]. The body goes on as it came: as JSON it is valid.
func (f *fetched) appendJSON(b []byte) ([]byte, error) {
	rest := *f
	rest.JSON, rest.Body, rest.BodyBase64 = nil, nil, nil
	raw, err := json2.Marshal(&rest, json2.Deterministic(true))
	if err != nil {
		return nil, err
	}
	b = append(b, raw[:len(raw)-1]...) // it has other members
	switch {
	case f.JSON != nil:
		b = appendCompact(append(b, `,"json":`...), f.JSON)
	case f.Body != nil:
		if b, err = jsontext.AppendQuote(append(b, `,"body":`...), *f.Body); err != nil {
			return nil, err
		}
	case f.BodyBase64 != nil:
		b = append(b, `,"body_base64":"`...)
		b = base64.StdEncoding.AppendEncode(b, f.BodyBase64)
		b = append(b, '"')
	}
	return append(b, '}'), nil
}

// appendCompact appends JSON that is valid without the white space between its tokens.
func appendCompact(b, raw []byte) []byte {
	from, text := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case !text && (c == ' ' || c == '\t' || c == '\r' || c == '\n'):
			b = append(b, raw[from:i]...)
			from = i + 1
		}
	}
	return append(b, raw[from:]...)
}
