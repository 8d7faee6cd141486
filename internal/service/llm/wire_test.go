package llm

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const secret = "key-6f1d2c" // of every provider in these tests

// wires are the providers' formats, each with a server that takes nothing else.
var wires = []string{"openai", "anthropic", "gemini"}

// An asked is a request as a server understood it, the same for all formats.
type asked struct {
	model, system, prompt string
	maxTokens             int
	json                  bool
	parts                 []string // kind, MIME type, name and content
}

// A wire is a server that speaks one format. What it cannot take it answers with
// status 400 and fails the test.
type wire struct {
	t      *testing.T
	format string
	server *httptest.Server

	mu     sync.Mutex
	asked  []asked
	answer func(w http.ResponseWriter, r *http.Request, n int) // n counts from 1; nil answers "fine"
}

func newWire(t *testing.T, format string) *wire {
	t.Helper()
	w := &wire{t: t, format: format}
	w.server = httptest.NewServer(w)
	t.Cleanup(w.server.Close)
	return w
}

func (w *wire) requests() []asked {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked
}

func (w *wire) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	a, err := w.understand(r)
	if err != nil {
		w.t.Errorf("%s: what was sent is no request: %v", w.format, err)
		http.Error(out, `{"error":{"message":"no such request"}}`, http.StatusBadRequest)
		return
	}
	w.mu.Lock()
	w.asked = append(w.asked, a)
	n, answer := len(w.asked), w.answer
	w.mu.Unlock()
	if answer == nil {
		w.fine(out, "fine", 10, 5)
		return
	}
	answer(out, r, n)
}

// understand reads a request strictly: no other path, header or member.
func (w *wire) understand(r *http.Request) (asked, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return asked{}, err
	}
	if r.Method != http.MethodPost || r.URL.RawQuery != "" || r.Header.Get("Content-Type") != "application/json" {
		return asked{}, fmt.Errorf("%s %s, %s", r.Method, r.URL, r.Header.Get("Content-Type"))
	}
	for _, header := range []string{"X-Unwanted", "Openai-Organization", "Openai-Project", "Traceparent"} {
		if r.Header.Get(header) != "" {
			return asked{}, fmt.Errorf("the header %s is sent", header)
		}
	}
	switch w.format {
	case "openai":
		if r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer "+secret {
			return asked{}, fmt.Errorf("%s with %q", r.URL.Path, r.Header.Get("Authorization"))
		}
		return understandOpenAI(body)
	case "anthropic":
		if r.URL.Path != "/v1/messages" || r.Header.Get("X-Api-Key") != secret || r.Header.Get("Authorization") != "" || r.Header.Get("Anthropic-Version") == "" {
			return asked{}, fmt.Errorf("%s with %q", r.URL.Path, r.Header)
		}
		return understandAnthropic(body)
	default:
		model, found := strings.CutPrefix(r.URL.Path, "/v1beta/models/")
		model, generate := strings.CutSuffix(model, ":generateContent")
		if !found || !generate || r.Header.Get("X-Goog-Api-Key") != secret {
			return asked{}, fmt.Errorf("%s with %q", r.URL.Path, r.Header)
		}
		a, err := understandGemini(body)
		a.model = model
		return a, err
	}
}

func strict(raw []byte, into any) error {
	return json.Unmarshal(raw, into, json.RejectUnknownMembers(true))
}

func understandOpenAI(body []byte) (a asked, err error) {
	var in struct {
		Model    string `json:"model"`
		Messages []struct {
			Role    string         `json:"role"`
			Content jsontext.Value `json:"content"`
		} `json:"messages"`
		MaxTokens int `json:"max_tokens"`
		Format    struct {
			Type string `json:"type"`
		} `json:"response_format"`
	}
	if err := strict(body, &in); err != nil {
		return a, err
	}
	a.model, a.maxTokens, a.json = in.Model, in.MaxTokens, in.Format.Type == "json_object"
	for _, m := range in.Messages {
		switch {
		case m.Role == "system":
			err = strict(m.Content, &a.system)
		case m.Role == "user" && m.Content.Kind() == '"':
			err = strict(m.Content, &a.prompt)
		case m.Role == "user":
			err = understandOpenAIParts(m.Content, &a)
		default:
			err = fmt.Errorf("a message of %q", m.Role)
		}
		if err != nil {
			return a, err
		}
	}
	return a, nil
}

