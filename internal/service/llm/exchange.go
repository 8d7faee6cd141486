package llm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// delays are how long it waits before it asks the same again.
var delays = []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}

// maxPatience is the longest that it waits because a provider says so.
const maxPatience = time.Minute

// An exchange is one query, or one move of a conversation, on its way. One
// goroutine uses it.
type exchange struct {
	d      *Dispatcher
	by     Caller
	q      *Query
	talk   *Conversation // to go on with; nil for a query
	began  time.Time
	day    string
	system string
	prompt string
	data   []byte // of the document, once it was read

	spent     MicroCents // by all attempts
	used      Usage      // likewise
	estimated bool
	model     *Model    // that was asked last
	reply     Reply     // what it said
	uses      []ToolUse // that it asks for
	heard     bool      // some of an answer was passed on: it is not asked for again
	attempts  []plugin.ModelAttempt
	slot      slot
	noURI     map[*Model]string // models that could not fetch the document, and why
}

// ask finds the models for the query and tries them.
func (x *exchange) ask(ctx context.Context) Answer {
	r, gap := x.d.route(x.q, x.talk != nil)
	if gap != nil {
		a := Answer{Err: gap}
		if x.q.Document != nil && gap.Kind == Gap {
			a.Path, a.Fallback = PathNone, gap.Message
		}
		return a
	}
	if early := x.d.pace.take(x.by.Tenant); early != nil {
		return Answer{Err: early}
	}
	x.slot = slot{d: x.d}
	if late := x.slot.take(ctx); late != nil {
		return Answer{Err: late}
	}
	defer x.slot.release()
	a, failure := x.try(ctx, r)
	a.OK, a.Err = failure == nil, failure
	a.Cost, a.Attempts, a.Usage, a.Estimated = x.spent, len(x.attempts), x.used, x.estimated
	if a.Attempts == 0 {
		a.Model = "" // none ran the query
		if a.Path != PathNone {
			a.Path = ""
		}
	}
	return a
}

// try asks the models of a route: the next one at once where a quota or a rate
// is used up, all that may be able to later again after a while. Whether there is
// one is for the errors of all models to say, not of the one that was asked last.
func (x *exchange) try(ctx context.Context, r route) (a Answer, last *Error) {
	fallback := r.fallback
	failed := map[*Model]failure{}
	var waited time.Duration
	for round := 0; ; round++ {
		for _, m := range r.models {
			if f, asked := failed[m]; asked && (!f.transient() || f.until > waited) {
				continue
			}
			if a, last = x.attempt(ctx, m, fallback); last == nil {
				return a, nil
			}
			failed[m] = failure{last, waited + last.RetryAfter}
			if last.Kind != Quota && last.Kind != Pace || x.heard {
				break
			}
			fallback = fmt.Sprintf("a model of the %s tier could not take it: %s", m.Tier, last.Kind)
		}
		next, again := soonest(r.models, failed)
		if !again || x.heard {
			break
		}
		last = next.Error
		if round == len(delays) {
			break
		}
		pause := max(delays[round], next.until-waited)
		if deadline, bounded := ctx.Deadline(); pause > maxPatience || bounded && time.Until(deadline) <= pause {
			last.Message += fmt.Sprintf("; it would be asked again in %s, which is too late", pause)
			break
		}
		if late := x.slot.pause(ctx, pause); late != nil {
			return a, late
		}
		waited += pause
	}
	if n := len(x.attempts); n > 1 {
		last.Message += fmt.Sprintf(" (after %d attempts)", n)
	}
	return a, last
}

// A failure is why a model did not answer when it was last asked.
type failure struct {
	*Error
	until time.Duration // when it may be asked again, on the clock of what was waited
}

// soonest returns the failure of the model that may be asked again first; again is
// false where asking none of them again can help.
func soonest(models []*Model, failed map[*Model]failure) (next failure, again bool) {
	for _, m := range models {
		if f, asked := failed[m]; asked && f.transient() && (!again || f.until < next.until) {
			next, again = f, true
		}
	}
	return next, again
}

