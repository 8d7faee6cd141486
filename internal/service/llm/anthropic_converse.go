package llm

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/pattern"
)

var _ Converser = (*Anthropic)(nil)

// An anthropicEvent is a piece of a message, of any type.
type anthropicEvent struct {
	Type    string         `json:"type"`
	Index   int64          `json:"index"`
	Message anthropicReply `json:"message"`
	Block   struct {
		Type string `json:"type"`
		Text string `json:"text"`
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"content_block"`
	Delta struct {
		Text        string `json:"text"`
		PartialJSON string `json:"partial_json"`
		StopReason  string `json:"stop_reason"`
	} `json:"delta"`
	Usage anthropicUsage `json:"usage"`
}

// Converse implements [Converser].
func (p *Anthropic) Converse(ctx context.Context, r ConverseRequest) (reply ConverseReply, err error) {
	key, missing := p.Key.Read()
	if missing != nil {
		return reply, missing
	}
	body := anthropicRequest{
		Model: r.Model, MaxTokens: r.MaxTokens, System: anthropicSystem(r.System),
		Messages: anthropicMessages(&r), Tools: anthropicTools(r.Tools), Stream: true,
	}
	if used := usedTools(&r); len(r.Tools) == 0 && len(used) > 0 { // it refuses uses of tools where there are none
		body.Tools, body.ToolChoice = anthropicTools(used), &anthropicChoice{"none"}
	}

	t, h := &attempt{over: p.Over, key: key, stream: true}, newStreamReader(&r)
	defer h.keep(&reply)
	defer t.caught(ctx, &err)
	begun := false
	uses := map[int64]*wish{}
	var failure error
	var complaint []byte
	for data, err := range t.follow(ctx, p.request(key, body)) {
		if failure = err; err != nil {
			break
		}
		if isComplaint(data) {
			complaint, failure = data, errComplaint
			break
		}
		if data[0] != '{' { // whatever a ping has
			continue
		}
		var event anthropicEvent
		if failure = json.Unmarshal(data, &event); failure != nil || ctx.Err() != nil {
			break
		}
		switch event.Type {
		case "message_start":
			begun, reply.Model, reply.Usage = true, event.Message.Model, event.Message.Usage.usage()
		case "content_block_start":
			switch block := event.Block; block.Type {
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
			u := event.Usage.usage()
			reply.Usage = Usage{In: max(reply.Usage.In, u.In), Out: max(reply.Usage.Out, u.Out)}
			reply.Stop = event.Delta.StopReason
		}
		if h.over != nil {
			break
		}
	}
	err = h.end(ctx, t, &reply, begun, failure, complaint, "refusal")
	return reply, err
}

// anthropicMessages puts what tools answered into messages of the user, and
// joins those that follow one another.
func anthropicMessages(r *ConverseRequest) []anthropicMessage {
	var all []anthropicMessage
	for _, m := range r.Messages {
		role := "user"
		if m.Role == Assistant {
			role = "assistant"
		}
		var blocks []anthropicBlock
		for _, res := range m.Results {
			block := anthropicBlock{Type: "tool_result", ToolUseID: anthropicID(res.ID), IsError: res.Failed}
			if strings.TrimSpace(res.Text) != "" { // it refuses texts that are empty
				block.Content = []anthropicBlock{anthropicText(res.Text)}
			}
			blocks = append(blocks, block)
		}
		if strings.TrimSpace(m.Text) != "" {
			blocks = append(blocks, anthropicText(m.Text))
		}
		for _, u := range m.Uses {
			blocks = append(blocks, anthropicBlock{Type: "tool_use", ID: anthropicID(u.ID), Name: u.Name, Input: u.Input})
		}
		if n := len(all); n > 0 && all[n-1].Role == role {
			all[n-1].Content = append(all[n-1].Content, blocks...)
		} else {
			all = append(all, anthropicMessage{Role: role, Content: blocks})
		}
	}
	return all
}

var notInID = pattern.New(`[^A-Za-z0-9_-]`)

// anthropicID is an id as Anthropic takes it; other providers give others.
func anthropicID(id string) string { return notInID.ReplaceAllString(id, "_") }

type anthropicTool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	InputSchema schema `json:"input_schema"`
}

func anthropicTools(tools []Tool) []anthropicTool {
	var all []anthropicTool
	for _, t := range tools {
		all = append(all, anthropicTool{t.Name, t.Description, inputSchema(t.Schema)})
	}
	return all
}

// usedTools are the tools that were used so far.
func usedTools(r *ConverseRequest) []Tool {
	var all []Tool
	for _, m := range r.Messages {
		for _, u := range m.Uses {
			if !slices.ContainsFunc(all, func(t Tool) bool { return t.Name == u.Name }) {
				all = append(all, Tool{Name: u.Name})
			}
		}
	}
	return all
}
