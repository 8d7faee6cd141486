package llm

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
)

// AnthropicURL is where Anthropic is.
const AnthropicURL = "https://api.anthropic.com"

// Anthropic asks Anthropic's messages.
type Anthropic struct {
	BaseURL string // [AnthropicURL] where it is empty
	Key     Key
	Over    http.RoundTripper
}

var _ Provider = (*Anthropic)(nil)

// An anthropicRequest asks for a message.
type anthropicRequest struct {
	Model      string             `json:"model"`
	MaxTokens  int                `json:"max_tokens"`
	System     []anthropicBlock   `json:"system,omitempty"`
	Messages   []anthropicMessage `json:"messages"`
	Tools      []anthropicTool    `json:"tools,omitempty"`
	ToolChoice *anthropicChoice   `json:"tool_choice,omitempty"`
	Stream     bool               `json:"stream,omitempty"`
}

type anthropicChoice struct {
	Type string `json:"type"`
}

type anthropicMessage struct {
	Role    string           `json:"role"`
	Content []anthropicBlock `json:"content"`
}

// An anthropicBlock is a part of a message, of any type.
type anthropicBlock struct {
	Type      string           `json:"type"`
	Text      *string          `json:"text,omitempty"`
	Title     string           `json:"title,omitempty"`
	Source    *anthropicSource `json:"source,omitempty"`
	ID        string           `json:"id,omitempty"`
	Name      string           `json:"name,omitempty"`
	Input     json.RawMessage  `json:"input,omitempty"`
	ToolUseID string           `json:"tool_use_id,omitempty"`
	Content   []anthropicBlock `json:"content,omitempty"`
	IsError   bool             `json:"is_error,omitempty"`
}

type anthropicSource struct {
	Type string `json:"type"`
	MIME string `json:"media_type"`
	Data any    `json:"data"` // a string, or bytes as base64
}

// An anthropicReply is a message.
type anthropicReply struct {
	Type       string         `json:"type"`
	Model      string         `json:"model"`
	StopReason string         `json:"stop_reason"`
	Usage      anthropicUsage `json:"usage"`
	Content    []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
}

type anthropicUsage struct {
	Input      int `json:"input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	Output     int `json:"output_tokens"`
}

func (u anthropicUsage) usage() Usage {
	return Usage{In: u.Input + u.CacheWrite + u.CacheRead, Out: u.Output}
}

// Complete implements [Provider].
func (p *Anthropic) Complete(ctx context.Context, r Request) (reply Reply, err error) {
	key, missing := p.Key.Read()
	if missing != nil {
		return Reply{}, missing
	}
	body := anthropicRequest{
		Model: r.Model, MaxTokens: r.MaxTokens, System: anthropicSystem(r.System),
		Messages: []anthropicMessage{{Role: "user", Content: anthropicBlocks(r)}},
	}
	t := &attempt{over: p.Over, key: key}
	defer t.caught(ctx, &err)
	var res anthropicReply
	if err := t.ask(ctx, p.request(key, body), &res); err != nil {
		return Reply{}, t.fail(ctx, err)
	}
	if res.Type != "message" {
		return Reply{}, t.fail(ctx, errNoAnswer)
	}
	reply = Reply{Model: res.Model, Stop: res.StopReason, Usage: res.Usage.usage()}
	var text strings.Builder
	for _, block := range res.Content {
		if block.Type == "text" {
			text.WriteString(block.Text)
		}
	}
	reply.Text = text.String()
	return reply, answered(&reply, "refusal")
}

func (p *Anthropic) request(key string, body anthropicRequest) request {
	base := p.BaseURL
	if base == "" {
		base = AnthropicURL
	}
	return request{base: base, path: "v1/messages", header: http.Header{"X-Api-Key": {key}, "Anthropic-Version": {"2023-06-01"}}, body: body}
}

func anthropicText(text string) anthropicBlock { return anthropicBlock{Type: "text", Text: &text} }

func anthropicSystem(text string) []anthropicBlock {
	if text == "" {
		return nil
	}
	return []anthropicBlock{anthropicText(text)}
}

// anthropicBlocks puts images and documents before the prompt.
func anthropicBlocks(r Request) []anthropicBlock {
	var blocks []anthropicBlock
	for _, part := range r.Parts {
		switch {
		case part.Image():
			blocks = append(blocks, anthropicBlock{Type: "image", Source: &anthropicSource{"base64", part.MIME, part.Data}})
		case part.MIME == "application/pdf":
			blocks = append(blocks, anthropicBlock{Type: "document", Title: part.Name, Source: &anthropicSource{"base64", part.MIME, part.Data}})
		default:
			blocks = append(blocks, anthropicBlock{Type: "document", Title: part.Name, Source: &anthropicSource{"text", "text/plain", string(part.Data)}})
		}
	}
	return append(blocks, anthropicText(r.Prompt))
}
