package llm

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// weather is a tool with a schema that has what some providers refuse.
var weather = Tool{Name: "weather", Description: "Looks outside.", Schema: json.RawMessage(`{
	"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "additionalProperties": false, "required": ["place"], "anyOf": [{"required": ["place"]}],
	"properties": {"place": {"type": "string", "minLength": 1, "format": "uri"}, "additionalProperties": {"const": 9007199254740993}, "days": {"type": "array", "items": {"$ref": "#/definitions/day"}}},
	"definitions": {"day": {"type": "string", "pattern": "^d", "format": "date"}}}`)}

func talk(messages ...Message) Conversation {
	if messages == nil {
		messages = []Message{{Role: User, Text: "what is it?"}}
	}
	return Conversation{System: "be brief", Messages: messages, Tools: []Tool{weather}, MaxTokens: 100}
}

func (d *desk) move(c Conversation) Move { return d.Converse(d.t.Context(), caller(), c) }

// listen notes what is said.
func listen(c *Conversation) *[]string {
	var said []string
	c.Say = func(text string) { said = append(said, text) }
	return &said
}

func TestAConversationGoesOnInEveryFormat(t *testing.T) {
	t.Parallel()
	eachTalkWire(t, func(t *testing.T, w *talkWire) {
		w.steps(func(s *stream) { s.text("It "); s.text("rains, häufig."); s.end("", 10, 5) })
		d := newDesk(t, nil, w.model("m", Light))
		c := talk()
		said := listen(&c)
		got := d.move(c)
		want := Move{Text: "It rains, häufig.", Stop: normal[w.format], Model: "m", Usage: Usage{10, 5}, Cost: 10*100 + 5*200}
		if !reflect.DeepEqual(got, want) || !slices.Equal(*said, []string{"It ", "rains, häufig."}) {
			t.Errorf("got %+v, heard %q", got, *said)
		}
		heard := w.heard()[0]
		if heard.model != "m-id" || heard.system != "be brief" || heard.maxTokens != 100 || !slices.Equal(heard.lines, []string{"user what is it?"}) || heard.none {
			t.Errorf("the server read %+v", heard)
		}
	})
}

func TestToolsAreOfferedAsEachProviderTakesThem(t *testing.T) {
	t.Parallel()
	plain := `{"$schema":"https://json-schema.org/draft/2020-12/schema","additionalProperties":false,"definitions":{"day":{"format":"date","pattern":"^d","type":"string"}},"properties":{"additionalProperties":{"const":9007199254740993},"days":{"items":{"$ref":"#/definitions/day"},"type":"array"},"place":{"format":"uri","minLength":1,"type":"string"}},"required":["place"],"type":"object"}`
	want := map[string]string{
		"openai": plain, "anthropic": plain,
		"gemini": `{"$defs":{"day":{"format":"date","type":"string"}},"properties":{"additionalProperties":{"enum":[9007199254740993]},"days":{"items":{"$ref":"#/$defs/day"},"type":"array"},"place":{"type":"string"}},"required":["place"],"type":"object"}`,
	}
	eachTalkWire(t, func(t *testing.T, w *talkWire) {
		c := talk()
		c.Tools = append(c.Tools, Tool{Name: "plain-1"})
		if m := newDesk(t, nil, w.model("m", Light)).move(c); m.Err != nil {
			t.Fatal(m.Err)
		}
		got := w.heard()[0].tools
		same := func(got, want string) bool { // a number of a schema may lose digits, a keyword may not be lost
			var a, b any
			return json.Unmarshal([]byte(got), &a) == nil && json.Unmarshal([]byte(want), &b) == nil && reflect.DeepEqual(a, b)
		}
		words, found := strings.CutPrefix(got["weather"], "Looks outside. ")
		if !found || !same(words, want[w.format]) {
			t.Errorf("the tool is %s", got["weather"])
		}
		empty := map[string]string{"openai": ` {"properties":{},"type":"object"}`, "anthropic": ` {"properties":{},"type":"object"}`, "gemini": " "}[w.format]
		if len(got) != 2 || got["plain-1"] != empty {
			t.Errorf("the tool without a schema is %q", got["plain-1"])
		}
	})
}

func TestAModelAsksForTools(t *testing.T) {
	t.Parallel()
	eachTalkWire(t, func(t *testing.T, w *talkWire) {
		var signature []byte
		if w.format == "gemini" {
			signature = []byte("signed")
		}
		use := func(id, input string) ToolUse {
			return ToolUse{ID: id, Name: "weather", Input: json.RawMessage(input), Signature: signature}
		}
		for name, c := range map[string]struct {
			reply func(s *stream)
			text  string
			uses  []ToolUse
		}{
			"one":        {func(s *stream) { s.use("c1", "weather", `{"place":"Oslo"}`) }, "", []ToolUse{use("c1", `{"place":"Oslo"}`)}},
			"at once":    {func(s *stream) { s.use("c1", "weather", `{"place":"Oslo"}`); s.use("c2", "weather", `{}`) }, "", []ToolUse{use("c1", `{"place":"Oslo"}`), use("c2", `{}`)}},
			"after text": {func(s *stream) { s.text("I look."); s.use("c1", "weather", `{"n":[1,2]}`) }, "I look.", []ToolUse{use("c1", `{"n":[1,2]}`)}},
		} {
			w.steps(func(s *stream) { c.reply(s); s.end("", 10, 5) })
			d := newDesk(t, nil, w.model("m", Light))
			if got := d.move(talk()); got.Err != nil || got.Text != c.text || !reflect.DeepEqual(got.Uses, c.uses) || got.Cost != 2000 {
				t.Errorf("%s: got %+v, uses %+v", name, got, got.Uses)
			}
		}
	})
}

