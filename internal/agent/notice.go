package agent

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/plugin"
)

// What happens to an agent in one process, such as a command line, may have to
// be heard in another: the host that serves has the instance whose plugins
// hear. Such an event is a notice, a row of the outbox that is written in the
// transaction of what happened (transactional outbox). The serving host
// delivers it.

// OwnBus stands in the outbox where a webhook's plugin has its name: the event is
// for the agent's own bus. No plugin can have that name.
const OwnBus = "/bus"

// maxNotices is how many notices of one agent wait.
const maxNotices = 1000

// Local returns what this process has of an agent, nil if it has nothing.
func (a *Agents) Local(tenant, id string) *Instance {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.instances[Key{tenant, id}]
}

// notice puts an event of an agent on record for the host that serves.
func (a *Agents) notice(tx Tx, key Key, name string, f fields) error {
	now := a.Now().UTC().Truncate(time.Microsecond)
	all := fields{"agentId": key.Agent, "at": now.Format(time.RFC3339Nano)}
	for k, v := range f {
		if v != "" {
			all[k] = v
		}
	}
	body, err := json.Marshal(all, json.Deterministic(true))
	if err != nil {
		return plugin.Errorf(plugin.CodeInternal, "encoding the event %s: %w", name, err)
	}
	id, err := uuid.NewV7() // the order of ids is that of events
	if err != nil {
		return err
	}
	waiting, err := tx.InsertOutbox(OutboxRow{
		Tenant: key.Tenant, ID: id.String(), Agent: key.Agent, Plugin: OwnBus, Event: name, Body: body, CreatedAt: now, NextAt: now,
	}, maxNotices)
	if err == nil && waiting >= maxNotices {
		a.Log.Warn("an event is not kept for the host that serves: too many wait", "agent", key.Agent, "event", name, "waiting", waiting)
	}
	return err
}

// Stopped records, for the hosts that have an instance of an agent, that a
// caller stopped it.
func (a *Agents) Stopped(tx Tx, tenant, id string) error {
	return a.notice(tx, Key{tenant, id}, event.AgentStopped, fields{"reason": "user"})
}

// noticed makes the serving host look at the notices of an agent.
func (a *Agents) noticed(ctx context.Context, key Key) {
	if a.Notify != nil {
		a.Notify(ctx, key.Tenant, key.Agent)
	}
}

// Deliver tells the plugins of an agent of a notice. Those of one that is stopped
// hear it too: it is started for that, as for a chat, and stopped again. An agent
// that was deleted is heard out by the instance that is still there.
func (a *Agents) Deliver(ctx context.Context, row *OutboxRow) error {
	key := Key{row.Tenant, row.Agent}
	if row.Event == event.AgentStopped {
		if err := a.Stop(key.Tenant, key.Agent, "user"); err != nil {
			return err
		}
		return a.Settle(ctx, key.Tenant, key.Agent) // it may have been started again
	}
	i := a.Local(key.Tenant, key.Agent)
	if i == nil {
		agent, err := a.Store.Agent(ctx, key.Tenant, key.Agent)
		if err != nil || agent == nil {
			return err
		}
		if i, err = a.Instance(ctx, key.Tenant, key.Agent); err != nil {
			return err
		}
		if agent.State != AgentRunning {
			defer func() { _ = a.Stop(key.Tenant, key.Agent, "idle") }()
		}
	}
	if !i.bus.Heard(row.Event) {
		return nil
	}
	p, err := event.NewPayload(string(row.Body))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hearTime)
	defer cancel()
	return i.bus.Emit(ctx, row.Event, p)
}

// Unsettled returns the agents of a tenant that are to have an instance in a host
// that serves and have none, or the reverse.
func (a *Agents) Unsettled(ctx context.Context, tenant string, limit int) ([]string, error) {
	rows, err := a.Store.Agents(ctx, tenant)
	if err != nil {
		return nil, err
	}
	running := map[string]bool{}
	var ids []string
	for _, row := range rows {
		running[row.ID] = row.State == AgentRunning
		if i := a.Local(tenant, row.ID); i == nil && running[row.ID] {
			ids = append(ids, row.ID)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, i := range a.instances {
		if key.Tenant == tenant && !running[key.Agent] && i.ran.Load() {
			ids = append(ids, key.Agent)
		}
	}
	return ids[:min(len(ids), limit)], nil
}

// Settle starts or stops what this process has of an agent, as its state says.
func (a *Agents) Settle(ctx context.Context, tenant, id string) error {
	row, err := a.Store.Agent(ctx, tenant, id)
	if err != nil {
		return err
	}
	if row != nil && row.State == AgentRunning {
		_, err := a.Instance(ctx, tenant, id)
		return err
	}
	if i := a.Local(tenant, id); i == nil || !i.ran.Load() {
		return nil // or the instance only serves a chat with a stopped agent
	}
	return a.Stop(tenant, id, "user")
}

// endWait is how long the end of a conversation waits for the turn that goes on.
const endWait = 15 * time.Second

// End ends a conversation, once no turn goes on in it, and tells the agent's
// plugins why: those of this process, or of the host that serves. It reports
// whether there was an open one.
func (a *Agents) End(ctx context.Context, tenant, session, reason string) (ended bool, err error) {
	row, err := a.Store.Conversation(ctx, tenant, session)
	if err != nil || row == nil || !row.Open {
		return false, err
	}
	key, lease, deadline := Key{tenant, row.Agent}, uuid.NewString(), a.Now().Add(endWait)
	for won := false; !won; {
		err := a.Store.Write(ctx, func(tx Tx) (err error) {
			won, err = tx.TakeTurn(tenant, session, lease, a.Now().UTC(), a.Now().UTC().Add(turnLease))
			return err
		})
		if err != nil {
			return false, err
		}
		if row, err = a.Store.Conversation(ctx, tenant, session); err != nil || row == nil || !row.Open {
			return false, err
		}
		switch {
		case won:
		case a.Now().After(deadline):
			return false, plugin.Errorf(plugin.CodeOverloaded, "a turn of %s is going on; end the conversation again when it is over", session)
		default:
			select {
			case <-ctx.Done():
				return false, plugin.AsError(context.Cause(ctx))
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	i := a.Local(tenant, key.Agent)
	f := fields{"sessionId": session, "reason": reason}
	ended, err = a.close(ctx, tenant, session, func(tx Tx) (bool, error) {
		if ended, err := tx.CloseConversation(tenant, session, a.Now().UTC()); err != nil || !ended {
			return false, err
		}
		if i != nil {
			return true, nil
		}
		return true, a.notice(tx, key, event.SessionClosed, f)
	})
	_ = a.Store.Write(context.WithoutCancel(ctx), func(tx Tx) error { // where it could not be closed, turns go on at once
		_, err := tx.KeepTurn(tenant, session, lease, time.UnixMicro(1))
		return err
	})
	if err != nil || !ended {
		return ended, err
	}
	if i != nil {
		return true, i.happened(ctx, event.SessionClosed, f)
	}
	a.noticed(ctx, key)
	return true, nil
}

// EndedWith notes, in the transaction that deletes an agent, that a
// conversation ended with it, for the host that has an instance of it.
func (a *Agents) EndedWith(tx Tx, tenant, id, session string) error {
	return a.notice(tx, Key{tenant, id}, event.SessionClosed, fields{"sessionId": session, "reason": "user"})
}