// attempt asks one model, once for each way there is to give it the document.
func (x *exchange) attempt(ctx context.Context, m *Model, fallback string) (Answer, *Error) {
	if x.talk != nil {
		reply, failure := x.converse(ctx, m)
		return Answer{Text: reply.Text, Path: PathText, Fallback: fallback, Model: m.Name}, failure
	}
	path := PathText
	switch doc := x.q.Document; {
	case x.q.Image != nil:
		path = PathInline
	case doc != nil:
		path = m.path(doc)
		if why := x.noURI[m]; why != "" {
			path, fallback = x.withoutURI(m), why
		}
	}
	a := Answer{Path: path, Fallback: fallback, Model: m.Name}
	if path == PathNone {
		return a, errorf(Gap, "the model cannot fetch the document, which is too large to be sent along; extract the text and ask about that")
	}
	reply, failure := x.once(ctx, m, path)
	if failure != nil && path == PathURI && (failure.Kind == BadRequest || failure.Kind == Auth) {
		if x.noURI == nil {
			x.noURI = map[*Model]string{}
		}
		x.noURI[m] = "the model could not fetch the document: " + failure.Message
		return x.attempt(ctx, m, fallback)
	}
	a.Text = reply.Text
	return a, failure
}

// withoutURI is the path that is left to a model which cannot fetch.
func (x *exchange) withoutURI(m *Model) string {
	doc := *x.q.Document
	doc.URI = ""
	return m.path(&doc)
}

// once sends one request.
func (x *exchange) once(ctx context.Context, m *Model, path string) (Reply, *Error) {
	x.model = m
	r := Request{Model: m.ID, System: x.system, Prompt: x.prompt, MaxTokens: x.q.MaxTokens, JSON: m.JSON && x.q.Hints != nil && x.q.Hints.StructuredOutput && saysJSON(x.q)}
	if m.MaxOutput > 0 {
		r.MaxTokens = min(r.MaxTokens, m.MaxOutput)
	}
	var failure *Error
	if r.Parts, failure = x.parts(m, path); failure != nil {
		return Reply{}, failure
	}
	return x.send(ctx, m, m.worst(&r), func(ctx context.Context) (Reply, error) { return m.Asks.Complete(ctx, r) })
}

// send makes one request, with what it may cost set aside before and settled
// after.
func (x *exchange) send(ctx context.Context, m *Model, worst Usage, ask func(ctx context.Context) (Reply, error)) (Reply, *Error) {
	held, failure := x.reserve(ctx, m.cost(worst))
	if failure != nil {
		return Reply{}, failure
	}
	began := time.Now()
	reply, failure := x.complete(ctx, ask)
	x.reply = reply

	var used Usage
	var cost MicroCents
	switch {
	case reply.Usage.Known():
		used, cost = reply.Usage, m.cost(reply.Usage)
	case failure == nil || failure.Sent: // the usage was not reported
		used, cost, x.estimated = worst, held.amount, true
	}
	attempt := plugin.ModelAttempt{Model: m.Name, Outcome: "ok", Cost: cost, Took: float64(time.Since(began).Microseconds()) / 1000}
	if failure != nil {
		attempt.Outcome, attempt.Status = string(failure.Kind), failure.Status
	}
	x.attempts = append(x.attempts, attempt)
	x.used.In += used.In
	x.used.Out += used.Out
	if err := held.settle(ctx, m, used, cost); err != nil && failure == nil {
		failure = &Error{Kind: Internal, Message: "what it cost could not be booked, so the answer is not given", Err: err}
	}
	return reply, failure
}

// complete asks the provider within the time of one attempt. A client that
// panics over what came back fails this attempt and nothing else.
func (x *exchange) complete(ctx context.Context, ask func(ctx context.Context) (Reply, error)) (reply Reply, failure *Error) {
	defer func() {
		if p := recover(); p != nil {
			reply, failure = Reply{}, &Error{Kind: Malformed, Message: "what came back is no answer of this provider", Sent: true, Err: fmt.Errorf("panic: %v", p)}
		}
	}()
	limited, cancel := context.WithTimeout(ctx, x.d.opts.Timeout)
	defer cancel()
	reply, err := ask(limited)
	if err == nil {
		return reply, nil
	}
	failure = asError(err)
	if ctx.Err() != nil && (failure.Kind == Timeout || failure.Kind == Cancelled) {
		why := gone(ctx)
		why.Sent, why.Err = failure.Sent, failure.Err
		return reply, why
	}
	return reply, failure
}

// asError is what a provider said went wrong.
func asError(err error) *Error {
	var failure *Error
	if !errors.As(err, &failure) {
		return &Error{Kind: Internal, Message: "asking the model failed", Err: err, Sent: true}
	}
	return failure
}

// gone says why a context ended.
func gone(ctx context.Context) *Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &Error{Kind: Timeout, Message: "the deadline of the call passed", Err: ctx.Err()}
	}
	return &Error{Kind: Cancelled, Message: "the caller cancelled the request", Err: ctx.Err()}
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