func TestUsesWithoutAnIdOfTheirOwnGetOne(t *testing.T) {
	t.Parallel()
	eachTalkWire(t, func(t *testing.T, w *talkWire) {
		w.steps(func(s *stream) {
			s.use("", "weather", `{}`)
			s.use("c1", "look.up now", `{}`)
			s.end("", 10, 5)
		})
		got := newDesk(t, nil, w.model("m", Light)).move(talk())
		if got.Err != nil || len(got.Uses) != 2 || len(got.Uses[0].ID) < 20 || got.Uses[1].ID != "c1" || got.Uses[1].Name != "look_up_now" {
			t.Errorf("got %+v", got)
		}
	})
}

// TestServersThatNumberAllUsesZero is what some that speak OpenAI's format do.
func TestServersThatNumberAllUsesZero(t *testing.T) {
	t.Parallel()
	w := newTalkWire(t, "openai")
	w.steps(func(s *stream) {
		s.delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"weather","arguments":"{\"n\":"}}]}`)
		s.delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"weather","arguments":"1}"}}]}`)
		s.delta(`{"tool_calls":[{"index":0,"id":"b","function":{"name":"weather","arguments":"{\"n\":2}"}}]}`)
		s.end("tool_calls", 10, 5)
	})
	got := newDesk(t, nil, w.model("m", Light)).move(talk())
	want := []ToolUse{{ID: "a", Name: "weather", Input: json.RawMessage(`{"n":1}`)}, {ID: "b", Name: "weather", Input: json.RawMessage(`{"n":2}`)}}
	if got.Err != nil || !reflect.DeepEqual(got.Uses, want) {
		t.Errorf("got %+v", got)
	}
}

func TestBrokenInputIsKept(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"openai", "anthropic"} { // Gemini gives objects
		w := newTalkWire(t, format)
		for text, want := range map[string]string{
			`{"place":"Os`: `{"$broken":"{\"place\":\"Os"}`, `[1]`: `{"$broken":"[1]"}`, `{"a":1,"a":2}`: `{"$broken":"{\"a\":1,\"a\":2}"}`,
			`"x"`: `{"$broken":"\"x\""}`, ``: `{}`, ` {"big":9007199254740993} `: `{"big":9007199254740993}`,
		} {
			w.steps(func(s *stream) { s.use("c1", "weather", text); s.end("", 10, 5) })
			got := newDesk(t, nil, w.model("m", Light)).move(talk())
			if got.Err != nil || len(got.Uses) != 1 || string(got.Uses[0].Input) != want {
				t.Errorf("%s, %s: got %+v %+v", format, text, got.Err, got.Uses)
			}
		}
	}
	if got := object(strings.Repeat("\x00", maxInput)); len(got) > maxInput || !json.Valid(got) || !strings.Contains(string(got), broken) {
		t.Errorf("a broken input becomes one of %d bytes", len(got))
	}
}

// TestAUseThatTheLimitOfTokensCutIsNone: at whichever sign its input ends.
func TestAUseThatTheLimitOfTokensCutIsNone(t *testing.T) {
	t.Parallel()
	const input = `{"place":"Os\"lo","deep":{"n":[1,2]}}`
	for format, limit := range map[string]string{"openai": "length", "anthropic": "max_tokens", "gemini": "MAX_TOKENS"} {
		w := newTalkWire(t, format)
		for n := 0; n <= len(input); n++ {
			if format == "gemini" && n < len(input) { // which gives whole objects
				continue
			}
			w.steps(func(s *stream) {
				s.use("c1", "weather", `{"place":"Rome"}`)
				s.use("c2", "weather", input[:n])
				s.end(limit, 10, 5)
			})
			got := newDesk(t, nil, w.model("m", Light)).move(talk())
			if got.Err != nil || len(got.Uses) != 2 || got.Uses[0].Cut || got.Uses[1].Cut != (n < len(input)) {
				t.Errorf("%s, cut after %q: %+v, %+v", format, input[:n], got.Err, got.Uses)
			}
		}
		if format == "gemini" {
			continue
		}
		w.steps(func(s *stream) { s.use("c1", "weather", ``); s.end("", 10, 5) }) // of a tool that takes nothing
		if got := newDesk(t, nil, w.model("m", Light)).move(talk()); got.Err != nil || len(got.Uses) != 1 || got.Uses[0].Cut {
			t.Errorf("%s: %+v", format, got)
		}
	}
}

