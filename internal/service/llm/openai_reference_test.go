package llm

import (
	"context"
	"encoding/base64"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"
)

// referenceOpenAI is OpenAI with the official client.
type referenceOpenAI OpenAI

var _ Provider = (*referenceOpenAI)(nil)

// Complete implements [Provider].
func (p *referenceOpenAI) Complete(ctx context.Context, r Request) (reply Reply, err error) {
	key, missing := p.Key.Read()
	if missing != nil {
		return Reply{}, missing
	}
	params := openai.ChatCompletionNewParams{Model: r.Model}
	if r.System != "" {
		params.Messages = append(params.Messages, openai.SystemMessage(r.System))
	}
	if len(r.Parts) == 0 {
		params.Messages = append(params.Messages, openai.UserMessage(r.Prompt))
	} else {
		params.Messages = append(params.Messages, openai.UserMessage(referenceOpenAIParts(r)))
	}
	p.limit(&params, r.MaxTokens, r.JSON)

	t := &attempt{over: p.Over, key: key}
	defer t.caught(ctx, &err)
	chat := openai.NewChatCompletionService(p.options(t)...)
	res, err := chat.New(ctx, params)
	if err != nil {
		return Reply{}, t.fail(ctx, err)
	}
	if res == nil || len(res.Choices) == 0 {
		return Reply{}, t.fail(ctx, errNoAnswer)
	}
	choice := res.Choices[0]
	reply = Reply{
		Text: choice.Message.Content, Model: res.Model, Stop: choice.FinishReason,
		Usage: Usage{In: int(res.Usage.PromptTokens), Out: int(res.Usage.CompletionTokens)},
	}
	if choice.Message.Refusal != "" {
		return reply, errorf(Refused, "the model will not answer: %s", said(choice.Message.Refusal, key))
	}
	return reply, answered(&reply, "content_filter")
}

func (p *referenceOpenAI) base() string {
	if p.BaseURL == "" {
		return OpenAIURL
	}
	return p.BaseURL
}

// options are a client's for one attempt. It is of one service alone: a whole
// client would read addresses and headers from the environment.
func (p *referenceOpenAI) options(t *attempt) []option.RequestOption {
	opts := []option.RequestOption{option.WithBaseURL(p.base()), option.WithHTTPClient(t.client()), option.WithMaxRetries(0)}
	if t.key != "" {
		opts = append(opts, option.WithAPIKey(t.key))
	}
	return opts
}

// limit says how long an answer may be, and whether it is JSON.
func (p *referenceOpenAI) limit(params *openai.ChatCompletionNewParams, tokens int, json bool) {
	if p.base() == OpenAIURL {
		params.MaxCompletionTokens = param.NewOpt(int64(tokens)) // its reasoning models take no max_tokens
	} else {
		params.MaxTokens = param.NewOpt(int64(tokens)) // which all others know
	}
	if json {
		params.ResponseFormat.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
	}
}

var _ Embedder = (*referenceOpenAI)(nil)

// Embed implements [Embedder].
func (p *referenceOpenAI) Embed(ctx context.Context, r EmbedRequest) (reply EmbedReply, err error) {
	key, missing := p.Key.Read()
	if missing != nil {
		return EmbedReply{}, missing
	}
	params := openai.EmbeddingNewParams{Model: r.Model, Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: r.Texts}}
	if r.Dimensions > 0 {
		params.Dimensions = param.NewOpt(int64(r.Dimensions))
	}
	t := &attempt{over: p.Over, key: key}
	defer t.caught(ctx, &err)
	embeddings := openai.NewEmbeddingService(p.options(t)...)
	res, err := embeddings.New(ctx, params)
	if err != nil {
		return EmbedReply{}, t.fail(ctx, err)
	}
	if res == nil || len(res.Data) != len(r.Texts) {
		return EmbedReply{}, t.fail(ctx, errNoAnswer)
	}
	reply = EmbedReply{Vectors: make([][]float32, len(r.Texts)), Model: res.Model, Usage: Usage{In: int(res.Usage.PromptTokens)}}
	for _, e := range res.Data { // each says which text it is of
		if e.Index < 0 || e.Index >= int64(len(r.Texts)) || reply.Vectors[e.Index] != nil {
			return reply, t.fail(ctx, errNoAnswer)
		}
		v := make([]float32, len(e.Embedding))
		for i, f := range e.Embedding {
			v[i] = float32(f)
		}
		reply.Vectors[e.Index] = v
	}
	return reply, nil
}

// referenceOpenAIParts puts images and documents before the prompt.
func referenceOpenAIParts(r Request) []openai.ChatCompletionContentPartUnionParam {
	var parts []openai.ChatCompletionContentPartUnionParam
	for _, part := range r.Parts {
		data := "data:" + part.MIME + ";base64," + base64.StdEncoding.EncodeToString(part.Data)
		switch {
		case part.Image():
			parts = append(parts, openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: data}))
		case strings.HasPrefix(part.MIME, "text/"):
			parts = append(parts, openai.TextContentPart(string(part.Data)))
		default:
			parts = append(parts, openai.FileContentPart(openai.ChatCompletionContentPartFileFileParam{
				FileData: param.NewOpt(data), Filename: param.NewOpt(part.Name),
			}))
		}
	}
	return append(parts, openai.TextContentPart(r.Prompt))
}
