package llm

import (
	"context"
	"encoding/json"
)

var _ Converser = (*OpenAI)(nil)

// Converse implements [Converser].
func (p *OpenAI) Converse(ctx context.Context, r ConverseRequest) (reply ConverseReply, err error) {
	key, missing := p.Key.Read()
	if missing != nil {
		return reply, missing
	}
	body := openAIRequest{Model: r.Model, Messages: openAIMessages(&r), Tools: openAITools(r.Tools), Stream: true, StreamOptions: &openAIOptions{IncludeUsage: true}}
	p.limit(&body, r.MaxTokens, r.JSON)

	t, h := &attempt{over: p.Over, key: key, stream: true}, newStreamReader(&r)
	defer h.keep(&reply)
	defer t.caught(ctx, &err)
	begun, refusal := false, ""
	uses := map[int64]*wish{}
	var failure error
	var complaint []byte
	for data, err := range t.follow(ctx, p.request(key, "chat/completions", body)) {
		if failure = err; err != nil || string(data) == "[DONE]" {
			break
		}
		if isComplaint(data) {
			complaint, failure = data, errComplaint
			break
		}
		var chunk openAIReply
		if failure = json.Unmarshal(data, &chunk); failure != nil || ctx.Err() != nil {
			break
		}
		begun = begun || len(chunk.Choices) > 0
		if chunk.Model != "" {
			reply.Model = chunk.Model
		}
		if chunk.Usage != (openAIUsage{}) {
			reply.Usage = Usage(chunk.Usage)
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
		if h.over != nil {
			break
		}
	}
	if refusal != "" && reply.Stop != "" {
		return reply, errorf(Refused, "the model will not answer: %s", said(refusal, key))
	}
	err = h.end(ctx, t, &reply, begun, failure, complaint, "content_filter")
	return reply, err
}

func openAIMessages(r *ConverseRequest) []openAIMessage {
	var all []openAIMessage
	if r.System != "" {
		all = append(all, openAIMessage{Role: "system", Content: r.System})
	}
	for _, m := range r.Messages {
		switch m.Role {
		case User:
			all = append(all, openAIMessage{Role: "user", Content: m.Text})
		case Assistant:
			said := openAIMessage{Role: "assistant"}
			if m.Text != "" {
				said.Content = m.Text
			}
			for _, u := range m.Uses {
				said.ToolCalls = append(said.ToolCalls, openAIToolUse{ID: u.ID, Type: "function", Function: openAIFunction{u.Name, string(u.Input)}})
			}
			all = append(all, said)
		case ToolRole:
			for _, res := range m.Results {
				text := res.Text
				if res.Failed { // its format has no other place for that
					text = "The tool failed: " + text
				}
				all = append(all, openAIMessage{Role: "tool", Content: text, ToolCallID: res.ID})
			}
		}
	}
	return all
}

type openAITool struct {
	Type     string           `json:"type"`
	Function openAIDefinition `json:"function"`
}

type openAIDefinition struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Parameters  schema `json:"parameters"`
}

func openAITools(tools []Tool) []openAITool {
	var all []openAITool
	for _, t := range tools {
		all = append(all, openAITool{"function", openAIDefinition{t.Name, t.Description, inputSchema(t.Schema)}})
	}
	return all
}