func TestResultsAreSentBack(t *testing.T) {
	t.Parallel()
	in := json.RawMessage(`{"place":"Oslo"}`)
	messages := []Message{
		{Role: User, Text: "what is it?"},
		{Role: Assistant, Text: "I look.", Uses: []ToolUse{{ID: "c:1", Name: "weather", Input: in, Signature: []byte("mine")}, {ID: "c2", Name: "weather", Input: in}}},
		{Role: ToolRole, Results: []ToolResult{{ID: "c2", Name: "weather", Text: "no such place", Failed: true}}},
		{Role: ToolRole, Results: []ToolResult{{ID: "c:1", Name: "weather", Text: "rain"}}},
		{Role: User, Text: "and now?"},
		{Role: Assistant},
		{Role: Assistant, Uses: []ToolUse{{ID: "c3", Name: "weather"}}},
		{Role: User, Text: "well?"},
	}
	want := map[string][]string{
		"openai": {"user what is it?", "assistant I look.", "use c:1 weather " + string(in), "use c2 weather " + string(in), "result c:1 rain", "result c2 The tool failed: no such place",
			"user and now?", "use c3 weather {}", "result c3 The tool failed: " + unanswered, "user well?"},
		"anthropic": {"user what is it?", "assistant I look.", "use c_1 weather " + string(in), "use c2 weather " + string(in), "result c_1 rain", "result c2 FAILED no such place",
			"user and now?", "use c3 weather {}", "result c3 FAILED " + unanswered, "user well?"},
		"gemini": {"user what is it?", "assistant I look.", "use c:1 weather " + string(in) + " signed mine", "use c2 weather " + string(in), "result c:1 rain", "result c2 FAILED no such place",
			"user and now?", "use c3 weather  signed " + unsigned, "result c3 FAILED " + unanswered, "user well?"},
	}
	eachTalkWire(t, func(t *testing.T, w *talkWire) {
		if m := newDesk(t, nil, w.model("m", Light)).move(talk(messages...)); m.Err != nil {
			t.Fatal(m.Err)
		}
		if got := w.heard()[0].lines; !slices.Equal(got, want[w.format]) {
			t.Errorf("the server read\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want[w.format], "\n"))
		}
	})
}

func TestUsesOfToolsThatAreNoMoreOffered(t *testing.T) {
	t.Parallel()
	eachTalkWire(t, func(t *testing.T, w *talkWire) {
		c := talk(Message{Role: User, Text: "what is it?"}, Message{Role: Assistant, Uses: []ToolUse{{ID: "c1", Name: "weather"}}},
			Message{Role: ToolRole, Results: []ToolResult{{ID: "c1", Text: ""}}})
		c.Tools = nil
		if m := newDesk(t, nil, w.model("m", Light)).move(c); m.Err != nil {
			t.Fatal(m.Err)
		}
		if got := w.heard()[0]; got.none != (w.format == "anthropic") || len(got.tools) > 0 != got.none || !slices.Contains(got.lines, "result c1 ") {
			t.Errorf("the server read %+v", got)
		}
	})
}

func TestAModelMaySayNothingMoreAfterItsTools(t *testing.T) {
	t.Parallel()
	eachTalkWire(t, func(t *testing.T, w *talkWire) {
		w.steps(func(s *stream) { s.end("", 10, 0) })
		d := newDesk(t, nil, w.model("m", Light))
		after := []Message{{Role: User, Text: "do it"}, {Role: Assistant, Uses: []ToolUse{{ID: "c1", Name: "weather"}}}, {Role: ToolRole, Results: []ToolResult{{ID: "c1", Text: "done"}}}}
		if m := d.move(talk(after...)); m.Err != nil || m.Text != "" {
			t.Errorf("after a tool: %+v", m)
		}
		if m := d.move(talk()); m.Err == nil || m.Err.Kind != Malformed {
			t.Errorf("at once: %+v", m)
		}
		cutShort := map[string]string{"openai": "length", "anthropic": "max_tokens", "gemini": "MAX_TOKENS"}[w.format]
		w.steps(func(s *stream) { s.end(cutShort, 10, 100) })
		if m := d.move(talk(after...)); m.Err == nil || m.Err.Kind != Malformed || !strings.Contains(m.Err.Message, "max_tokens") || m.Cost == 0 {
			t.Errorf("all tokens used: %+v", m)
		}
	})
}

// TestAStreamThatBreaksOffIsAFailure: what was said is kept and paid for, and it
// is not asked for a second time.
func TestAStreamThatBreaksOffIsAFailure(t *testing.T) {
	t.Parallel()
	eachTalkWire(t, func(t *testing.T, w *talkWire) {
		overloaded := map[string]string{"openai": "server_error", "anthropic": "overloaded_error", "gemini": ""}[w.format]
		for name, c := range map[string]struct {
			end  func(s *stream)
			kind Kind
			says string
		}{
			"connection":   {(*stream).cut, Unreachable, "broke off"},
			"cleanly":      {func(*stream) {}, Unreachable, "broke off"},
			"in an event":  {func(s *stream) { s.complain(overloaded, "busy, "+secret) }, Overloaded, "its answer broke off: busy, [key]"},
			"for its rate": {func(s *stream) { s.complain("rate_limit_error", "slow down") }, Pace, "its answer broke off: slow down"},
			"in a use": {func(s *stream) {
				if s.format != "gemini" {
					s.use("c1", "weather", `{"place":`)
				}
				s.cut()
			}, Unreachable, "broke off"},
		} {
			w.steps(func(s *stream) { s.text("It is "); c.end(s) })
			other := newTalkWire(t, w.format)
			m := w.model("m", Light)
			d := newDesk(t, nil, m, other.model("other", Heavy))
			talking := talk()
			said := listen(&talking)
			got := d.move(talking)
			if got.Err == nil || got.Err.Kind != c.kind || !strings.Contains(got.Err.Message, c.says) || got.Text != "It is " || got.Uses != nil || !slices.Equal(*said, []string{"It is "}) {
				t.Errorf("%s: got %+v, %v; heard %q", name, got, got.Err, *said)
			}
			if len(w.heard()) != 1 || len(other.heard()) != 0 || len(d.waits) != 0 {
				t.Errorf("%s: %d requests, %d to another model", name, len(w.heard()), len(other.heard()))
			}
			worst := m.cost(m.worstMove(&ConverseRequest{System: "be brief", Messages: talking.Messages, Tools: talking.Tools, MaxTokens: 100}))
			if d.today() != worst || got.Cost != worst || !d.kept[0].Record.Estimated {
				t.Errorf("%s: it cost %d, %d is booked, want %d", name, got.Cost, d.today(), worst)
			}
			if e := d.kept[0]; e.Record.Outcome != string(c.kind) || string(e.Answer) != `{"text":"It is ","uses":[]}` || e.Record.AnswerHash == "" || !slices.Contains(e.Record.Labels, "untrusted") {
				t.Errorf("%s: the record has %+v and %s", name, e.Record, e.Answer)
			}
		}
	})
}

func TestWhatBreaksBeforeTheFirstWordIsAskedAgain(t *testing.T) {
	t.Parallel()
	eachTalkWire(t, func(t *testing.T, w *talkWire) {
		w.steps(
			func(s *stream) { w.refuse(s, 429, "rate_limit_error", "slow down") },
			func(s *stream) { w.refuse(s, 503, "overloaded_error", "busy") },
			func(s *stream) { s.cut() },
			func(s *stream) { s.text("fine"); s.end("", 10, 5) },
		)
		d := newDesk(t, nil, w.model("m", Light))
		got := d.move(talk())
		if got.Err != nil || got.Text != "fine" || got.Usage.Out < 5 || !slices.Equal(d.waits, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}) {
			t.Errorf("got %+v after %v", got, d.waits)
		}
		outcomes := ""
		for _, a := range d.kept[0].Record.Attempts {
			outcomes += a.Outcome + " "
		}
		if outcomes != "rate_limited overloaded unreachable ok " || d.today() != got.Cost {
			t.Errorf("the record has %q; %d is booked, %d said", outcomes, d.today(), got.Cost)
		}
	})
}

