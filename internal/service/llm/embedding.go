package llm

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
)

// An Embedder is a provider that has models of embeddings.
type Embedder interface {
	// Embed asks once. The error is an [*Error].
	Embed(ctx context.Context, r EmbedRequest) (EmbedReply, error)
}

// An EmbedRequest is texts of which vectors are to be made.
type EmbedRequest struct {
	Model      string // the provider's name of it
	Texts      []string
	Dimensions int // of the vectors; the model's own where it is 0
}

// An EmbedReply is the vectors, in the order of the texts.
type EmbedReply struct {
	Vectors [][]float32
	Usage   Usage
	Model   string // as the provider names what really answered
}

// An EmbeddingModel is a model that makes vectors of texts.
type EmbeddingModel struct {
	Name       string // as the host calls it
	Provider   string // openai, gemini
	ID         string // the provider's name of it
	Dimensions int    // the model's own where it is 0
	Batch      int    // texts of one request; 64 where it is 0
	Price      Price
	Asks       Embedder
}

// Space names what vectors of the model can be compared with: those of the same
// provider, model and length, and no others.
func (m *EmbeddingModel) Space() string {
	space := m.Provider + "/" + m.ID
	if m.Dimensions > 0 {
		space += fmt.Sprintf("@%d", m.Dimensions)
	}
	return space
}

// Bounds of one request for vectors.
const (
	embedBatch    = 64
	maxDimensions = 8192
)

// Embedding returns the model of embeddings; nil if there is none.
func (d *Dispatcher) Embedding() *EmbeddingModel {
	if d == nil {
		return nil
	}
	return d.current().opts.Embedding
}

// Embed makes vectors of texts, in as many requests as that takes. Each is counted in
// the budgets and put on record like any query, but its texts and vectors by their
// hashes alone: the caller keeps both. A request that may succeed in a while is made a
// second time. On an error there are no vectors.
func (d *Dispatcher) Embed(ctx context.Context, by Caller, texts []string) ([][]float32, error) {
	d = d.current()
	m := d.Embedding()
	if m == nil {
		return nil, errorf(NotConfigured, "no model of embeddings is configured; an administrator names it under models.embedding in mortise.yaml")
	}
	batch := m.Batch
	if batch == 0 {
		batch = embedBatch
	}
	texts = d.cleanTexts(texts)
	vectors := make([][]float32, 0, len(texts))
	for len(texts) > 0 {
		n := min(batch, len(texts))
		some, failure := d.embed(ctx, m, by, texts[:n])
		if failure != nil {
			return nil, failure
		}
		vectors, texts = append(vectors, some...), texts[n:]
	}
	return vectors, nil
}

// embed makes one request, and again if that may help, and puts it on record.
func (d *Dispatcher) embed(ctx context.Context, m *EmbeddingModel, by Caller, texts []string) ([][]float32, *Error) {
	s := slot{d: d}
	if late := s.take(ctx); late != nil {
		return nil, late
	}
	defer s.release()
	x := &exchange{d: d, by: by, q: &Query{}, began: d.opts.Now(), model: &Model{Name: m.Name, Provider: m.Provider, Input: m.Price}}
	x.day = Today(x.began)
	request := EmbedRequest{Model: m.ID, Texts: texts, Dimensions: m.Dimensions}
	reply, failure := x.vectors(ctx, m, request)
	if failure != nil && failure.transient() && failure.Kind != Timeout && failure.RetryAfter <= 2*delays[0] {
		if s.pause(ctx, max(delays[0], failure.RetryAfter)) == nil {
			reply, failure = x.vectors(ctx, m, request)
		}
	}
	if err := x.recordVectors(ctx, request, reply, failure); err != nil {
		return nil, &Error{Kind: Internal, Message: "the vectors could not be put on record, so they are not given", Err: err}
	}
	return reply.Vectors, failure
}

