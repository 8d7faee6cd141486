package llm

import (
	"context"
	"strings"

	"google.golang.org/genai"
)

// referenceGemini is Gemini with the official client.
type referenceGemini Gemini

var _ Provider = (*referenceGemini)(nil)

// Complete implements [Provider].
func (p *referenceGemini) Complete(ctx context.Context, r Request) (reply Reply, err error) {
	key, missing := p.Key.Read()
	if missing != nil {
		return Reply{}, missing
	}
	if key == "" { // with none the client would look for one in the environment
		return Reply{}, errorf(Auth, "no key is configured; name one with api_key_env or api_key_file")
	}
	t := &attempt{over: p.Over, key: key}
	defer t.caught(ctx, &err)
	client, failure := p.dial(ctx, t)
	if failure != nil {
		return Reply{}, failure
	}
	off := false // on its own it would send the request again and again until the model is done
	config := &genai.GenerateContentConfig{MaxOutputTokens: int32(min(r.MaxTokens, 1<<30)), AutomaticContinuation: &off}
	if r.System != "" {
		config.SystemInstruction = genai.NewContentFromText(r.System, genai.RoleUser)
	}
	if r.JSON {
		config.ResponseMIMEType = "application/json"
	}
	res, err := client.Models.GenerateContent(ctx, r.Model, []*genai.Content{{Role: genai.RoleUser, Parts: referenceGeminiParts(r)}}, config)
	if err != nil {
		return Reply{}, t.fail(ctx, err)
	}
	reply = Reply{Model: res.ModelVersion}
	if u := res.UsageMetadata; u != nil {
		reply.Usage = Usage{In: int(u.PromptTokenCount + u.ToolUsePromptTokenCount), Out: int(u.CandidatesTokenCount + u.ThoughtsTokenCount)}
	}
	if f := res.PromptFeedback; f != nil && f.BlockReason != "" {
		reply.Stop = string(f.BlockReason)
		return reply, errorf(Refused, "the provider will not answer this prompt: %.60s", f.BlockReason)
	}
	if len(res.Candidates) == 0 || res.Candidates[0] == nil {
		return reply, t.fail(ctx, errNoAnswer)
	}
	first := res.Candidates[0]
	reply.Stop = string(first.FinishReason)
	if first.Content != nil {
		var text strings.Builder
		for _, part := range first.Content.Parts {
			if part != nil && !part.Thought {
				text.WriteString(part.Text)
			}
		}
		reply.Text = text.String()
	}
	return reply, answered(&reply, blocked...)
}

// dial returns a client for one attempt.
func (p *referenceGemini) dial(ctx context.Context, t *attempt) (*genai.Client, *Error) {
	base := p.BaseURL
	if base == "" {
		base = GeminiURL
	}
	// Every setting is given, so that none is taken from the environment.
	client, err := genai.NewClient(ctx, &genai.ClientConfig{
		APIKey: t.key, Backend: genai.BackendGeminiAPI, HTTPClient: t.client(),
		HTTPOptions: genai.HTTPOptions{BaseURL: base, APIVersion: "v1beta"},
	})
	if err != nil { // its text has the whole configuration in it, and so the key
		return nil, errorf(Internal, "the client cannot be set up")
	}
	return client, nil
}

var _ Embedder = (*referenceGemini)(nil)

// Embed implements [Embedder]. Gemini does not say what it used.
func (p *referenceGemini) Embed(ctx context.Context, r EmbedRequest) (reply EmbedReply, err error) {
	key, missing := p.Key.Read()
	if missing != nil {
		return EmbedReply{}, missing
	}
	if key == "" {
		return EmbedReply{}, errorf(Auth, "no key is configured; name one with api_key_env or api_key_file")
	}
	t := &attempt{over: p.Over, key: key}
	defer t.caught(ctx, &err)
	client, failure := p.dial(ctx, t)
	if failure != nil {
		return EmbedReply{}, failure
	}
	config := &genai.EmbedContentConfig{}
	if r.Dimensions > 0 {
		n := int32(min(r.Dimensions, maxDimensions))
		config.OutputDimensionality = &n
	}
	contents := make([]*genai.Content, len(r.Texts))
	for i, text := range r.Texts {
		contents[i] = genai.NewContentFromText(text, genai.RoleUser)
	}
	res, err := client.Models.EmbedContent(ctx, r.Model, contents, config)
	if err != nil {
		return EmbedReply{}, t.fail(ctx, err)
	}
	if res == nil || len(res.Embeddings) != len(r.Texts) {
		return EmbedReply{}, t.fail(ctx, errNoAnswer)
	}
	reply.Vectors, reply.Model = make([][]float32, len(r.Texts)), r.Model
	for i, e := range res.Embeddings {
		if e == nil {
			return reply, t.fail(ctx, errNoAnswer)
		}
		reply.Vectors[i] = e.Values
	}
	return reply, nil
}

// referenceGeminiParts puts images and documents before the prompt.
func referenceGeminiParts(r Request) []*genai.Part {
	var parts []*genai.Part
	for _, part := range r.Parts {
		if part.URI != "" {
			parts = append(parts, genai.NewPartFromURI(part.URI, part.MIME))
		} else {
			parts = append(parts, genai.NewPartFromBytes(part.Data, part.MIME))
		}
	}
	return append(parts, genai.NewPartFromText(r.Prompt))
}
