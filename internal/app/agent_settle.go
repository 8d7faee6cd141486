package app

import (
	"context"

	"github.com/mortise-dev/mortise/internal/agent/worker"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/job"
	"github.com/mortise-dev/mortise/plugin"
)

// unsettledAgents are those that were started, and have no instance in this host
// yet, or were stopped, here or in another process, and still have one. So their
// plugins hear agent.started@v1 and agent.stopped@v1 when that happens.
type unsettledAgents struct{ app *App }

var _ worker.Sweeper = unsettledAgents{}

// Kind implements [worker.Sweeper].
func (unsettledAgents) Kind() string { return job.Agent }

// Due implements [worker.Sweeper].
func (u unsettledAgents) Due(ctx context.Context, limit int) ([]worker.Item, error) {
	ids, err := u.app.Agents.Unsettled(ctx, u.app.Config.Tenant, limit)
	items := make([]worker.Item, len(ids))
	for i, id := range ids {
		items[i] = worker.Item{Kind: job.Agent, Tenant: u.app.Config.Tenant, ID: id}
	}
	return items, err
}

// Do implements [worker.Sweeper].
func (u unsettledAgents) Do(ctx context.Context, item worker.Item) error {
	return u.app.Agents.Settle(ctx, item.Tenant, item.ID)
}

// hears makes sure that the next event of an agent has a listener: the serving
// host if there may be one, else an instance in this process.
func (a *App) hears(ctx context.Context, id string) error {
	if a.elsewhere() {
		return nil
	}
	_, err := a.Agents.Instance(ctx, a.Config.Tenant, id)
	return err
}

// elsewhere reports whether the host that serves may be another process.
func (a *App) elsewhere() bool { return a.Config.Database != "" || a.served() }

// served reports whether a process serves the data directory.
func (a *App) served() bool {
	pid, _ := Serving(a.Home)
	return pid != 0
}

// EndSession lets nothing more be added to a session. One that is a conversation
// with an agent ends as such, and the agent's plugins hear of it.
func (a *App) EndSession(ctx context.Context, id string) error {
	row, err := a.conversationIn(ctx, id)
	if err != nil {
		return err
	}
	if row == nil || !row.Open {
		return a.Sessions.Close(ctx, a.Config.Tenant, id)
	}
	return a.endConversation(ctx, row)
}

// DeleteSession deletes a session; a conversation ends before.
func (a *App) DeleteSession(ctx context.Context, id string) error {
	row, err := a.conversationIn(ctx, id)
	if err == nil && row != nil && row.Open {
		err = a.endConversation(ctx, row)
	}
	if err != nil {
		return err
	}
	return a.Sessions.Delete(ctx, a.Config.Tenant, id)
}

// conversationIn returns the conversation that a session is, nil where it is none.
func (a *App) conversationIn(ctx context.Context, id string) (*store.ConversationRow, error) {
	s, err := a.Sessions.Get(ctx, a.Config.Tenant, id)
	if err != nil {
		return nil, err
	}
	return a.Store.Conversation(ctx, a.Config.Tenant, s.ID)
}

func (a *App) endConversation(ctx context.Context, row *store.ConversationRow) error {
	if err := a.hears(ctx, row.Agent); err != nil && plugin.CodeOf(err) != plugin.CodeNotFound {
		return err
	}
	_, err := a.Agents.End(ctx, row.Tenant, row.SessionID, "user")
	return err
}

// End ends a conversation with an agent: the one that is named, by its id or a
// prefix of it, else the principal's newest open conversation at the terminal.
// A principal that may configure mortise.agents may end any; others, only their
// own.
func (r Roster) End(ctx context.Context, id, session string) (Conversation, error) {
	var row *store.ConversationRow
	var err error
	if session == "" {
		if err := r.mayTalk(ctx, id); err != nil {
			return Conversation{}, err
		}
		source := r.source()
		rows, err := r.app.Store.Conversations(ctx, store.ConversationFilter{
			Tenant: r.app.Config.Tenant, Agent: id, Channel: source.Channel, Peer: source.Peer, Open: true, Limit: 1,
		})
		if err != nil {
			return Conversation{}, err
		}
		if len(rows) == 0 {
			return Conversation{}, plugin.Errorf(plugin.CodeNotFound, "you have no open conversation with agent %.80s; 'mortise agents conversations %s' shows those it has", id, id)
		}
		row = &rows[0]
	} else {
		if err := r.mayTalk(ctx, id); err != nil {
			return Conversation{}, err
		}
		if row, err = r.conversation(ctx, "end conversations of", id, session); err != nil {
			return Conversation{}, err
		}
	}
	if !row.Open {
		return conversationOf(row), plugin.Errorf(plugin.CodeDisabled, "the conversation %s has ended already", row.SessionID)
	}
	if err := r.app.endConversation(ctx, row); err != nil {
		return conversationOf(row), err
	}
	if row, err = r.app.Store.Conversation(ctx, row.Tenant, row.SessionID); err != nil || row == nil {
		return Conversation{}, err
	}
	return conversationOf(row), nil
}
