package agent

import (
	"context"

	"github.com/mortise-dev/mortise/internal/service/llm"
	"github.com/mortise-dev/mortise/plugin"
)

// A Model goes on with conversations; *llm.Dispatcher is one.
type Model interface {
	Converse(ctx context.Context, by llm.Caller, c llm.Conversation) llm.Move
}

// A thought is what a brain is asked: what was said, and what may be done.
type thought struct {
	call     plugin.Call // tenant, principal, agent, session
	agent    string
	tier     string
	system   string
	messages []llm.Message
	tools    []Tool
	tokens   int
	usage    *llm.CallUsage // of the turn
	say      func(text string)
}

// A brain decides what an agent does next.
type brain interface {
	next(ctx context.Context, t thought) llm.Move
}

// chat is the built-in brain: a model with tools.
type chat struct{ model Model }

func (c chat) next(ctx context.Context, t thought) llm.Move {
	if c.model == nil {
		return llm.Move{Err: &llm.Error{Kind: llm.NotConfigured, Message: "no model is configured; 'models' in mortise.yaml names them"}}
	}
	tools := make([]llm.Tool, len(t.tools))
	for i, tool := range t.tools {
		tools[i] = llm.Tool{Name: tool.Name, Description: tool.Description, Schema: tool.Schema}
	}
	by := llm.Caller{
		Tenant: t.call.Tenant, Principal: t.call.Principal.Member(), Session: t.call.Session, Call: t.call.Trace.Step,
		Operation: "agent/" + t.agent, Plugin: "agent", Version: "1.0.0", Labels: t.call.Labels, Usage: t.usage,
	}
	var hints *llm.Hints
	if t.tier != "" {
		hints = &llm.Hints{Tier: llm.Tier(t.tier)}
	}
	return c.model.Converse(ctx, by, llm.Conversation{
		System: t.system, Messages: t.messages, Tools: tools, Hints: hints, MaxTokens: t.tokens, Say: t.say,
	})
}

// problem spells why a brain did not answer.
func problem(m llm.Move) error {
	if m.Err == nil {
		return nil
	}
	code := plugin.CodeUnavailable
	switch m.Err.Kind {
	case llm.Budget:
		code = plugin.CodeBudgetExceeded
	case llm.Pace, llm.Quota:
		code = plugin.CodeRateLimited
	case llm.Timeout:
		code = plugin.CodeTimeout
	case llm.Cancelled:
		code = plugin.CodeCancelled
	case llm.BadRequest:
		code = plugin.CodeInvalidInput
	case llm.TooLarge:
		code = plugin.CodeLimitExceeded
	case llm.Internal:
		code = plugin.CodeInternal
	}
	return plugin.Errorf(code, "the model did not answer: %s", m.Err.Message)
}