func understandOpenAIParts(raw []byte, a *asked) error {
	var parts []struct {
		Type  string `json:"type"`
		Text  string `json:"text"`
		Image struct {
			URL string `json:"url"`
		} `json:"image_url"`
		File struct {
			Data string `json:"file_data"`
			Name string `json:"filename"`
		} `json:"file"`
	}
	if err := strict(raw, &parts); err != nil {
		return err
	}
	for i, part := range parts {
		switch {
		case part.Type == "text" && i == len(parts)-1:
			a.prompt = part.Text
		case part.Type == "text":
			a.parts = append(a.parts, "file text/plain  "+part.Text)
		case part.Type == "image_url":
			a.parts = append(a.parts, "image "+ofDataURL(part.Image.URL, ""))
		case part.Type == "file":
			a.parts = append(a.parts, "file "+ofDataURL(part.File.Data, part.File.Name))
		default:
			return fmt.Errorf("a part of type %q", part.Type)
		}
	}
	return nil
}

func ofDataURL(text, name string) string {
	mime, data, _ := strings.Cut(strings.TrimPrefix(text, "data:"), ";base64,")
	return mime + " " + name + " " + decoded(data)
}

func decoded(text string) string {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "no base64"
	}
	return string(raw)
}

func understandAnthropic(body []byte) (a asked, err error) {
	type block struct {
		Type   string `json:"type"`
		Text   string `json:"text"`
		Title  string `json:"title"`
		Source struct {
			Type string `json:"type"`
			MIME string `json:"media_type"`
			Data string `json:"data"`
		} `json:"source"`
	}
	var in struct {
		Model     string  `json:"model"`
		MaxTokens int     `json:"max_tokens"`
		System    []block `json:"system"`
		Messages  []struct {
			Role    string  `json:"role"`
			Content []block `json:"content"`
		} `json:"messages"`
	}
	if err := strict(body, &in); err != nil {
		return a, err
	}
	a.model, a.maxTokens = in.Model, in.MaxTokens
	for _, b := range in.System {
		a.system += b.Text
	}
	if len(in.Messages) != 1 || in.Messages[0].Role != "user" {
		return a, fmt.Errorf("%d messages", len(in.Messages))
	}
	for _, b := range in.Messages[0].Content {
		switch b.Type {
		case "text":
			a.prompt = b.Text
		case "image":
			a.parts = append(a.parts, "image "+b.Source.MIME+"  "+decoded(b.Source.Data))
		case "document":
			data := b.Source.Data
			if b.Source.Type == "base64" {
				data = decoded(data)
			}
			a.parts = append(a.parts, "file "+b.Source.MIME+" "+b.Title+" "+data)
		default:
			return a, fmt.Errorf("a block of type %q", b.Type)
		}
	}
	return a, nil
}

func understandGemini(body []byte) (a asked, err error) {
	type content struct {
		Role  string `json:"role"`
		Parts []struct {
			Text   string `json:"text"`
			Inline struct {
				MIME string `json:"mimeType"`
				Data string `json:"data"`
			} `json:"inlineData"`
			File struct {
				MIME string `json:"mimeType"`
				URI  string `json:"fileUri"`
			} `json:"fileData"`
		} `json:"parts"`
	}
	var in struct {
		Contents []content `json:"contents"`
		System   content   `json:"systemInstruction"`
		Config   struct {
			MaxTokens int    `json:"maxOutputTokens"`
			MIME      string `json:"responseMimeType"`
		} `json:"generationConfig"`
	}
	if err := strict(body, &in); err != nil {
		return a, err
	}
	a.maxTokens, a.json = in.Config.MaxTokens, in.Config.MIME == "application/json"
	for _, p := range in.System.Parts {
		a.system += p.Text
	}
	if len(in.Contents) != 1 || in.Contents[0].Role != "user" {
		return a, fmt.Errorf("%d contents", len(in.Contents))
	}
	for _, p := range in.Contents[0].Parts {
		switch {
		case p.File.URI != "":
			a.parts = append(a.parts, "uri "+p.File.MIME+"  "+p.File.URI)
		case p.Inline.Data != "":
			kind := "file "
			if strings.HasPrefix(p.Inline.MIME, "image/") {
				kind = "image "
			}
			a.parts = append(a.parts, kind+p.Inline.MIME+"  "+decoded(p.Inline.Data))
		default:
			a.prompt = p.Text
		}
	}
	return a, nil
}

