package toolset

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/agent/worker"
	"github.com/mortise-dev/mortise/internal/store/job"
	"github.com/mortise-dev/mortise/plugin"
)

// outboxWaits are how long it takes from one attempt to the next, give or take a
// fifth. After the last of them an event is given up.
var outboxWaits = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour}

const (
	outboxLease = time.Minute    // after which another host tries what one died of
	outboxAge   = 12 * time.Hour // after which an event that waited behind others is tried once
	maxAfter    = time.Hour      // that a webhook may ask not to be tried again
	outboxRound = 100            // events that are sent to one webhook before others have their turn
)

// WaitingWebhooks are the webhooks that events wait for. To each, the events of
// one agent go one after another, in the order in which they happened: one that
// is not accepted holds back those behind it, until it is given up.
type WaitingWebhooks struct{ *Webhooks }

var _ worker.Sweeper = WaitingWebhooks{}

// Kind implements [worker.Sweeper].
func (WaitingWebhooks) Kind() string { return job.Webhook }

// outboxItem names the events of one agent for one webhook.
func outboxItem(r *agent.OutboxRow) string { return r.Agent + "/" + r.Plugin }

// Due implements [worker.Sweeper].
func (w WaitingWebhooks) Due(ctx context.Context, limit int) ([]worker.Item, error) {
	rows, err := w.t.Store.Outbox(ctx, outboxFilter{Due: w.t.Store.Now().UTC(), Limit: limit})
	items := make([]worker.Item, len(rows))
	for i := range rows {
		items[i] = worker.Item{Kind: job.Webhook, Tenant: rows[i].Tenant, ID: outboxItem(&rows[i])}
	}
	return items, err
}

// Do implements [worker.Sweeper]. Where enough others are being sent to, it is
// left to the next sweep: slow webhooks must not keep calls from being done.
func (w WaitingWebhooks) Do(ctx context.Context, item worker.Item) error {
	select {
	case w.slots <- struct{}{}:
		defer func() { <-w.slots }()
	default:
		return nil
	}
	id, name, _ := strings.Cut(item.ID, "/")
	for range outboxRound {
		rows, err := w.t.Store.Outbox(ctx, outboxFilter{Tenant: item.Tenant, Agent: id, Plugin: name, Due: w.t.Store.Now().UTC(), Limit: 1})
		if err != nil || len(rows) == 0 {
			return err
		}
		if on, err := w.attempt(ctx, rows[0]); err != nil || !on {
			return err
		}
	}
	w.t.Wake(ctx, item.Kind, item.Tenant, item.ID)
	return nil
}