// vectors sends one request, with what it may cost set aside before.
func (x *exchange) vectors(ctx context.Context, m *EmbeddingModel, r EmbedRequest) (EmbedReply, *Error) {
	worst := Usage{In: overhead}
	for _, text := range r.Texts {
		worst.In += tokens(text)
	}
	held, failure := x.reserve(ctx, x.model.cost(worst))
	if failure != nil {
		return EmbedReply{}, failure
	}
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, x.d.opts.Timeout)
	reply, err := m.Asks.Embed(limited, r)
	cancel()
	if err == nil {
		failure = checkVectors(&r, &reply)
	} else if failure = asError(err); ctx.Err() != nil && (failure.Kind == Timeout || failure.Kind == Cancelled) {
		why := gone(ctx)
		why.Sent, why.Err = failure.Sent, failure.Err
		failure = why
	}
	var used Usage
	var cost MicroCents
	switch {
	case reply.Usage.Known():
		used, cost = reply.Usage, x.model.cost(reply.Usage)
	case failure == nil || failure.Sent: // the usage was not reported
		used, cost, x.estimated = worst, held.amount, true
	}
	attempt := plugin.ModelAttempt{Model: m.Name, Outcome: "ok", Cost: cost, Took: float64(time.Since(began).Microseconds()) / 1000}
	if failure != nil {
		attempt.Outcome, attempt.Status = string(failure.Kind), failure.Status
	}
	x.attempts = append(x.attempts, attempt)
	x.used.In += used.In
	if err := held.settle(ctx, &Model{Provider: m.Provider}, used, cost); err != nil && failure == nil {
		failure = &Error{Kind: Internal, Message: "what it cost could not be booked, so the vectors are not given", Err: err}
	}
	return reply, failure
}

// checkVectors refuses what cannot be compared: another number of vectors than
// of texts, vectors of several lengths, and numbers that are none.
func checkVectors(r *EmbedRequest, reply *EmbedReply) *Error {
	malformed := func(format string, args ...any) *Error {
		e := errorf(Malformed, format, args...)
		e.Sent = true
		return e
	}
	if len(reply.Vectors) != len(r.Texts) {
		return malformed("%d vectors came for %d texts", len(reply.Vectors), len(r.Texts))
	}
	length := r.Dimensions
	if length == 0 {
		length = len(reply.Vectors[0])
	}
	for _, v := range reply.Vectors {
		if len(v) != length || length == 0 || length > maxDimensions {
			return malformed("a vector has %d dimensions, and the first, or the configuration, %d; at most %d are kept", len(v), length, maxDimensions)
		}
		for _, f := range v {
			if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
				return malformed("a vector has numbers in it that are none")
			}
		}
	}
	return nil
}

// recordVectors puts a request for vectors on record.
func (x *exchange) recordVectors(ctx context.Context, r EmbedRequest, reply EmbedReply, failure *Error) error {
	if x.d.opts.Record == nil || !x.notable(&Answer{Err: failure}) {
		return nil
	}
	asked, err := json.Marshal(map[string]any{"texts": r.Texts}, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return err
	}
	e := &Exchange{By: x.by, Hashed: true, Record: plugin.ModelRecord{
		CallID: x.by.Call, Operation: x.by.Operation, Plugin: x.by.Plugin, Version: x.by.Version, Session: x.by.Session,
		Tier: "embedding", Model: x.model.Name, Provider: x.model.Provider, Answered: reply.Model,
		Parameters: map[string]any{"texts": len(r.Texts), "dimensions": r.Dimensions},
		TokensIn:   x.used.In, Cost: x.spent, Estimated: x.estimated, Path: PathText, Attempts: x.attempts, Outcome: "ok", PromptHash: hashOf(asked),
		Labels: plugin.Labels(x.by.Labels, []string{plugin.Private}), Took: float64(x.d.opts.Now().Sub(x.began).Microseconds()) / 1000,
	}}
	if failure != nil {
		e.Record.Outcome, e.Record.Message = string(failure.Kind), failure.Message
	} else {
		given, err := json.Marshal(reply.Vectors)
		if err != nil {
			return err
		}
		e.Record.AnswerHash = hashOf(given)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	return x.d.opts.Record(ctx, e)
}
