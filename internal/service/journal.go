package service

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

// unanswered is the error of an effect whose outcome is unknown.
type unanswered struct{ error }

func (u unanswered) Unwrap() error { return u.error }

// notSent is the error of an effect that is known not to have left the host.
type notSent struct{ error }

func (n notSent) Unwrap() error { return n.error }

// journalled carries out a task that has an effect: its intent is on the disk
// before it is sent, and its answer before the plugin hears it. What an earlier
// attempt of the call did is answered from the journal (kernel contracts, 5.3.4
// A: effects are never repeated).
func (g *grant) journalled(ctx context.Context, name string, args json.RawMessage, t task) (json.RawMessage, error) {
	if t.request != nil {
		args = t.request
	}
	effect := ledger.Effect{Method: name, Class: string(t.class), Name: t.effect, RequestHash: requestHash(name, args), Repeatable: t.repeat != nil}
	if t.commit != nil {
		return g.committed(ctx, name, t, effect)
	}
	begun, err := g.journal.Begin(ctx, effect)
	if err != nil {
		return nil, err
	}
	if begun.Answered {
		g.used.Store(true)
		if err := budget.AnswerOf(ctx).TakeInHand(ctx, 2*len(begun.Answer)); err != nil {
			g.journal.NotGiven(begun)
			return nil, noRoom(name, err)
		}
		raw, err := g.decodeAnswer(begun.Answer)
		var kept *plugin.Error
		if err != nil && !errors.As(err, &kept) {
			g.journal.NotGiven(begun)
		}
		return raw, err
	}
	if t.repeat != nil {
		t.repeat(begun.ProviderKey)
	}
	value, err := t.do(ctx)
	var open unanswered
	if errors.As(err, &open) {
		return nil, err // the intent stands
	}
	var unsent notSent
	if errors.As(err, &unsent) && ctx.Err() != nil { // the call was over before it was sent
		return nil, errors.Join(err, g.journal.NotSent(ctx, begun.N))
	}
	var raw json.RawMessage
	if err == nil {
		raw, err = g.encode(ctx, name, value, t)
	}
	answer, encodeErr := g.encodeAnswer(raw, err)
	if encodeErr != nil {
		return nil, encodeErr
	}
	if endErr := g.journal.End(ctx, begun.N, answer); endErr != nil {
		return nil, endErr
	}
	return raw, err
}

// committed carries out a local effect in one transaction with its place in the
// journal.
func (g *grant) committed(ctx context.Context, name string, t task, effect ledger.Effect) (json.RawMessage, error) {
	if t.before != nil {
		if err := t.before(ctx); err != nil {
			return nil, err
		}
	}
	kept, err := g.journal.Local(ctx, effect, func(tx ledger.Tx) ([]byte, error) {
		value, err := t.commit(ctx, tx)
		var refusal *plugin.Error
		if err != nil && !errors.As(err, &refusal) {
			return nil, err
		}
		var raw json.RawMessage
		if err == nil {
			if raw, err = g.encode(ctx, name, value, t); err != nil {
				return nil, err
			}
		}
		return g.encodeAnswer(raw, err)
	})
	if err != nil {
		return nil, err
	}
	return g.decodeAnswer(kept)
}

// requestHash identifies what is asked for, however it is spelled.
func requestHash(name string, args json.RawMessage) string {
	form, err := canon.Form(args)
	if err != nil {
		form = args // two spellings of it are then two requests
	}
	return canon.Sum(append([]byte(name+"\n"), form...))
}

// An answer is what the journal keeps of how a request ended.
type answer struct {
	Value jsontext.Value `json:"value,omitzero"`
	Error *failure       `json:"error,omitzero"`

	// Labels are those that the attempt had once it was answered: another attempt
	// that is given the answer inherits them. An older host kept none.
	Labels *[]string `json:"labels,omitzero"`
}

type failure struct {
	Code         plugin.Code    `json:"code"`
	Message      string         `json:"message"`
	Details      jsontext.Value `json:"details,omitzero"`
	Retryable    bool           `json:"retryable"`
	RetryAfterMS int64          `json:"retry_after_ms"`
}

func (g *grant) encodeAnswer(value json.RawMessage, err error) ([]byte, error) {
	labels := append([]string{}, g.Labels()...)
	a := answer{Value: jsontext.Value(value), Labels: &labels}
	if err != nil {
		e := plugin.AsError(err)
		a = answer{Labels: &labels, Error: &failure{e.Code, e.Message, jsontext.Value(e.Details), e.Retryable, e.RetryAfter.Milliseconds()}}
	}
	return json2.Marshal(a, json2.Deterministic(true), jsontext.AllowInvalidUTF8(true))
}

func (g *grant) decodeAnswer(kept []byte) (json.RawMessage, error) {
	var a answer
	if err := json2.Unmarshal(kept, &a); err != nil {
		return nil, err
	}
	if a.Labels == nil { // which of them it had is not known
		a.Labels = &[]string{plugin.Untrusted}
	}
	g.heard(*a.Labels)
	if e := a.Error; e != nil {
		return nil, &plugin.Error{Code: e.Code, Message: e.Message, Details: json.RawMessage(e.Details), Retryable: e.Retryable, RetryAfter: time.Duration(e.RetryAfterMS) * time.Millisecond}
	}
	return json.RawMessage(a.Value), nil
}
