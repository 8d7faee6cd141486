package llm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
)

// record puts the query on record, if something was sent or a budget refused
// it, also for a caller who is gone.
func (x *exchange) record(ctx context.Context, a *Answer) error {
	if x.d.opts.Record == nil || !x.notable(a) {
		return nil
	}
	prompt, err := x.sent()
	if err != nil {
		return err
	}
	answer, err := x.answered(a)
	if err != nil {
		return err
	}
	labels := []string{plugin.Private}
	if answer != nil {
		labels = append(labels, plugin.Untrusted)
	}
	e := &Exchange{By: x.by, Prompt: prompt, Record: plugin.ModelRecord{
		CallID: x.by.Call, Operation: x.by.Operation, Plugin: x.by.Plugin, Version: x.by.Version, Session: x.by.Session,
		Tier: string(x.q.tier()), Answered: x.reply.Model, Stop: x.reply.Stop, Parameters: x.parameters(),
		TokensIn: x.used.In, TokensOut: x.used.Out, Cost: x.spent, Estimated: x.estimated, Path: a.Path, Fallback: a.Fallback,
		Attempts: x.attempts, Outcome: "ok", PromptHash: hashOf(prompt), Labels: plugin.Labels(x.by.Labels, labels),
		Took: float64(x.d.opts.Now().Sub(x.began).Microseconds()) / 1000,
	}}
	rec := &e.Record
	if x.model != nil {
		rec.Model, rec.Provider = x.model.Name, x.model.Provider
	}
	if answer != nil {
		e.Answer, rec.AnswerHash = answer, hashOf(answer)
	}
	if !a.OK {
		rec.Outcome, rec.Message = string(a.Err.Kind), a.Err.Message
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	return x.d.opts.Record(ctx, e)
}

// notable reports whether a query belongs on record: one that went out, and one
// that a budget refused, of which one call leaves no more than 16.
func (x *exchange) notable(a *Answer) bool {
	if len(x.attempts) > 0 {
		return true
	}
	return a.Err != nil && a.Err.Kind == Budget && (x.by.Usage == nil || !x.by.Usage.refused())
}

// parameters are what was asked for beside the text.
func (x *exchange) parameters() map[string]any {
	p := map[string]any{"max_tokens": x.q.MaxTokens}
	if x.talk != nil {
		p["messages"], p["tools"] = len(x.talk.Messages), len(x.talk.Tools)
	} else {
		p["grounding"] = len(x.q.Grounding)
	}
	if h := x.q.Hints; h != nil {
		p["needs_reasoning"], p["needs_structured_output"], p["prefers_native_file"] = h.NeedsReasoning, h.StructuredOutput, h.PrefersNative
		if h.MaxBudget != nil {
			p["max_budget_cents"] = float64(*h.MaxBudget) / 1e6
		}
	}
	return p
}

// sent is what was asked: the text, and hashes of what went beside it.
func (x *exchange) sent() ([]byte, error) {
	if x.talk != nil {
		return canonical(map[string]any{"system": x.system, "messages": x.talk.Messages, "tools": x.talk.Tools})
	}
	body := map[string]any{"system": x.system, "prompt": x.prompt}
	if i := x.q.Image; i != nil {
		body["image"] = map[string]any{"type": i.MIME, "size": len(i.Data), "hash": hashOf(i.Data)}
	}
	if doc := x.q.Document; doc != nil {
		body["document"] = map[string]any{"type": doc.MIME, "name": doc.Name, "size": doc.Size, "hash": doc.SHA256, "uri": doc.URI}
	}
	return canonical(body)
}

// answered is what came back: the text of an answer; of a move its text and the
// tools it asks for, also where it broke off after some of it was passed on.
func (x *exchange) answered(a *Answer) ([]byte, error) {
	switch {
	case x.talk != nil && (a.OK || a.Text != ""):
		return canonical(map[string]any{"text": a.Text, "uses": x.uses})
	case x.talk == nil && a.OK:
		return []byte(a.Text), nil
	}
	return nil, nil
}

func canonical(body any) ([]byte, error) {
	return json.Marshal(body, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
