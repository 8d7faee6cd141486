package llm

import "context"

// A Converser is a provider whose models hold conversations and use tools.
type Converser interface {
	// Converse asks once, and hears the answer as it comes. The error is an
	// [*Error]; the reply has beside it what was said before, and its usage where
	// that is known.
	Converse(ctx context.Context, r ConverseRequest) (ConverseReply, error)
}

// A ConverseRequest is what a provider sends of a conversation. After each
// message with uses comes one with a result for each.
type ConverseRequest struct {
	Model     string // the provider's name of it
	System    string // "" for none
	Messages  []Message
	Tools     []Tool
	MaxTokens int // of the answer
	JSON      bool
	Say       func(text string) // receives the text as it arrives; may be nil
}

// A ConverseReply is what a model said, and the tools it asks for.
type ConverseReply struct {
	Reply
	Uses []ToolUse
}

// Converse has the model that fits go on with a conversation. It returns once the model
// has said all it has to say, no more is to be tried, or ctx has ended. Like a query it
// is counted in the budgets and put on record. An answer that broke off after its first
// word is not retried, since Say has already passed on part of it.
func (d *Dispatcher) Converse(ctx context.Context, by Caller, c Conversation) Move {
	if d == nil {
		return Move{Err: noModel()}
	}
	d = d.current()
	if e := c.check(); e != nil {
		return Move{Err: e}
	}
	messages, e := paired(c.Messages)
	if e != nil {
		return Move{Err: e}
	}
	c.Messages = messages
	d.cleanTalk(&c)
	q := &Query{System: c.System, MaxTokens: c.MaxTokens, Hints: c.Hints}
	x := &exchange{d: d, by: by, q: q, talk: &c, began: d.opts.Now(), system: instructed(q)}
	x.day = Today(x.began)
	a := x.ask(ctx)
	if err := x.record(ctx, &a); err != nil {
		return Move{Err: &Error{Kind: Internal, Message: "the answer could not be put on record, so it is not given", Err: err}, Model: a.Model, Usage: a.Usage, Cost: a.Cost}
	}
	return Move{Text: a.Text, Uses: x.uses, Stop: x.reply.Stop, Model: a.Model, Usage: a.Usage, Cost: a.Cost, Err: a.Err}
}

// converse sends a conversation to one model, once.
func (x *exchange) converse(ctx context.Context, m *Model) (Reply, *Error) {
	x.model = m
	r := ConverseRequest{
		Model: m.ID, System: x.system, Messages: x.talk.Messages, Tools: x.talk.Tools, MaxTokens: x.q.MaxTokens,
		// Gemini has no JSON mode beside tools, and with tools no provider needs one.
		JSON: m.JSON && x.q.Hints != nil && x.q.Hints.StructuredOutput && len(x.talk.Tools) == 0,
		Say: func(text string) {
			x.heard = true
			if x.talk.Say != nil {
				x.talk.Say(text)
			}
		},
	}
	if m.MaxOutput > 0 {
		r.MaxTokens = min(r.MaxTokens, m.MaxOutput)
	}
	var uses []ToolUse
	reply, failure := x.send(ctx, m, m.worstMove(&r), func(ctx context.Context) (Reply, error) {
		c, err := m.Asks.(Converser).Converse(ctx, r)
		uses = c.Uses
		return c.Reply, err
	})
	if failure == nil {
		x.uses = uses
	}
	return reply, failure
}