// attempt tries an event once, and reports whether the next one can go on.
func (w WaitingWebhooks) attempt(ctx context.Context, row agent.OutboxRow) (on bool, err error) {
	log := w.t.Log.With("agent", row.Agent, "plugin", row.Plugin, "event", row.Event, "id", row.ID)
	if agent.IsReply(&row) {
		return w.t.Agents.SendReply(ctx, row)
	}
	if agent.IsLate(&row) {
		return false, w.t.Agents.LookAtLate(ctx, row)
	}
	if row.Plugin == agent.OwnBus {
		return w.deliver(ctx, log, row)
	}
	target, err := w.t.Registry.Find(ctx, row.Plugin)
	code := plugin.CodeOf(err)
	if err == nil && target.Manifest.Runner.Kind != "webhook" {
		code = plugin.CodeNotFound
	}
	if code == plugin.CodeNotFound || code == plugin.CodeDisabled {
		log.Info("an event is not sent: its webhook is no more, or disabled")
		return true, w.drop(ctx, &row)
	}
	// The attempt is counted before it is made: one that ends the host is one.
	had := row.Attempt
	row.Attempt, row.NextAt, row.Problem = had+1, w.t.Store.Now().UTC().Add(outboxLease), "it was being sent"
	if won, failed := w.update(ctx, had, &row); failed != nil || !won {
		return false, failed
	}
	var got webhookAnswer
	if err == nil {
		if got, err = w.post(ctx, row.Tenant, target.Manifest, row.ID, row.Body, webhookSend); err == nil {
			err = w.judge(ctx, row.Plugin, got)
		}
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), outboxPatient)
	defer cancel()
	switch {
	case err == nil, got.status == http.StatusGone:
		return true, w.drop(end, &row)
	case ctx.Err() != nil: // the host stops: this does not count as a failed attempt
		row.Attempt, row.NextAt, row.Problem = had, w.t.Store.Now().UTC(), ""
		_, failed := w.update(end, had+1, &row)
		return false, failed
	}
	wait, again := w.next(&row, w.t.Store.Now(), got.after)
	if !again {
		log.Error("an event is given up: its webhook did not accept it", "attempts", row.Attempt, "since", row.CreatedAt, "cause", cause(err))
		w.t.Agents.Failed(end, row.Tenant, row.Agent, row.Plugin, row.Event, "not delivered after "+attempts(row.Attempt)+": "+cause(err))
		return true, w.drop(end, &row)
	}
	row.NextAt, row.Problem = w.t.Store.Now().UTC().Add(wait).Truncate(time.Microsecond), cause(err)
	log.Warn("a webhook did not accept an event; it is tried again", "attempt", row.Attempt, "in", wait, "cause", cause(err))
	if _, err := w.update(end, had+1, &row); err != nil {
		return false, err
	}
	if err := w.t.Jobs.Wake(end, job.Webhook, row.Tenant, outboxItem(&row), row.NextAt); err != nil {
		log.Debug("a sweep will find it", "cause", err.Error())
	}
	return false, nil
}

// First delivers the notice of an agent that is next.
func (w WaitingWebhooks) First(ctx context.Context, tenant, id string) (on bool, err error) {
	rows, err := w.t.Store.Outbox(ctx, outboxFilter{Tenant: tenant, Agent: id, Plugin: agent.OwnBus, Due: w.t.Store.Now().UTC(), Limit: 1})
	if err != nil || len(rows) == 0 {
		return false, err
	}
	return w.attempt(ctx, rows[0])
}

// deliver tells the plugins of an agent what happened to it in another process.
// The row is a lease meanwhile, so that one host tells them.
func (w WaitingWebhooks) deliver(ctx context.Context, log *slog.Logger, row agent.OutboxRow) (on bool, err error) {
	had := row.Attempt
	row.Attempt, row.NextAt = had+1, w.t.Store.Now().UTC().Add(outboxLease)
	if won, failed := w.update(ctx, had, &row); failed != nil || !won {
		return false, failed
	}
	if err := w.t.Agents.Deliver(ctx, &row); err != nil {
		log.Error("the plugins of an agent did not all hear of an event", "cause", cause(err))
	}
	return true, w.drop(context.WithoutCancel(ctx), &row)
}

// next returns how long an event waits for its next attempt, and whether there is
// to be one.
func (w *Webhooks) next(row *agent.OutboxRow, now time.Time, after time.Duration) (time.Duration, bool) {
	if int(row.Attempt) > len(w.Waits) || now.Sub(row.CreatedAt) > outboxAge {
		return 0, false
	}
	wait := w.Waits[row.Attempt-1]
	wait = wait*4/5 + rand.N(wait*2/5+1)
	return max(wait, min(after, maxAfter)), true
}

func (w *Webhooks) update(ctx context.Context, attempt int64, row *agent.OutboxRow) (won bool, err error) {
	err = w.t.Store.Write(ctx, func(tx agent.Tx) (err error) {
		won, err = tx.UpdateOutbox(attempt, *row)
		return err
	})
	return won, err
}

func (w *Webhooks) drop(ctx context.Context, row *agent.OutboxRow) error {
	return w.t.Store.Write(ctx, func(tx agent.Tx) error {
		_, err := tx.DeleteOutbox(row.Tenant, row.ID)
		return err
	})
}

func attempts(n int64) string {
	if n == 1 {
		return "one attempt"
	}
	return strconv.FormatInt(n, 10) + " attempts"
}