func TestAConversationGoesToTheOtherTierWhereAQuotaIsUsedUp(t *testing.T) {
	t.Parallel()
	eachTalkWire(t, func(t *testing.T, w *talkWire) {
		w.steps(func(s *stream) { w.refuse(s, 402, "billing_error", "pay first") })
		other := newTalkWire(t, "openai")
		d := newDesk(t, nil, w.model("light", Light), other.model("heavy", Heavy))
		if got := d.move(talk()); got.Err != nil || got.Model != "heavy" || got.Text != "fine" {
			t.Errorf("got %+v", got)
		}
		c := talk()
		c.Hints = &Hints{Tier: Heavy}
		if got := d.move(c); got.Err != nil || got.Model != "heavy" || len(w.heard()) != 1 {
			t.Errorf("with a hint: %+v", got)
		}
	})
}

func TestAConversationThatCouldPassABudgetIsNotSent(t *testing.T) {
	t.Parallel()
	w := newTalkWire(t, "anthropic")
	m := w.model("m", Light)
	c := talk()
	worst := m.cost(m.worstMove(&ConverseRequest{System: c.System, Messages: c.Messages, Tools: c.Tools, MaxTokens: c.MaxTokens}))
	under := worst - 1
	for name, limits := range map[string]Limits{"query": {Query: under}, "call": {Call: under}, "session": {Session: under}, "day": {Day: under}} {
		d := newDesk(t, func(o *Options) { o.Limits = limits }, m)
		by := caller()
		got := d.Converse(t.Context(), by, c)
		if got.Err == nil || got.Err.Kind != Budget || got.Cost != 0 || d.today() != 0 || by.Usage.reserved != 0 || len(d.kept) != 1 || d.kept[0].Record.Outcome != "budget_exceeded" {
			t.Errorf("%s: got %+v, spent %d, kept %+v", name, got, d.today(), d.kept)
		}
	}
	c.Hints = &Hints{Tier: Light, MaxBudget: &under}
	if got := newDesk(t, nil, m).move(c); got.Err == nil || got.Err.Kind != Budget || len(w.heard()) != 0 {
		t.Errorf("hint: %+v, %d requests", got, len(w.heard()))
	}
	c.Hints = nil
	if got := newDesk(t, func(o *Options) { o.Limits = Limits{worst, worst, worst, worst} }, m).move(c); got.Err != nil {
		t.Errorf("with just enough: %+v", got)
	}
}

