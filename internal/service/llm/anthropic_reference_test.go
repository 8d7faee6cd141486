package llm

import (
	"context"
	"encoding/base64"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
)

// referenceAnthropic is Anthropic with the official client.
type referenceAnthropic Anthropic

var _ Provider = (*referenceAnthropic)(nil)

// Complete implements [Provider].
func (p *referenceAnthropic) Complete(ctx context.Context, r Request) (reply Reply, err error) {
	key, missing := p.Key.Read()
	if missing != nil {
		return Reply{}, missing
	}
	params := anthropic.MessageNewParams{
		Model: anthropic.Model(r.Model), MaxTokens: int64(r.MaxTokens),
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(referenceAnthropicBlocks(r)...)},
	}
	if r.System != "" {
		params.System = []anthropic.TextBlockParam{{Text: r.System}}
	}

	t := &attempt{over: p.Over, key: key}
	defer t.caught(ctx, &err)
	messages := anthropic.NewMessageService(p.options(t)...)
	res, err := messages.New(ctx, params)
	if err != nil {
		return Reply{}, t.fail(ctx, err)
	}
	if res == nil || res.Type != "message" {
		return Reply{}, t.fail(ctx, errNoAnswer)
	}
	u := res.Usage
	reply = Reply{
		Model: string(res.Model), Stop: string(res.StopReason),
		Usage: Usage{In: int(u.InputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens), Out: int(u.OutputTokens)},
	}
	var text strings.Builder
	for _, block := range res.Content {
		if block.Type == "text" {
			text.WriteString(block.Text)
		}
	}
	reply.Text = text.String()
	return reply, answered(&reply, "refusal")
}

// options are a client's for one attempt.
func (p *referenceAnthropic) options(t *attempt) []option.RequestOption {
	base := p.BaseURL
	if base == "" {
		base = AnthropicURL
	}
	return []option.RequestOption{
		option.WithBaseURL(base), option.WithHTTPClient(t.client()), option.WithMaxRetries(0), option.WithAPIKey(t.key),
		option.WithoutOpenTelemetry(),
		// The deadline is ctx's. Without one of its own the client refuses long answers.
		option.WithRequestTimeout(time.Hour),
	}
}

// referenceAnthropicBlocks puts images and documents before the prompt.
func referenceAnthropicBlocks(r Request) []anthropic.ContentBlockParamUnion {
	var blocks []anthropic.ContentBlockParamUnion
	for _, part := range r.Parts {
		switch {
		case part.Image():
			blocks = append(blocks, anthropic.NewImageBlockBase64(part.MIME, base64.StdEncoding.EncodeToString(part.Data)))
		case part.MIME == "application/pdf":
			blocks = append(blocks, referenceTitled(anthropic.NewDocumentBlock(anthropic.Base64PDFSourceParam{Data: base64.StdEncoding.EncodeToString(part.Data)}), part.Name))
		default:
			blocks = append(blocks, referenceTitled(anthropic.NewDocumentBlock(anthropic.PlainTextSourceParam{Data: string(part.Data)}), part.Name))
		}
	}
	return append(blocks, anthropic.NewTextBlock(r.Prompt))
}

func referenceTitled(block anthropic.ContentBlockParamUnion, name string) anthropic.ContentBlockParamUnion {
	if name != "" {
		block.OfDocument.Title = param.NewOpt(name)
	}
	return block
}