// fine answers with a text.
func (w *wire) fine(out http.ResponseWriter, text string, in, gave int) {
	w.stop(out, text, in, gave, map[string]string{"openai": "stop", "anthropic": "end_turn", "gemini": "STOP"}[w.format])
}

// stop answers with a text and the reason why it ended.
func (w *wire) stop(out http.ResponseWriter, text string, in, gave int, reason string) {
	out.Header().Set("Content-Type", "application/json")
	quoted, _ := json.Marshal(text)
	switch w.format {
	case "openai":
		fmt.Fprintf(out, `{"id":"c1","object":"chat.completion","created":1,"model":"m-1","choices":[{"index":0,"finish_reason":%q,"message":{"role":"assistant","content":%s,"refusal":null}}],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`,
			reason, quoted, in, gave, in+gave)
	case "anthropic":
		fmt.Fprintf(out, `{"id":"c1","type":"message","role":"assistant","model":"m-1","content":[{"type":"text","text":%s}],"stop_reason":%q,"stop_sequence":null,"usage":{"input_tokens":%d,"output_tokens":%d}}`,
			quoted, reason, in, gave)
	default:
		fmt.Fprintf(out, `{"candidates":[{"content":{"role":"model","parts":[{"text":%s}]},"finishReason":%q}],"modelVersion":"m-1","usageMetadata":{"promptTokenCount":%d,"candidatesTokenCount":%d,"totalTokenCount":%d}}`,
			quoted, reason, in, gave, in+gave)
	}
}

// refuse answers with an error in the provider's form.
func (w *wire) refuse(out http.ResponseWriter, status int, code, message string) {
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(status)
	quoted, _ := json.Marshal(message)
	switch w.format {
	case "openai":
		fmt.Fprintf(out, `{"error":{"message":%s,"type":%q,"param":null,"code":%q}}`, quoted, code, code)
	case "anthropic":
		fmt.Fprintf(out, `{"type":"error","error":{"type":%q,"message":%s}}`, code, quoted)
	default:
		fmt.Fprintf(out, `{"error":{"code":%d,"message":%s,"status":%q}}`, status, quoted, code)
	}
}

// provider returns what asks this server.
func (w *wire) provider() Provider {
	key := Key{File: keyFile(w.t, secret, 0o600)}
	over := Transport()
	w.t.Cleanup(over.CloseIdleConnections)
	switch w.format {
	case "openai":
		return &OpenAI{BaseURL: w.server.URL + "/v1", Key: key, Over: over}
	case "anthropic":
		return &Anthropic{BaseURL: w.server.URL, Key: key, Over: over}
	default:
		return &Gemini{BaseURL: w.server.URL, Key: key, Over: over}
	}
}

// model returns a model of this server: $1 for a million tokens in, $2 out.
func (w *wire) model(name string, tier Tier) Model {
	return Model{Name: name, Tier: tier, Provider: w.format, ID: name + "-id", Asks: w.provider(), Context: 100_000, MaxInline: 1 << 20, Input: Dollars(1), Output: Dollars(2)}
}

// eachWire runs a test against every format.
func eachWire(t *testing.T, test func(t *testing.T, w *wire)) {
	t.Helper()
	for _, format := range wires {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			test(t, newWire(t, format))
		})
	}
}

var huge = bytes.Repeat([]byte("x"), 64<<10)