// TestAllThatIsSentIsEstimated: whatever is added to a conversation, what may be
// used grows by no less.
func TestAllThatIsSentIsEstimated(t *testing.T) {
	t.Parallel()
	m := Model{}
	many := strings.Repeat("7", 1000) // a token each
	in := json.RawMessage(`{"n":"` + many + `"}`)
	base := m.worstMove(&ConverseRequest{MaxTokens: 5})
	for name, r := range map[string]ConverseRequest{
		"system":      {System: many},
		"text":        {Messages: []Message{{Text: many}}},
		"use":         {Messages: []Message{{Uses: []ToolUse{{Input: in}}}}},
		"signature":   {Messages: []Message{{Uses: []ToolUse{{Signature: []byte(many)}}}}},
		"result":      {Messages: []Message{{Results: []ToolResult{{Text: many}}}}},
		"schema":      {Tools: []Tool{{Schema: in}}},
		"description": {Tools: []Tool{{Description: many}}},
		"messages":    {Messages: make([]Message, 100)},
	} {
		r.MaxTokens = 5
		least := 1000
		if len(r.Tools) > 0 {
			least += toolTokens
		}
		if got := m.worstMove(&r); got.In < base.In+least || got.Out != 5 {
			t.Errorf("%s: %+v, and %+v without", name, got, base)
		}
	}
	small := Model{Context: 500}
	if got := small.worstMove(&ConverseRequest{System: many, MaxTokens: 5}); got.In != 500 {
		t.Errorf("beyond the context: %+v", got)
	}
}

func TestAConversationIsPaced(t *testing.T) {
	t.Parallel()
	w := newTalkWire(t, "openai")
	d := newDesk(t, func(o *Options) { o.PerMinute = 1 }, w.model("m", Light))
	if got := d.move(talk()); got.Err != nil {
		t.Fatal(got.Err)
	}
	if got := d.move(talk()); got.Err == nil || got.Err.Kind != Pace || len(w.heard()) != 1 {
		t.Errorf("the second: %+v", got)
	}
}

func TestACancelledConversationEndsAtOnce(t *testing.T) {
	t.Parallel()
	eachTalkWire(t, func(t *testing.T, w *talkWire) {
		w.steps(func(s *stream) { s.text("It is "); s.hang() })
		d := newDesk(t, func(o *Options) { o.AtOnce = 1 }, w.model("m", Light))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := talk()
		c.Say = func(string) { cancel() }
		got := d.Converse(ctx, caller(), c) // the model hangs
		if got.Err == nil || got.Err.Kind != Cancelled || got.Text != "It is " || got.Cost == 0 || d.today() != got.Cost || len(d.slots) != 0 {
			t.Errorf("got %+v, booked %d", got, d.today())
		}
		if len(d.kept) != 1 || d.kept[0].Record.Outcome != "cancelled" {
			t.Errorf("the record has %+v", d.kept)
		}
		late, expire := expiring(t.Context())
		c = talk()
		c.Say = func(string) { expire() }
		if got := d.Converse(late, caller(), c); got.Err == nil || got.Err.Kind != Timeout || got.Text != "It is " || len(w.heard()) != 2 {
			t.Errorf("the deadline: %+v", got)
		}
	})
}

