package llm

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// A told is a conversation as a server understood it, the same for all formats.
type told struct {
	model, system string
	maxTokens     int
	lines         []string          // one for each text, use and result: who, and what
	tools         map[string]string // name, and description and schema
	none          bool              // it must not use any
}

// A talkWire is a server that speaks one format of conversations, in streams.
// What it cannot take it answers with status 400 and fails the test.
type talkWire struct {
	*wire

	mu    sync.Mutex
	told  []told
	reply func(s *stream, n int) // n counts from 1; nil says "fine"
}

func newTalkWire(t *testing.T, format string) *talkWire {
	t.Helper()
	w := &talkWire{wire: &wire{t: t, format: format}}
	w.server = httptest.NewServer(w)
	t.Cleanup(w.server.Close)
	return w
}

func eachTalkWire(t *testing.T, test func(t *testing.T, w *talkWire)) {
	t.Helper()
	for _, format := range wires {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			test(t, newTalkWire(t, format))
		})
	}
}

// steps answers the first request with the first, and so on.
func (w *talkWire) steps(steps ...func(s *stream)) *talkWire {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = nil
	w.reply = func(s *stream, n int) { steps[min(n, len(steps))-1](s) }
	return w
}

func (w *talkWire) heard() []told {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.told
}

func (w *talkWire) converser() Converser { return w.provider().(Converser) }

func (w *talkWire) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	heard, err := w.understand(r)
	if err != nil {
		w.t.Errorf("%s: what was sent is no request: %v", w.format, err)
		http.Error(out, `{"error":{"message":"no such request"}}`, http.StatusBadRequest)
		return
	}
	w.mu.Lock()
	w.told = append(w.told, heard)
	n, reply := len(w.told), w.reply
	w.mu.Unlock()
	s := &stream{ResponseWriter: out, r: r, format: w.format}
	if reply == nil {
		s.text("fine")
		s.end("", 10, 5)
		return
	}
	reply(s, n)
}

func (w *talkWire) understand(r *http.Request) (told, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return told{}, err
	}
	switch w.format {
	case "openai":
		if r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer "+secret {
			return told{}, fmt.Errorf("%s with %q", r.URL.Path, r.Header)
		}
		return toldOpenAI(body)
	case "anthropic":
		if r.URL.Path != "/v1/messages" || r.Header.Get("X-Api-Key") != secret {
			return told{}, fmt.Errorf("%s with %q", r.URL.Path, r.Header)
		}
		return toldAnthropic(body)
	default:
		model, found := strings.CutPrefix(r.URL.Path, "/v1beta/models/")
		model, generate := strings.CutSuffix(model, ":streamGenerateContent")
		if !found || !generate || r.URL.RawQuery != "alt=sse" || r.Header.Get("X-Goog-Api-Key") != secret {
			return told{}, fmt.Errorf("%s with %q", r.URL, r.Header)
		}
		heard, err := toldGemini(body)
		heard.model = model
		return heard, err
	}
}

func schemaOf(raw jsontext.Value) string {
	_ = raw.Canonicalize()
	return string(raw)
}

