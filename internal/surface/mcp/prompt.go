package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	json2 "github.com/go-json-experiment/json"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

const maxMessages = 64 // of a prompt

// isPrompt reports whether an operation renders a prompt.
func isPrompt(m *plugin.MCP) bool { return m.Prompt }

// prompts returns the prompts that the caller may have rendered, by their names. A name that
// two have is no one's.
func (s *session) prompts(ctx context.Context) ([]host.Tool, error) {
	all, err := s.faces(ctx, isPrompt)
	if err != nil {
		return nil, err
	}
	named := map[string]int{}
	for _, t := range all {
		named[s.nameOf(t)]++
	}
	return slices.DeleteFunc(all, func(t host.Tool) bool { return named[s.nameOf(t)] > 1 }), nil
}

// listPrompts answers prompts/list.
func (s *session) listPrompts(ctx context.Context, r *sdk.ListPromptsRequest) (sdk.Result, error) {
	all, err := s.prompts(ctx)
	if err != nil {
		return nil, err
	}
	cursor := ""
	if r.Params != nil {
		cursor = r.Params.Cursor
	}
	page, next, err := paged(all, cursor, s.nameOf)
	if err != nil {
		return nil, err
	}
	res := &sdk.ListPromptsResult{Cacheable: ownLife, NextCursor: next, Prompts: []*sdk.Prompt{}}
	for _, t := range page {
		op := t.Operation
		res.Prompts = append(res.Prompts, &sdk.Prompt{Name: s.nameOf(t), Title: op.Title, Description: op.Description, Arguments: promptArguments(op)})
	}
	return res, nil
}

// An argumentSchema is what is read of the schema of an input.
type argumentSchema struct {
	Properties map[string]struct {
		Title       string `json:"title"`
		Description string `json:"description"`
		Enum        []any  `json:"enum"`
	} `json:"properties"`
	Required []string `json:"required"`
}

// argumentsOf reads the schema of the input of an operation.
func argumentsOf(op *plugin.Operation) (schema argumentSchema) {
	_ = json.Unmarshal(op.Input, &schema) // what is none has no arguments
	delete(schema.Properties, plugin.AskAnswers)
	delete(schema.Properties, plugin.AskState)
	return schema
}

// promptArguments are the arguments of a prompt: the members of its input, those that it has
// to have first.
func promptArguments(op *plugin.Operation) (all []*sdk.PromptArgument) {
	schema := argumentsOf(op)
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		p := schema.Properties[name]
		all = append(all, &sdk.PromptArgument{Name: name, Title: p.Title, Description: p.Description, Required: slices.Contains(schema.Required, name)})
	}
	slices.SortStableFunc(all, func(a, b *sdk.PromptArgument) int {
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		}
		return 1
	})
	return all
}

// getPrompt answers prompts/get: it calls the operation that renders the prompt.
func (s *session) getPrompt(ctx context.Context, r *sdk.GetPromptRequest) (sdk.Result, error) {
	ctx, cancel := s.gone(ctx)
	defer cancel()
	all, err := s.prompts(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(t host.Tool) bool { return s.nameOf(t) == r.Params.Name })
	if i < 0 {
		return nil, wrongParams(fmt.Sprintf("unknown prompt %q", strings.ToValidUTF8(r.Params.Name[:min(len(r.Params.Name), maxName)], "?")))
	}
	given := r.Params.Arguments
	if given == nil {
		given = map[string]string{}
	}
	arguments, err := json.Marshal(given)
	if err != nil {
		return nil, wrongParams("the arguments of a prompt are texts")
	}
	newest := s.newest(r)
	_, target := s.api.Plugins().Operation(ctx, all[i].Name(), arguments)
	in := round{r.Params.InputResponses, r.Params.RequestState, r.ClientCapabilities(), newest}
	input, _, err := s.answered(target, arguments, "", in)
	if err != nil {
		return nil, s.refused(err)
	}
	target, res, err := s.compute(ctx, all[i].Name(), input)
	if err != nil {
		return nil, s.refused(err)
	}
	asked, err := inquiryOf(target, &res, nil)
	if err != nil {
		return nil, s.refused(err)
	}
	out := new(sdk.GetPromptResult)
	if asked != nil {
		if err := json.Unmarshal([]byte(`{"resultType":"input_required"}`), out); err != nil {
			return nil, err
		}
		out.InputRequests, out.RequestState, err = s.requests(ctx, target, arguments, asked, in)
		if err != nil {
			return nil, s.protocolError(err)
		}
		out.Meta = sdk.Meta{callMeta: res.CallID}
		return out, nil
	}
	if newest {
		if err := json.Unmarshal([]byte(`{"resultType":"complete"}`), out); err != nil {
			return nil, err
		}
	}
	out.Meta = sdk.Meta{callMeta: res.CallID}
	out.Description = target.Operation.Description
	if err := render(out, &res); err != nil {
		return nil, s.refused(err)
	}
	return out, nil
}

// render puts what an operation returned into a prompt: one text of the user, or messages.
func render(out *sdk.GetPromptResult, res *plugin.Result) error {
	var text string
	if json.Unmarshal(res.Data, &text) == nil {
		out.Messages = []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: text}}}
		return nil
	}
	var said struct {
		Description string `json:"description,omitzero"`
		Messages    []struct {
			Role    string `json:"role"`
			Content block  `json:"content"`
		} `json:"messages"`
	}
	if err := json2.Unmarshal(res.Data, &said, json2.RejectUnknownMembers(true)); err != nil {
		return plugin.Errorf(plugin.CodeInvalidOutput, "a prompt is a text, or an object with messages: %v", err)
	}
	if len(said.Messages) == 0 || len(said.Messages) > maxMessages {
		return plugin.Errorf(plugin.CodeInvalidOutput, "a prompt has 1 to %d messages", maxMessages)
	}
	if said.Description != "" {
		out.Description = said.Description
	}
	for i, m := range said.Messages {
		content, err := m.Content.content()
		if err != nil || m.Role != "user" && m.Role != "assistant" {
			return plugin.Errorf(plugin.CodeInvalidOutput, "message %d of the prompt is none of the user or the assistant: %v", i, err)
		}
		out.Messages = append(out.Messages, &sdk.PromptMessage{Role: sdk.Role(m.Role), Content: content})
	}
	return nil
}