func TestLongAnswersAreBounded(t *testing.T) {
	t.Parallel()
	eachTalkWire(t, func(t *testing.T, w *talkWire) {
		piece := strings.Repeat("é", 32<<10)
		flood := func(s *stream, data string) {
			for range 10<<20/len(data) + 1 {
				if _, err := io.WriteString(s, data); err != nil {
					return
				}
			}
		}
		for name, c := range map[string]struct {
			reply func(s *stream)
			text  int
		}{
			"10 MB of text": {func(s *stream) {
				s.text("x")
				for range 160 {
					if !s.text(piece) {
						return
					}
				}
				s.end("", 10, 5)
			}, maxText - 1}, // a letter of two bytes is not cut in half
			"an event of 10 MB": {func(s *stream) { s.text("x"); _, _ = io.WriteString(s, "data: "); flood(s, piece) }, 1},
			"17 uses": {func(s *stream) {
				for i := range 17 {
					s.use(string(rune('a'+i)), "weather", `{}`)
				}
				s.end("", 10, 5)
			}, 0},
			"a long input": {func(s *stream) {
				s.use("c1", "weather", `{"x":"`+strings.Repeat("x", maxInput)+`"}`)
				s.end("", 10, 5)
			}, 0},
		} {
			w.steps(c.reply)
			d := newDesk(t, nil, w.model("m", Light))
			talking := talk()
			heard := 0
			talking.Say = func(text string) { heard += len(text) }
			got := d.move(talking)
			if got.Err == nil || got.Err.Kind != TooLarge || len(got.Text) != c.text || heard != c.text || got.Uses != nil || len(w.heard()) != 1 || !d.kept[0].Record.Estimated {
				t.Errorf("%s: %v, %d bytes of text, heard %d, %d uses", name, got.Err, len(got.Text), heard, len(got.Uses))
			}
		}
		w.steps(func(s *stream) {
			for range 16 {
				s.use("", "weather", `{}`)
			}
			for range 4 {
				s.text(strings.Repeat("y", maxText/4))
			}
			s.end("", 10, 5)
		})
		if got := newDesk(t, nil, w.model("m", Light)).move(talk()); got.Err != nil || len(got.Uses) != 16 || len(got.Text) != maxText {
			t.Errorf("just enough: %v, %d uses, %d bytes", got.Err, len(got.Uses), len(got.Text))
		}
	})
}

// TestAStreamWithoutAWordIsBounded sends events that say nothing, for longer
// than any answer is.
func TestAStreamWithoutAWordIsBounded(t *testing.T) {
	t.Parallel()
	eachTalkWire(t, func(t *testing.T, w *talkWire) {
		w.steps(func(s *stream) {
			s.text("x")
			pad := strings.Repeat("x", 64<<10)
			empty := map[string]string{
				"openai": ": " + pad + "\r\n\r\n", "anthropic": "event: ping\ndata: \"" + pad + "\"\n\n", "gemini": "data: {\"usageMetadata\":{}, \"x\":\"" + pad + "\"}\n\n",
			}[s.format]
			many := strings.Repeat(empty, 64<<10/len(empty)+1)
			for sent := 0; sent < 2*maxStream; sent += len(many) {
				if _, err := io.WriteString(s, many); err != nil {
					return
				}
			}
		})
		if got := newDesk(t, nil, w.model("m", Light)).move(talk()); got.Err == nil || got.Err.Kind != TooLarge || got.Text != "x" || !strings.Contains(got.Err.Message, "32 MiB") {
			t.Errorf("got %+v", got)
		}
	})
}

// TestALongStreamOfShortEventsIsWhole has what an answer of many words comes in.
func TestALongStreamOfShortEventsIsWhole(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"\n", "\r\n"} {
		event := "data: " + strings.Repeat("x", 1<<10) + end + end
		many := strings.Repeat(event, (maxAnswer+(4<<20))/len(event))
		attempt := &attempt{stream: true}
		got, err := io.Copy(io.Discard, &events{ReadCloser: io.NopCloser(iotest.HalfReader(strings.NewReader(many))), attempt: attempt})
		if err != nil || got != int64(len(many)) || attempt.large || attempt.cut {
			t.Errorf("%q: %d of %d bytes, %v, %+v", end, got, len(many), err, attempt)
		}
	}
}

func TestARefusalInAStream(t *testing.T) {
	t.Parallel()
	eachTalkWire(t, func(t *testing.T, w *talkWire) {
		reason := map[string]string{"openai": "content_filter", "anthropic": "refusal", "gemini": "SAFETY"}[w.format]
		w.steps(func(s *stream) { s.text("I"); s.end(reason, 10, 5) })
		d := newDesk(t, nil, w.model("m", Light))
		if got := d.move(talk()); got.Err == nil || got.Err.Kind != Refused || got.Text != "I" || got.Cost != 2000 {
			t.Errorf("got %+v", got)
		}
		w.steps(func(s *stream) {
			switch s.format {
			case "openai":
				s.delta(`{"refusal":"I cannot "}`)
				s.delta(`{"refusal":"do that."}`)
				s.end("stop", 10, 5)
			case "anthropic":
				s.end("refusal", 10, 5)
			default:
				s.event("", `{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":10}}`)
			}
		})
		if got := d.move(talk()); got.Err == nil || got.Err.Kind != Refused {
			t.Errorf("got %+v", got)
		}
	})
}

func TestWhatIsNoStreamIsMalformed(t *testing.T) {
	t.Parallel()
	eachTalkWire(t, func(t *testing.T, w *talkWire) {
		for _, body := range []string{"", "null", "<html>welcome</html>", `{"hello":"world"}`, "data: {\"hello\":\"world\"}\n\n", "event: message_start\ndata: 7\n\n", "data: null\n\n"} {
			w.steps(func(s *stream) { _, _ = io.WriteString(s, body) })
			got := newDesk(t, nil, w.model("m", Light)).move(talk())
			if got.Err == nil || got.Err.Kind != Malformed || got.Cost == 0 || len(w.heard()) != 1 {
				t.Errorf("%q: got %+v, %v", body, got, got.Err)
			}
		}
	})
}

