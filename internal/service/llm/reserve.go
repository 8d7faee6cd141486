package llm

import (
	"context"
	"fmt"
	"math"
	"time"
)

// Limits are budgets; 0 is none.
type Limits struct {
	Query   MicroCents
	Call    MicroCents
	Session MicroCents
	Day     MicroCents // of a tenant, by UTC
}

// settleTime is how long the books of an attempt may take after its caller is
// gone.
const settleTime = 5 * time.Second

// DaySubject is the account of a tenant's day in a budgets.
const DaySubject = "models"

// Today is the period of a tenant's budget at a time.
func Today(now time.Time) string { return now.UTC().Format(time.DateOnly) }

// A reservation is the most that one attempt can cost, taken out of every
// budget it counts for.
type reservation struct {
	x      *exchange
	amount MicroCents
	held   []account // in the budgets
	onTab  bool
}

// reserve takes the most that an attempt can cost out of all budgets, or none.
func (x *exchange) reserve(ctx context.Context, amount MicroCents) (*reservation, *Error) {
	r := &reservation{x: x, amount: amount}
	limits := x.d.opts.Limits
	refuse := func(what string, limit MicroCents) *Error {
		_ = r.giveBack(ctx, amount) // it stays set aside where it cannot be given back: the safe side
		return errorf(Budget, "it can cost up to %s, and the budget of %s is %s; ask for less, or let an administrator raise it", dollars(amount), what, dollars(limit))
	}
	own := limits.Query
	if h := x.q.Hints; h != nil && h.MaxBudget != nil && (own == 0 || *h.MaxBudget < own) {
		own = max(*h.MaxBudget, 0)
		if own == 0 && amount > 0 {
			return nil, refuse("this query", own)
		}
	}
	if own > 0 && amount > own-x.spent {
		return nil, refuse("this query", own)
	}
	if t := x.by.Usage; t != nil {
		if !t.reserve(amount, limit(limits.Call)) {
			return nil, refuse("one call", limits.Call)
		}
		r.onTab = true
	}
	if amount == 0 {
		return r, nil // what costs nothing needs no budgets
	}
	for _, b := range []struct {
		account
		what  string
		limit MicroCents
	}{
		{account{x.by.Tenant, "session:" + x.by.Session, ""}, "the session", limits.Session},
		{account{x.by.Tenant, DaySubject, x.day}, "the day", limits.Day},
	} {
		if b.subject == "session:" || b.limit == 0 && b.subject != DaySubject {
			continue
		}
		ok, err := x.d.opts.Budgets.Reserve(ctx, b.tenant, b.subject, b.period, amount, limit(b.limit))
		if err != nil {
			_ = r.giveBack(ctx, amount)
			return nil, &Error{Kind: Internal, Message: "what was spent cannot be looked up, so nothing is", Err: err}
		}
		if !ok {
			return nil, refuse(b.what, b.limit)
		}
		r.held = append(r.held, b.account)
	}
	return r, nil
}

func limit(l MicroCents) MicroCents {
	if l == 0 {
		return math.MaxInt64 / 2
	}
	return l
}

// settle books what an attempt did cost and gives back the rest, also for a
// caller who is gone.
func (r *reservation) settle(ctx context.Context, m *Model, u Usage, cost MicroCents) error {
	r.x.spent += cost
	err := r.giveBack(ctx, r.amount-cost)
	if t := r.x.by.Usage; t != nil {
		t.add(m.Provider, u, cost)
	}
	return err
}

func (r *reservation) giveBack(ctx context.Context, amount MicroCents) (err error) {
	if r.onTab {
		r.x.by.Usage.giveBack(amount)
	}
	if amount == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	for _, a := range r.held {
		if e := r.x.d.opts.Budgets.Return(ctx, a.tenant, a.subject, a.period, amount); e != nil {
			err = e
		}
	}
	return err
}

// dollars writes an amount for people.
func dollars(amount MicroCents) string {
	if amount != 0 && amount < Dollar/100 {
		return fmt.Sprintf("$%.6f", float64(amount)/float64(Dollar))
	}
	return fmt.Sprintf("$%.2f", float64(amount)/float64(Dollar))
}
