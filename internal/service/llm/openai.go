package llm

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"
)

// OpenAIURL is where OpenAI itself is.
const OpenAIURL = "https://api.openai.com/v1"

// OpenAI asks whatever speaks OpenAI's chat completions.
type OpenAI struct {
	BaseURL string // [OpenAIURL] where it is empty
	Key     Key    // none for a server that asks for none
	Over    http.RoundTripper
}

var _ Provider = (*OpenAI)(nil)

// An openAIRequest asks for a chat completion.
type openAIRequest struct {
	Model               string          `json:"model"`
	Messages            []openAIMessage `json:"messages"`
	Tools               []openAITool    `json:"tools,omitempty"`
	MaxTokens           int             `json:"max_tokens,omitempty"`
	MaxCompletionTokens int             `json:"max_completion_tokens,omitempty"`
	ResponseFormat      *openAIType     `json:"response_format,omitempty"`
	Stream              bool            `json:"stream,omitempty"`
	StreamOptions       *openAIOptions  `json:"stream_options,omitempty"`
}

type openAIType struct {
	Type string `json:"type"`
}

type openAIOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type openAIMessage struct {
	Role       string          `json:"role"`
	Content    any             `json:"content,omitempty"` // a string, or parts
	ToolCalls  []openAIToolUse `json:"tool_calls,omitempty"`
	ToolCallID string          `json:"tool_call_id,omitempty"`
}

type openAIPart struct {
	Type  string       `json:"type"`
	Text  string       `json:"text,omitempty"`
	Image *openAIImage `json:"image_url,omitempty"`
	File  *openAIFile  `json:"file,omitempty"`
}

type openAIImage struct {
	URL string `json:"url"`
}

type openAIFile struct {
	Data string `json:"file_data"`
	Name string `json:"filename"`
}

type openAIToolUse struct {
	ID       string         `json:"id"`
	Type     string         `json:"type"`
	Function openAIFunction `json:"function"`
}

type openAIFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// An openAIReply is a chat completion, or a piece of one that is streamed.
type openAIReply struct {
	Model   string `json:"model"`
	Choices []struct {
		Message      openAISaid `json:"message"`
		Delta        openAISaid `json:"delta"`
		FinishReason string     `json:"finish_reason"`
	} `json:"choices"`
	Usage openAIUsage `json:"usage"`
}

type openAISaid struct {
	Content   string `json:"content"`
	Refusal   string `json:"refusal"`
	ToolCalls []struct {
		Index int64 `json:"index"`
		openAIToolUse
	} `json:"tool_calls"`
}

type openAIUsage struct {
	In  int `json:"prompt_tokens"`
	Out int `json:"completion_tokens"`
}

// Complete implements [Provider].
func (p *OpenAI) Complete(ctx context.Context, r Request) (reply Reply, err error) {
	key, missing := p.Key.Read()
	if missing != nil {
		return Reply{}, missing
	}
	body := openAIRequest{Model: r.Model}
	if r.System != "" {
		body.Messages = append(body.Messages, openAIMessage{Role: "system", Content: r.System})
	}
	if len(r.Parts) == 0 {
		body.Messages = append(body.Messages, openAIMessage{Role: "user", Content: r.Prompt})
	} else {
		body.Messages = append(body.Messages, openAIMessage{Role: "user", Content: openAIParts(r)})
	}
	p.limit(&body, r.MaxTokens, r.JSON)

	t := &attempt{over: p.Over, key: key}
	defer t.caught(ctx, &err)
	var res openAIReply
	if err := t.ask(ctx, p.request(key, "chat/completions", body), &res); err != nil {
		return Reply{}, t.fail(ctx, err)
	}
	if len(res.Choices) == 0 {
		return Reply{}, t.fail(ctx, errNoAnswer)
	}
	choice := res.Choices[0]
	reply = Reply{Text: choice.Message.Content, Model: res.Model, Stop: choice.FinishReason, Usage: Usage(res.Usage)}
	if choice.Message.Refusal != "" {
		return reply, errorf(Refused, "the model will not answer: %s", said(choice.Message.Refusal, key))
	}
	return reply, answered(&reply, "content_filter")
}

func (p *OpenAI) base() string {
	if p.BaseURL == "" {
		return OpenAIURL
	}
	return p.BaseURL
}

func (p *OpenAI) request(key, path string, body any) request {
	header := http.Header{}
	if key != "" {
		header.Set("Authorization", "Bearer "+key)
	}
	return request{base: p.base(), path: path, header: header, body: body}
}

// limit says how long an answer may be, and whether it is JSON.
func (p *OpenAI) limit(body *openAIRequest, tokens int, json bool) {
	if p.base() == OpenAIURL {
		body.MaxCompletionTokens = tokens // its reasoning models take no max_tokens
	} else {
		body.MaxTokens = tokens // which all others know
	}
	if json {
		body.ResponseFormat = &openAIType{"json_object"}
	}
}

var _ Embedder = (*OpenAI)(nil)

// An openAIEmbedding asks for embeddings.
type openAIEmbedding struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Dimensions int      `json:"dimensions,omitempty"`
}

// Embed implements [Embedder].
func (p *OpenAI) Embed(ctx context.Context, r EmbedRequest) (reply EmbedReply, err error) {
	key, missing := p.Key.Read()
	if missing != nil {
		return EmbedReply{}, missing
	}
	t := &attempt{over: p.Over, key: key}
	defer t.caught(ctx, &err)
	var res struct {
		Model string `json:"model"`
		Data  []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
		Usage openAIUsage `json:"usage"`
	}
	if err := t.ask(ctx, p.request(key, "embeddings", openAIEmbedding{r.Model, r.Texts, max(r.Dimensions, 0)}), &res); err != nil {
		return EmbedReply{}, t.fail(ctx, err)
	}
	if len(res.Data) != len(r.Texts) {
		return EmbedReply{}, t.fail(ctx, errNoAnswer)
	}
	reply = EmbedReply{Vectors: make([][]float32, len(r.Texts)), Model: res.Model, Usage: Usage{In: res.Usage.In}}
	for _, e := range res.Data { // each says which text it is of
		if e.Index < 0 || e.Index >= len(r.Texts) || reply.Vectors[e.Index] != nil {
			return reply, t.fail(ctx, errNoAnswer)
		}
		if reply.Vectors[e.Index] = e.Embedding; e.Embedding == nil {
			reply.Vectors[e.Index] = []float32{}
		}
	}
	return reply, nil
}

// openAIParts puts images and documents before the prompt.
func openAIParts(r Request) []openAIPart {
	var parts []openAIPart
	for _, part := range r.Parts {
		data := "data:" + part.MIME + ";base64," + base64.StdEncoding.EncodeToString(part.Data)
		switch {
		case part.Image():
			parts = append(parts, openAIPart{Type: "image_url", Image: &openAIImage{data}})
		case strings.HasPrefix(part.MIME, "text/"):
			parts = append(parts, openAIPart{Type: "text", Text: string(part.Data)})
		default:
			parts = append(parts, openAIPart{Type: "file", File: &openAIFile{data, part.Name}})
		}
	}
	return append(parts, openAIPart{Type: "text", Text: r.Prompt})
}