func TestAMoveIsOnRecord(t *testing.T) {
	t.Parallel()
	eachTalkWire(t, func(t *testing.T, w *talkWire) {
		w.steps(func(s *stream) { s.text("I look."); s.use("c1", "weather", `{"place":"Oslo"}`); s.end("", 10, 5) })
		d := newDesk(t, nil, w.model("m", Light))
		by := caller()
		if got := d.Converse(t.Context(), by, talk()); got.Err != nil {
			t.Fatal(got.Err)
		}
		e := d.kept[0]
		r := e.Record
		if r.CallID != "call-1" || r.Session != "sess_1" || r.Tier != "light" || r.Model != "m" || r.Provider != w.format || r.Answered != "m-1" || r.Stop != normal[w.format] ||
			r.TokensIn != 10 || r.TokensOut != 5 || r.Cost != 2000 || r.Outcome != "ok" || r.Path != PathText || r.Estimated || len(r.Attempts) != 1 {
			t.Errorf("the record is %+v", r)
		}
		if want := map[string]any{"max_tokens": 100, "messages": 1, "tools": 1}; !reflect.DeepEqual(r.Parameters, want) {
			t.Errorf("the parameters are %v", r.Parameters)
		}
		var asked struct {
			System   string    `json:"system"`
			Messages []Message `json:"messages"`
			Tools    []Tool    `json:"tools"`
		}
		var said struct {
			Text string    `json:"text"`
			Uses []ToolUse `json:"uses"`
		}
		if err := errors.Join(json.Unmarshal(e.Prompt, &asked), json.Unmarshal(e.Answer, &said)); err != nil {
			t.Fatal(err)
		}
		if asked.System != "be brief" || asked.Messages[0].Text != "what is it?" || asked.Tools[0].Name != "weather" || said.Text != "I look." || said.Uses[0].ID != "c1" {
			t.Errorf("kept %s and %s", e.Prompt, e.Answer)
		}
		if r.PromptHash != hashOf(e.Prompt) || r.AnswerHash != hashOf(e.Answer) || !slices.Equal(r.Labels, []string{"private", "untrusted"}) || by.Usage.spent != 2000 {
			t.Errorf("hashes %s %s, labels %v, spent %d", r.PromptHash, r.AnswerHash, r.Labels, by.Usage.spent)
		}
	})
	w := newTalkWire(t, "openai")
	w.steps(func(s *stream) { s.text("I look."); s.use("c1", "weather", `{}`); s.end("", 10, 5) })
	d := newDesk(t, func(o *Options) { o.Record = func(context.Context, *Exchange) error { return errors.New("disk full") } }, w.model("m", Light))
	if got := d.move(talk()); got.Err == nil || got.Err.Kind != Internal || got.Text != "" || got.Uses != nil || got.Cost != 2000 {
		t.Errorf("not recorded: %+v", got)
	}
}

func TestWhoCannotConverseIsNotAsked(t *testing.T) {
	t.Parallel()
	mute := Model{Name: "m", Tier: Light, Provider: "odd", Asks: panicking{}, Context: 1000}
	if got := newDesk(t, nil, mute).move(talk()); got.Err == nil || got.Err.Kind != Gap || !strings.Contains(got.Err.Message, "conversations") {
		t.Errorf("got %+v", got)
	}
	w := newTalkWire(t, "openai")
	d := newDesk(t, nil, mute, w.model("other", Heavy))
	if got := d.move(talk()); got.Err != nil || got.Model != "other" || !strings.Contains(d.kept[0].Record.Fallback, "light tier") {
		t.Errorf("got %+v", got)
	}
	var none *Dispatcher
	for _, d := range []*Dispatcher{none, New(Options{})} {
		if got := d.Converse(t.Context(), caller(), talk()); got.Err == nil || got.Err.Kind != NotConfigured {
			t.Errorf("no model: %+v", got)
		}
	}
}

