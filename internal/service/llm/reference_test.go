package llm

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
)

// What is written here of the formats of the providers sends what the official clients send:
// the same address, the same key in the same header, and the same JSON. Their use is in
// *_reference_test.go. How answers are read is held by the tests of all formats.
func TestRequestsAreThoseOfTheOfficialClients(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(p Provider) error{
		"a prompt": func(p Provider) error {
			_, err := p.Complete(context.Background(), Request{Model: "m", Prompt: "what <is> it?", MaxTokens: 7})
			return err
		},
		"instructions, JSON and parts": func(p Provider) error {
			_, err := p.Complete(context.Background(), Request{Model: "models/m", System: "be brief", Prompt: "look", MaxTokens: 7, JSON: true, Parts: []Part{
				{Name: "a.png", MIME: "image/png", Data: []byte("pixels")}, {Name: "b.txt", MIME: "text/plain", Data: []byte("notes")}, {Name: "c.pdf", MIME: "application/pdf", Data: []byte("%PDF")},
			}})
			return err
		},
		"embeddings": func(p Provider) error {
			_, err := p.(Embedder).Embed(context.Background(), EmbedRequest{Model: "m", Texts: []string{"one", "two"}, Dimensions: 3})
			return err
		},
		"embeddings of any length": func(p Provider) error {
			_, err := p.(Embedder).Embed(context.Background(), EmbedRequest{Model: "m", Texts: []string{"one"}})
			return err
		},
		"a conversation": func(p Provider) error {
			_, err := p.(Converser).Converse(context.Background(), ConverseRequest{
				Model: "gemini-3", System: "be brief", MaxTokens: 9, JSON: true,
				Tools: []Tool{
					{Name: "weather", Description: "tells it", Schema: []byte(`{"type":"object","properties":{"place":{"type":"string"}},"required":["place"]}`)},
					{Name: "now"},
				},
				Messages: []Message{
					{Role: User, Text: "what is it?"},
					{Role: Assistant, Text: "I look.", Uses: []ToolUse{{ID: "c1", Name: "weather", Input: []byte(`{"place":"Oslo"}`), Signature: []byte("mine")}, {ID: "c2", Name: "now", Input: []byte(`{}`)}}},
					{Role: ToolRole, Results: []ToolResult{{ID: "c1", Name: "weather", Text: "rain"}, {ID: "c2", Name: "now", Text: "no clock", Failed: true}}},
					{Role: Assistant, Uses: []ToolUse{{ID: "c3", Name: "now", Input: []byte(`{}`)}}},
					{Role: ToolRole, Results: []ToolResult{{ID: "c3", Name: "now", Text: ""}}},
					{Role: User, Text: "so?"},
				},
			})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []any
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				raw, err := io.ReadAll(r.Body)
				var body any
				if err == nil {
					err = json.Unmarshal(raw, &body)
				}
				if err != nil {
					t.Errorf("%s is no JSON: %v", raw, err)
				}
				if version := r.Header.Get("Anthropic-Version"); (version == "2023-06-01") != (r.URL.Path == "/v1/messages") {
					t.Errorf("%s with version %q", r.URL, version)
				}
				got = append(got, map[string]any{
					"to": r.Method + " " + r.URL.String(), "type": r.Header.Get("Content-Type"), "body": body,
					"key": r.Header.Get("Authorization") + r.Header.Get("X-Goog-Api-Key") + r.Header.Get("X-Api-Key"),
				})
				http.Error(w, `{"error":{"message":"no"}}`, http.StatusTeapot)
			}))
			defer server.Close()
			over := Transport()
			defer over.CloseIdleConnections()
			key := Key{File: keyFile(t, secret, 0o600)}
			for _, pair := range [][2]Provider{
				{&OpenAI{server.URL + "/v1", key, over}, &referenceOpenAI{server.URL + "/v1", key, over}},
				{&Anthropic{server.URL, key, over}, &referenceAnthropic{server.URL, key, over}},
				{&Gemini{server.URL, key, over}, &referenceGemini{server.URL, key, over}},
			} {
				if _, embeds := pair[0].(Embedder); !embeds && strings.HasPrefix(name, "embeddings") {
					continue
				}
				got = nil
				failure, reference := ask(pair[0]), ask(pair[1])
				if failure == nil || reference == nil || failure.Error() != reference.Error() {
					t.Errorf("%T fails with %v, the official client with %v", pair[0], failure, reference)
				}
				if len(got) != 2 || !reflect.DeepEqual(got[0], got[1]) {
					raw, _ := json.MarshalIndent(got, "", " ")
					t.Errorf("%T differs from the official client:\n%s", pair[0], raw)
				}
			}
		})
	}
}
