package llm

import (
	"context"
	"errors"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/shared"
)

var _ Converser = (*referenceOpenAI)(nil)

// Converse implements [Converser].
func (p *referenceOpenAI) Converse(ctx context.Context, r ConverseRequest) (reply ConverseReply, err error) {
	key, missing := p.Key.Read()
	if missing != nil {
		return reply, missing
	}
	params := openai.ChatCompletionNewParams{
		Model: r.Model, Messages: referenceOpenAIMessages(&r), Tools: referenceOpenAITools(r.Tools),
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)},
	}
	p.limit(&params, r.MaxTokens, r.JSON)

	t, h := &attempt{over: p.Over, key: key, stream: true}, newStreamReader(&r)
	defer h.keep(&reply)
	defer t.caught(ctx, &err)
	chat := openai.NewChatCompletionService(p.options(t)...)
	stream := chat.NewStreaming(ctx, params)
	defer stream.Close()
	begun, refusal := false, ""
	uses := map[int64]*wish{}
	for ctx.Err() == nil && h.over == nil && stream.Next() {
		chunk := stream.Current()
		begun = begun || len(chunk.Choices) > 0
		if chunk.Model != "" {
			reply.Model = chunk.Model
		}
		if u := chunk.Usage; u.PromptTokens > 0 || u.CompletionTokens > 0 {
			reply.Usage = Usage{In: int(u.PromptTokens), Out: int(u.CompletionTokens)}
		}
		if len(chunk.Choices) == 0 {
			continue
		}
		choice := chunk.Choices[0]
		h.tell(choice.Delta.Content)
		refusal = (refusal + choice.Delta.Refusal)[:min(len(refusal)+len(choice.Delta.Refusal), maxFailure)]
		for _, call := range choice.Delta.ToolCalls {
			w := uses[call.Index]
			if w == nil || call.ID != "" && w.id != "" && call.ID != w.id { // some servers number all of them 0
				if w = h.use(call.ID, call.Function.Name); w == nil {
					break
				}
				uses[call.Index] = w
			}
			if w.id == "" {
				w.id = call.ID
			}
			if w.name == "" {
				w.name = call.Function.Name
			}
			h.add(w, call.Function.Arguments)
		}
		if choice.FinishReason != "" {
			reply.Stop = choice.FinishReason
		}
	}
	failure := stream.Err()
	var complaint []byte
	if said := (*ssestream.StreamError)(nil); errors.As(failure, &said) {
		complaint = said.Event.Data
	}
	if refusal != "" && reply.Stop != "" {
		return reply, errorf(Refused, "the model will not answer: %s", said(refusal, key))
	}
	err = h.end(ctx, t, &reply, begun, failure, complaint, "content_filter")
	return reply, err
}

func referenceOpenAIMessages(r *ConverseRequest) []openai.ChatCompletionMessageParamUnion {
	var all []openai.ChatCompletionMessageParamUnion
	if r.System != "" {
		all = append(all, openai.SystemMessage(r.System))
	}
	for _, m := range r.Messages {
		switch m.Role {
		case User:
			all = append(all, openai.UserMessage(m.Text))
		case Assistant:
			said := &openai.ChatCompletionAssistantMessageParam{}
			if m.Text != "" {
				said.Content.OfString = param.NewOpt(m.Text)
			}
			for _, u := range m.Uses {
				said.ToolCalls = append(said.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
					ID: u.ID, Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: u.Name, Arguments: string(u.Input)},
				}})
			}
			all = append(all, openai.ChatCompletionMessageParamUnion{OfAssistant: said})
		case ToolRole:
			for _, res := range m.Results {
				text := res.Text
				if res.Failed { // its format has no other place for that
					text = "The tool failed: " + text
				}
				all = append(all, openai.ToolMessage(text, res.ID))
			}
		}
	}
	return all
}

func referenceOpenAITools(tools []Tool) []openai.ChatCompletionToolUnionParam {
	var all []openai.ChatCompletionToolUnionParam
	for _, t := range tools {
		f := shared.FunctionDefinitionParam{Name: t.Name, Parameters: shared.FunctionParameters{}}
		if t.Description != "" {
			f.Description = param.NewOpt(t.Description)
		}
		for keyword, value := range inputSchema(t.Schema) {
			f.Parameters[keyword] = value
		}
		all = append(all, openai.ChatCompletionFunctionTool(f))
	}
	return all
}