func toldOpenAI(body []byte) (told, error) {
	var in struct {
		Model    string `json:"model"`
		Messages []struct {
			Role    string  `json:"role"`
			Content *string `json:"content"`
			CallID  string  `json:"tool_call_id"`
			Calls   []struct {
				ID       string `json:"id"`
				Type     string `json:"type"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
		Tools []struct {
			Type     string `json:"type"`
			Function struct {
				Name        string         `json:"name"`
				Description string         `json:"description"`
				Parameters  jsontext.Value `json:"parameters"`
			} `json:"function"`
		} `json:"tools"`
		MaxTokens int  `json:"max_tokens"`
		Stream    bool `json:"stream"`
		Options   struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	if err := strict(body, &in); err != nil {
		return told{}, err
	}
	if !in.Stream || !in.Options.Usage {
		return told{}, fmt.Errorf("stream %v, include_usage %v", in.Stream, in.Options.Usage)
	}
	heard := told{model: in.Model, maxTokens: in.MaxTokens, tools: map[string]string{}}
	for _, m := range in.Messages {
		text := ""
		if m.Content != nil {
			text = *m.Content
		}
		switch m.Role {
		case "system":
			heard.system = text
			continue
		case "tool":
			heard.lines = append(heard.lines, "result "+m.CallID+" "+text)
			continue
		case "user", "assistant":
		default:
			return told{}, fmt.Errorf("a message of %q", m.Role)
		}
		if text == "" && len(m.Calls) == 0 {
			return told{}, fmt.Errorf("a message with nothing in it")
		}
		if text != "" {
			heard.lines = append(heard.lines, m.Role+" "+text)
		}
		for _, c := range m.Calls {
			heard.lines = append(heard.lines, "use "+c.ID+" "+c.Function.Name+" "+c.Function.Arguments)
		}
	}
	for _, t := range in.Tools {
		heard.tools[t.Function.Name] = t.Function.Description + " " + schemaOf(t.Function.Parameters)
	}
	return heard, nil
}

func toldAnthropic(body []byte) (told, error) {
	type block struct {
		Type    string         `json:"type"`
		Text    string         `json:"text"`
		ID      string         `json:"id"`
		Name    string         `json:"name"`
		Input   jsontext.Value `json:"input"`
		UseID   string         `json:"tool_use_id"`
		Error   bool           `json:"is_error"`
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
	}
	var in struct {
		Model     string  `json:"model"`
		MaxTokens int     `json:"max_tokens"`
		System    []block `json:"system"`
		Messages  []struct {
			Role    string  `json:"role"`
			Content []block `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Name        string         `json:"name"`
			Description string         `json:"description"`
			Schema      jsontext.Value `json:"input_schema"`
		} `json:"tools"`
		Choice struct {
			Type string `json:"type"`
		} `json:"tool_choice"`
		Stream bool `json:"stream"`
	}
	if err := strict(body, &in); err != nil {
		return told{}, err
	}
	heard := told{model: in.Model, maxTokens: in.MaxTokens, tools: map[string]string{}, none: in.Choice.Type == "none"}
	for _, b := range in.System {
		heard.system += b.Text
	}
	last := "assistant"
	for i, m := range in.Messages {
		if m.Role == last || len(m.Content) == 0 {
			return told{}, fmt.Errorf("message %d is of %q, after one of %q, and has %d blocks", i, m.Role, last, len(m.Content))
		}
		last = m.Role
		for n, b := range m.Content {
			switch {
			case b.Type == "text" && strings.TrimSpace(b.Text) != "":
				heard.lines = append(heard.lines, m.Role+" "+b.Text)
			case b.Type == "tool_use" && m.Role == "assistant":
				heard.lines = append(heard.lines, "use "+b.ID+" "+b.Name+" "+string(b.Input))
			case b.Type == "tool_result" && m.Role == "user" && (n == 0 || m.Content[n-1].Type == "tool_result"):
				line := "result " + b.UseID + " "
				if b.Error {
					line += "FAILED "
				}
				for _, c := range b.Content {
					if c.Text == "" {
						return told{}, fmt.Errorf("an empty text")
					}
					line += c.Text
				}
				heard.lines = append(heard.lines, line)
			default:
				return told{}, fmt.Errorf("block %d of message %d is %q", n, i, b.Type)
			}
		}
	}
	for _, t := range in.Tools {
		heard.tools[t.Name] = t.Description + " " + schemaOf(t.Schema)
	}
	if len(in.Tools) == 0 && strings.Contains(string(body), `"tool_use"`) {
		return told{}, fmt.Errorf("it uses tools, and has none")
	}
	if !in.Stream {
		return told{}, fmt.Errorf("no stream")
	}
	return heard, nil
}

func toldGemini(body []byte) (told, error) {
	type content struct {
		Role  string `json:"role"`
		Parts []struct {
			Text      string `json:"text"`
			Signature []byte `json:"thoughtSignature"`
			Call      *struct {
				ID   string         `json:"id"`
				Name string         `json:"name"`
				Args jsontext.Value `json:"args"`
			} `json:"functionCall"`
			Response *struct {
				ID       string `json:"id"`
				Name     string `json:"name"`
				Response struct {
					Output string  `json:"output"`
					Error  *string `json:"error"`
				} `json:"response"`
			} `json:"functionResponse"`
		} `json:"parts"`
	}
	var in struct {
		Contents []content `json:"contents"`
		System   content   `json:"systemInstruction"`
		Tools    []struct {
			Functions []struct {
				Name        string         `json:"name"`
				Description string         `json:"description"`
				Parameters  jsontext.Value `json:"parametersJsonSchema"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
		Config struct {
			MaxTokens int `json:"maxOutputTokens"`
		} `json:"generationConfig"`
	}
	if err := strict(body, &in); err != nil {
		return told{}, err
	}
	heard := told{maxTokens: in.Config.MaxTokens, tools: map[string]string{}}
	for _, p := range in.System.Parts {
		heard.system += p.Text
	}
	last := "model"
	for i, c := range in.Contents {
		if c.Role == last || len(c.Parts) == 0 {
			return told{}, fmt.Errorf("content %d is of %q, after one of %q, and has %d parts", i, c.Role, last, len(c.Parts))
		}
		last = c.Role
		who := map[string]string{"user": "user", "model": "assistant"}[c.Role]
		for n, p := range c.Parts {
			switch {
			case p.Call != nil && who == "assistant":
				line := "use " + p.Call.ID + " " + p.Call.Name + " " + schemaOf(p.Call.Args)
				if len(p.Signature) > 0 {
					line += " signed " + string(p.Signature)
				}
				heard.lines = append(heard.lines, line)
			case p.Response != nil && who == "user":
				line := "result " + p.Response.ID + " " + p.Response.Response.Output
				if e := p.Response.Response.Error; e != nil {
					line += "FAILED " + *e
				}
				heard.lines = append(heard.lines, line)
			case p.Text != "":
				heard.lines = append(heard.lines, who+" "+p.Text)
			default:
				return told{}, fmt.Errorf("part %d of content %d is %+v", n, i, p)
			}
		}
	}
	for _, t := range in.Tools {
		for _, f := range t.Functions {
			heard.tools[f.Name] = f.Description + " " + schemaOf(f.Parameters)
		}
	}
	return heard, nil
}

// A stream is an answer in the events of a format.
type stream struct {
	http.ResponseWriter
	r      *http.Request
	format string
	blocks int  // so far
	begun  bool // the first event was sent
}

// event sends one event at once, and reports whether the client was still connected.
func (s *stream) event(name, data string) bool {
	if !s.begun {
		s.begun = true
		s.Header().Set("Content-Type", "text/event-stream")
		if s.format == "anthropic" {
			s.event("message_start", `{"type":"message_start","message":{"id":"c1","type":"message","role":"assistant","model":"m-1","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}}`)
			s.event("ping", `{"type":"ping"}`)
		}
	}
	if s.format == "anthropic" {
		name = "event: " + name + "\n"
	} else {
		name = ""
	}
	_, err := io.WriteString(s, name+"data: "+data+"\n\n")
	s.flush()
	return err == nil
}

func (s *stream) flush() { _ = http.NewResponseController(s.ResponseWriter).Flush() }

func quoted(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}

// delta is an event of OpenAI's.
func (s *stream) delta(delta string) bool {
	return s.event("", `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":`+delta+`,"finish_reason":null}],"usage":null}`)
}

func (s *stream) block(start string, deltas ...string) (ok bool) {
	n := s.blocks
	s.blocks++
	ok = s.event("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, n, start))
	for _, d := range deltas {
		ok = s.event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, n, d))
	}
	return s.event("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, n)) && ok
}

func (s *stream) parts(parts string) bool {
	return s.event("", `{"candidates":[{"content":{"role":"model","parts":[`+parts+`]}}],"modelVersion":"m-1","usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":1}}`)
}

// text says a piece.
func (s *stream) text(text string) bool {
	switch s.format {
	case "openai":
		return s.delta(`{"content":` + quoted(text) + `}`)
	case "anthropic":
		return s.block(`{"type":"text","text":""}`, `{"type":"text_delta","text":`+quoted(text)+`}`)
	default:
		return s.parts(`{"text":` + quoted(text) + `}`)
	}
}

// use asks for a tool, its input in two pieces where the format has pieces.
func (s *stream) use(id, name, input string) {
	half := len(input) / 2
	switch s.format {
	case "openai":
		n := s.blocks
		s.blocks++
		s.delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":""}}]}`, n, id, name))
		for _, piece := range []string{input[:half], input[half:]} {
			s.delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, n, quoted(piece)))
		}
	case "anthropic":
		s.block(fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, id, name),
			`{"type":"input_json_delta","partial_json":`+quoted(input[:half])+`}`, `{"type":"input_json_delta","partial_json":`+quoted(input[half:])+`}`)
	default:
		s.parts(fmt.Sprintf(`{"functionCall":{"id":%q,"name":%q,"args":%s},"thoughtSignature":"c2lnbmVk"}`, id, name, input))
	}
}

// end ends the answer; a reason of "" is that the model had said all it wanted.
func (s *stream) end(reason string, in, out int) {
	if reason == "" {
		reason = normal[s.format]
	}
	switch s.format {
	case "openai":
		s.event("", fmt.Sprintf(`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":{},"finish_reason":%q}],"usage":null}`, reason))
		s.event("", fmt.Sprintf(`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`, in, out, in+out))
		s.event("", `[DONE]`)
	case "anthropic":
		s.event("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"input_tokens":%d,"output_tokens":%d}}`, reason, in, out))
		s.event("message_stop", `{"type":"message_stop"}`)
	default:
		s.event("", fmt.Sprintf(`{"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"finishReason":%q}],"modelVersion":"m-1","usageMetadata":{"promptTokenCount":%d,"candidatesTokenCount":%d}}`, reason, in, out))
	}
}

// normal is why a model ends by itself.
var normal = map[string]string{"openai": "stop", "anthropic": "end_turn", "gemini": "STOP"}

// complain ends the answer with an error amid the stream.
func (s *stream) complain(code, message string) {
	switch s.format {
	case "openai":
		s.event("", fmt.Sprintf(`{"error":{"message":%q,"type":%q,"code":null}}`, message, code))
	case "anthropic":
		s.event("error", fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q}}`, code, message))
	default:
		status := 503
		if code == "rate_limit_error" {
			status = 429
		}
		s.event("", fmt.Sprintf(`{"error":{"code":%d,"message":%q,"status":"SOME_STATUS"}}`, status, message))
	}
}

// cut breaks the connection in the middle of an event.
func (s *stream) cut() {
	_, _ = io.WriteString(s, "data: {\"cand")
	s.flush()
	panic(http.ErrAbortHandler)
}

// hang sends no more until the client disconnects.
func (s *stream) hang() { <-s.r.Context().Done() }
