package llm

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// Bounds of a move.
const (
	maxText  = 256 << 10
	maxUses  = 16
	maxInput = 256 << 10 // of one use
)

// A streamReader assembles a streamed answer, within the bounds of a move, and passes its
// text on as it arrives.
type streamReader struct {
	say   func(text string) // may be nil
	quiet bool              // it may be empty: the model was just told what its tools answered
	text  strings.Builder
	uses  []*wish
	over  *Error // the bound that was passed
}

func newStreamReader(r *ConverseRequest) *streamReader {
	n := len(r.Messages)
	return &streamReader{say: r.Say, quiet: n > 0 && r.Messages[n-1].Role == ToolRole}
}

// A wish is a use of a tool as it comes.
type wish struct {
	id, name  string
	input     strings.Builder
	signature []byte
}

// tell takes a piece of text.
func (h *streamReader) tell(text string) {
	if h.over != nil || text == "" {
		return
	}
	if room := maxText - h.text.Len(); len(text) > room {
		for room > 0 && !utf8.RuneStart(text[room]) {
			room--
		}
		text = text[:room]
		h.over = tooMuch("its text has more than %d KiB", maxText>>10)
	}
	h.text.WriteString(text)
	if h.say != nil && text != "" {
		h.say(text)
	}
}

// use begins a use of a tool; nil where that is one too many.
func (h *streamReader) use(id, name string) *wish {
	if len(h.uses) == maxUses {
		h.over = tooMuch("it asks for more than %d tools at once", maxUses)
		return nil
	}
	w := &wish{id: id, name: name}
	h.uses = append(h.uses, w)
	return w
}

// add takes a piece of a use's input.
func (h *streamReader) add(w *wish, piece string) {
	if w.input.Len()+len(piece) > maxInput {
		h.over = tooMuch("what it gives a tool has more than %d KiB", maxInput>>10)
		return
	}
	w.input.WriteString(piece)
}

func tooMuch(format string, args ...any) *Error {
	e := errorf(TooLarge, "the answer is larger than is accepted: "+format, args...)
	e.Sent = true
	return e
}

// wishes are the uses, each with a name that can be sent back and an id of its
// own.
func (h *streamReader) wishes(stop string) []ToolUse {
	var all []ToolUse
	for _, w := range h.uses {
		use := ToolUse{ID: w.id, Name: sendable(w.name), Input: object(w.input.String()), Signature: w.signature}
		use.Cut = slices.Contains(exhausted, stop) && !whole(w.input.String())
		if use.ID == "" || len(use.ID) > maxID || slices.ContainsFunc(all, func(u ToolUse) bool { return u.ID == use.ID }) {
			use.ID = "call_" + rand.Text()
		}
		all = append(all, use)
	}
	return all
}

// maxID is the longest id of a use.
const maxID = 128

var (
	toolName = pattern.New(`^[A-Za-z0-9_-]{1,64}$`)
	unnamely = pattern.New(`[^A-Za-z0-9_-]`)
)

// sendable is a name as providers take it: models make up others.
func sendable(name string) string {
	if toolName.MatchString(name) {
		return name
	}
	name = unnamely.ReplaceAllString(name[:min(len(name), 64)], "_")
	if name == "" {
		return "unnamed"
	}
	return name
}

// broken is the member of an input that is none, with what the model wrote.
const broken = "$broken"

// whole reports whether a use's input is one JSON object from its first sign to its
// last.
func whole(text string) bool {
	v := jsontext.Value(strings.TrimSpace(text))
	return v.IsValid() && v.Kind() == '{'
}

// object is a use's input as one JSON object, whatever the model wrote.
func object(text string) json.RawMessage {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" || trimmed == "null" { // of a tool that takes nothing
		return json.RawMessage("{}")
	}
	if whole(trimmed) {
		return json.RawMessage(trimmed)
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	for {
		raw, _ := json.Marshal(map[string]string{broken: text})
		if len(raw) <= maxInput {
			return raw
		}
		text = strings.ToValidUTF8(text[:len(text)/2], "") + "..." // signs may take six times their length
	}
}

// end says what came of it once the stream has ended, and puts the rest into
// the reply. begun is whether anything came; failure and complaint are the
// client's error and the provider's words, if there are any.
func (h *streamReader) end(ctx context.Context, t *attempt, reply *ConverseReply, begun bool, failure error, complaint []byte, refusals ...string) error {
	reply.Text = h.text.String()
	switch {
	case h.over != nil:
		reply.Usage = Usage{} // what was said of it so far is not what it costs
		return h.over
	case reply.Stop == "":
		reply.Usage = Usage{}
		return t.broke(ctx, failure, begun, complaint)
	case slices.Contains(refusals, reply.Stop):
		return errorf(Refused, "the model, or a filter around it, will not answer (%.60s)", reply.Stop)
	}
	reply.Uses = h.wishes(reply.Stop)
	if len(reply.Uses) > 0 || h.quiet && slices.Contains(finished, reply.Stop) {
		return nil
	}
	return stopped(&reply.Reply)
}

// finished are the reasons to stop that mean a model has said all it wanted.
var finished = []string{"stop", "end_turn", "STOP"}

// exhausted are the reasons to stop that mean an answer ends where its tokens did.
var exhausted = []string{"length", "max_tokens", "MAX_TOKENS", "model_length", "model_context_window_exceeded"}

// keep puts what was said into a reply whose client panicked. It is deferred.
func (h *streamReader) keep(reply *ConverseReply) { reply.Text = h.text.String() }