func TestConversationsThatAreNone(t *testing.T) {
	t.Parallel()
	w := newTalkWire(t, "openai")
	d := newDesk(t, nil, w.model("m", Light))
	user := Message{Role: User, Text: "what is it?"}
	uses := func(uses ...ToolUse) Message { return Message{Role: Assistant, Uses: uses} }
	result := Message{Role: ToolRole, Results: []ToolResult{{ID: "c1", Text: "x"}}}
	tools := func(tools ...Tool) Conversation { c := talk(user); c.Tools = tools; return c }
	for text, c := range map[string]Conversation{
		"max_tokens":                 {Messages: []Message{user}},
		"needs a message to":         {MaxTokens: 5},
		"something in it":            talk(Message{Role: User, Text: " "}),
		"the role is":                talk(Message{Role: "system", Text: "x"}),
		"only an assistant":          talk(Message{Role: User, Uses: []ToolUse{{ID: "c1", Name: "weather"}}}),
		"only a message of the role": talk(Message{Role: User, Results: result.Results}),
		"an id of its own":           talk(user, uses(ToolUse{ID: "c1", Name: "weather"}, ToolUse{ID: "c1", Name: "weather"})),
		`called "two words"`:         talk(user, uses(ToolUse{ID: "c1", Name: "two words"})),
		"no JSON object":             talk(user, uses(ToolUse{ID: "c1", Name: "weather", Input: json.RawMessage(`[]`)})),
		"message 2: there is no use": talk(user, result),
		"message 3: there is no use": talk(user, uses(ToolUse{ID: "c2", Name: "weather"}), result),
		"4097 messages":              talk(slices.Repeat([]Message{user}, 4097)...),
		"bytes; at most":             talk(Message{Role: User, Text: strings.Repeat("x", maxTalk)}),
		"cannot be called":           tools(Tool{Name: "a.b"}),
		"two tools":                  tools(weather, weather),
		"the schema of the tool":     tools(Tool{Name: "x", Schema: json.RawMessage(`true`)}),
		"129 tools":                  tools(make([]Tool, 129)...),
	} {
		got := d.move(c)
		if got.Err == nil || got.Err.Kind != BadRequest && got.Err.Kind != TooLarge || !strings.Contains(got.Err.Message, text) {
			t.Errorf("%s: got %v", text, got.Err)
		}
	}
	if len(w.heard()) != 0 || d.today() != 0 {
		t.Errorf("%d requests were sent", len(w.heard()))
	}
}

// TestAStreamIsAskedForOnce provokes the retries that the clients would make by
// themselves.
func TestAStreamIsAskedForOnce(t *testing.T) {
	t.Parallel()
	eachTalkWire(t, func(t *testing.T, w *talkWire) {
		for _, status := range []int{307, 408, 409, 429, 500, 503, 529} {
			w.steps(func(s *stream) {
				s.Header().Set("X-Should-Retry", "true")
				s.Header().Set("Retry-After", "0")
				s.Header().Set("Location", w.server.URL+"/elsewhere")
				w.refuse(s, status, "some_error", "no")
			})
			_, err := w.converser().Converse(t.Context(), ConverseRequest{Model: "m", Messages: []Message{{Role: User, Text: "p"}}, MaxTokens: 5})
			var e *Error
			if !errors.As(err, &e) || e.Status != status || e.Sent || len(w.heard()) != 1 {
				t.Errorf("%d: %+v after %d requests", status, err, len(w.heard()))
			}
		}
		w.server.Close()
		_, err := w.converser().Converse(t.Context(), ConverseRequest{Model: "m", Messages: []Message{{Role: User, Text: "p"}}, MaxTokens: 5})
		var e *Error
		if !errors.As(err, &e) || e.Kind != Unreachable || e.Sent {
			t.Errorf("no server listens: %+v", err)
		}
	})
}

func TestGeminiIsNotAskedToGoOnWithAStream(t *testing.T) {
	t.Parallel()
	w := newTalkWire(t, "gemini")
	w.steps(func(s *stream) {
		s.event("", `{"candidates":[{"content":{"role":"model","parts":[{"text":"half"}]},"finishReason":"CONTINUATION","continuationToken":"dG9rZW4="}],"continuationToken":"dG9rZW4=","usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":4}}`)
	})
	if got := newDesk(t, nil, w.model("m", Light)).move(talk()); got.Err != nil || got.Text != "half" || got.Usage != (Usage{3, 4}) || len(w.heard()) != 1 {
		t.Errorf("got %+v after %d requests", got, len(w.heard()))
	}
	for _, reason := range []string{"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"} {
		w.steps(func(s *stream) { s.text("I look."); s.end(reason, 10, 5) })
		if got := newDesk(t, nil, w.model("m", Light)).move(talk()); got.Err == nil || got.Err.Kind != Malformed || got.Text != "I look." || got.Cost != 2000 {
			t.Errorf("%s: %+v", reason, got)
		}
	}
}

func TestComplaintsAmidAStreamHaveKinds(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]int{
		`{"error":{"code":502,"message":"x"}}`: 502, `{"error":{"code":"429"}}`: 429, `{"error":{"code":200}}`: 500, `{"error":{"type":"rate_limit_error"}}`: http.StatusTooManyRequests,
		`{"error":{"code":"insufficient_quota"}}`: http.StatusPaymentRequired, `{"error":{"status":"INVALID_ARGUMENT"}}`: http.StatusBadRequest, `{"error":{"type":"authentication_error"}}`: http.StatusForbidden,
		`{"error":{"type":"request_too_large"}}`: http.StatusRequestEntityTooLarge, `{"error":"gone"}`: 500, `no JSON`: 500,
	} {
		if got := likeStatus([]byte(raw)); got != want {
			t.Errorf("%s: %d", raw, got)
		}
	}
}
