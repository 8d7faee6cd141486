package llm

import (
	"context"
	"errors"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
)

var _ Converser = (*referenceAnthropic)(nil)

// Converse implements [Converser].
func (p *referenceAnthropic) Converse(ctx context.Context, r ConverseRequest) (reply ConverseReply, err error) {
	key, missing := p.Key.Read()
	if missing != nil {
		return reply, missing
	}
	params := anthropic.MessageNewParams{
		Model: anthropic.Model(r.Model), MaxTokens: int64(r.MaxTokens), Messages: referenceAnthropicMessages(&r), Tools: referenceAnthropicTools(r.Tools),
	}
	if r.System != "" {
		params.System = []anthropic.TextBlockParam{{Text: r.System}}
	}
	if used := usedTools(&r); len(r.Tools) == 0 && len(used) > 0 { // it refuses uses of tools where there are none
		params.Tools = referenceAnthropicTools(used)
		params.ToolChoice = anthropic.ToolChoiceUnionParam{OfNone: &anthropic.ToolChoiceNoneParam{}}
	}

	t, h := &attempt{over: p.Over, key: key, stream: true}, newStreamReader(&r)
	defer h.keep(&reply)
	defer t.caught(ctx, &err)
	messages := anthropic.NewMessageService(p.options(t)...)
	stream := messages.NewStreaming(ctx, params)
	defer stream.Close()
	begun := false
	uses := map[int64]*wish{}
	for ctx.Err() == nil && h.over == nil && stream.Next() {
		switch event := stream.Current(); event.Type {
		case "message_start":
			u := event.Message.Usage
			begun, reply.Model = true, string(event.Message.Model)
			reply.Usage = Usage{In: int(u.InputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens), Out: int(u.OutputTokens)}
		case "content_block_start":
			switch block := event.ContentBlock; block.Type {
			case "text":
				h.tell(block.Text)
			case "tool_use":
				if w := h.use(block.ID, block.Name); w != nil {
					uses[event.Index] = w
				}
			}
		case "content_block_delta":
			h.tell(event.Delta.Text)
			if w := uses[event.Index]; w != nil {
				h.add(w, event.Delta.PartialJSON)
			}
		case "message_delta":
			u := event.Usage
			reply.Usage.In = max(reply.Usage.In, int(u.InputTokens+u.CacheCreationInputTokens+u.CacheReadInputTokens))
			reply.Usage.Out = max(reply.Usage.Out, int(u.OutputTokens))
			reply.Stop = string(event.Delta.StopReason)
		}
	}
	failure := stream.Err()
	var complaint []byte
	if said := (*anthropic.Error)(nil); errors.As(failure, &said) {
		complaint = []byte(said.RawJSON())
	}
	err = h.end(ctx, t, &reply, begun, failure, complaint, "refusal")
	return reply, err
}

// referenceAnthropicMessages puts what tools answered into messages of the user, and
// joins those that follow one another.
func referenceAnthropicMessages(r *ConverseRequest) []anthropic.MessageParam {
	var all []anthropic.MessageParam
	for _, m := range r.Messages {
		role := anthropic.MessageParamRoleUser
		if m.Role == Assistant {
			role = anthropic.MessageParamRoleAssistant
		}
		var blocks []anthropic.ContentBlockParamUnion
		for _, res := range m.Results {
			block := &anthropic.ToolResultBlockParam{ToolUseID: anthropicID(res.ID)}
			if strings.TrimSpace(res.Text) != "" { // it refuses texts that are empty
				block.Content = []anthropic.ToolResultBlockParamContentUnion{{OfText: &anthropic.TextBlockParam{Text: res.Text}}}
			}
			if res.Failed {
				block.IsError = param.NewOpt(true)
			}
			blocks = append(blocks, anthropic.ContentBlockParamUnion{OfToolResult: block})
		}
		if strings.TrimSpace(m.Text) != "" {
			blocks = append(blocks, anthropic.NewTextBlock(m.Text))
		}
		for _, u := range m.Uses {
			blocks = append(blocks, anthropic.NewToolUseBlock(anthropicID(u.ID), u.Input, u.Name))
		}
		if n := len(all); n > 0 && all[n-1].Role == role {
			all[n-1].Content = append(all[n-1].Content, blocks...)
		} else {
			all = append(all, anthropic.MessageParam{Role: role, Content: blocks})
		}
	}
	return all
}

func referenceAnthropicTools(tools []Tool) []anthropic.ToolUnionParam {
	var all []anthropic.ToolUnionParam
	for _, t := range tools {
		tool := &anthropic.ToolParam{Name: t.Name, InputSchema: param.Override[anthropic.ToolInputSchemaParam](marshal(inputSchema(t.Schema)))}
		if t.Description != "" {
			tool.Description = param.NewOpt(t.Description)
		}
		all = append(all, anthropic.ToolUnionParam{OfTool: tool})
	}
	return all
}
