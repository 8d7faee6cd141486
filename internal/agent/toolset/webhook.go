package toolset

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/internal/store/job"
	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of events for webhooks.
const (
	webhookAsk    = 10 * time.Second // for the answer that is waited for
	maxOutbox     = 1000             // events of one agent that wait for one webhook
	outboxPatient = 10 * time.Second // for an event to be put on record
)

// webhookHooks are the hooks of a remote plugin, as one agent has them (HK-11).
// Events of listeners go to the outbox, and a serving host delivers them;
// transforms and vetoes are requested synchronously.
type webhookHooks struct {
	webhooks *Webhooks
	of       agent.Owner
	target   *plugin.Target
}

var _ agent.Handlers = webhookHooks{}

// Subscriptions implements [agent.Handlers].
func (h webhookHooks) Subscriptions() []event.Subscription {
	var all []event.Subscription
	for _, hook := range h.target.Manifest.Hooks {
		e, found := event.Find(hook.Event)
		if !found || !e.Webhook { // its manifest was refused, then
			continue
		}
		s := event.Subscription{
			Event: hook.Event, Name: "webhook", Priority: new(hook.Priority), Mode: event.Mode(hook.FailureMode), ModeSaid: hook.FailureMode != "",
			Before: hook.Before, After: hook.After,
		}
		if e.Shape == event.Transform {
			limit := webhookAsk
			if hook.Deadline > 0 {
				limit = min(limit, hook.Deadline)
			}
			s.Transform = func(ctx context.Context, p *event.Payload) (*event.Payload, error) {
				return h.ask(ctx, hook.Event, p, limit)
			}
		} else {
			s.Listen = func(ctx context.Context, p *event.Payload) error { return h.put(ctx, hook.Event, p) }
		}
		all = append(all, s)
	}
	return all
}

// Close implements [agent.Handlers]. What is on record is sent all the same.
func (webhookHooks) Close() error { return nil }

// A notification is what a webhook is sent.
type notification struct {
	ID      string          `json:"id"`
	Event   string          `json:"event"`
	At      time.Time       `json:"at"`
	Agent   string          `json:"agent"`
	Payload json.RawMessage `json:"payload"`
}

func (h webhookHooks) notification(name string, p *event.Payload) (id string, body []byte, at time.Time, err error) {
	made, err := uuid.NewV7() // the order of ids is that of events
	if err != nil {
		return "", nil, at, err
	}
	at = h.webhooks.t.Store.Now().UTC().Truncate(time.Microsecond)
	body, err = json.Marshal(notification{made.String(), name, at, h.of.Agent, json.RawMessage(p.Text())})
	return made.String(), body, at, err
}

// put puts an event on record. It is that of a turn that may have been given up,
// and has happened all the same.
func (h webhookHooks) put(ctx context.Context, name string, p *event.Payload) error {
	id, body, at, err := h.notification(name, p)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), outboxPatient)
	defer cancel()
	row := agent.OutboxRow{
		Tenant: h.of.Tenant, ID: id, Agent: h.of.Agent, Plugin: h.target.Manifest.Name, Event: name, Body: body, CreatedAt: at, NextAt: at,
	}
	waiting := 0
	err = h.webhooks.t.Store.Write(ctx, func(tx agent.Tx) (err error) {
		waiting, err = tx.InsertOutbox(row, maxOutbox)
		return err
	})
	switch {
	case err != nil:
		return err
	case waiting >= maxOutbox:
		return plugin.Errorf(plugin.CodeLimitExceeded, "%d events wait for %s already, and this one is not kept: does it answer?", waiting, row.Plugin)
	case waiting == 0: // otherwise the sender of the waiting events continues with this one
		h.webhooks.t.Wake(ctx, job.Webhook, row.Tenant, outboxItem(&row))
	}
	return nil
}

// ask sends an event whose prompt may be changed, and returns what came back; nil
// leaves it as it was.
func (h webhookHooks) ask(ctx context.Context, name string, p *event.Payload, limit time.Duration) (*event.Payload, error) {
	m := h.target.Manifest
	id, body, _, err := h.notification(name, p)
	if err != nil {
		return nil, err
	}
	got, err := h.webhooks.post(ctx, h.of.Tenant, m, id, body, limit)
	if err == nil {
		err = h.webhooks.judge(ctx, m.Name, got)
	}
	if err != nil {
		return nil, err
	}
	changed, err := changedPrompt(p, m.Name, got)
	if changed != nil { // its words are those of another machine
		agent.Taint(ctx, []string{plugin.Untrusted})
	}
	return changed, err
}

// changedPrompt returns a payload with the prompt that a webhook wants. Nothing
// else of it is a webhook's to change.
func changedPrompt(p *event.Payload, name string, got webhookAnswer) (*event.Payload, error) {
	refuse := func(format string, args ...any) (*event.Payload, error) {
		return nil, plugin.Errorf(plugin.CodeInvalidOutput, name+": what it answered "+format, args...)
	}
	switch {
	case got.more:
		return refuse("has more than %d bytes", maxWebhookAnswer)
	case len(got.body) == 0:
		return nil, nil
	}
	answer, err := event.NewPayload(string(got.body))
	if err != nil {
		return refuse("is no JSON object: %w", err)
	}
	raw, found := answer.Field("payload")
	switch {
	case !found && strings.Trim(answer.Text(), "{} \t\r\n") != "":
		return refuse("is an object without payload; {} leaves the prompt as it is")
	case !found || raw == "null":
		return nil, nil
	}
	changed, err := event.NewPayload(raw)
	if err != nil {
		return refuse("has no object in payload: %w", err)
	}
	prompt, found := changed.Field("prompt")
	if !found || prompt[0] != '"' {
		return refuse("has no text in payload.prompt")
	}
	if was, _ := p.Field("prompt"); was == prompt {
		return nil, nil
	}
	return p.Set("prompt", prompt)
}
