package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/agent/schedule"
	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/service/llm"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/internal/store/job"
	"github.com/mortise-dev/mortise/plugin"
)

// What agents have, and what a conversation with one tells.
type (
	AgentSettings = agent.Settings
	LeftOut       = agent.LeftOut
	Audience      = agent.Audience
	ToolUse       = agent.Use
	ToolReply     = agent.Reply
	TurnAnswer    = agent.Answer
	AgentTool     = agent.Tool
)

// MaxMemories is how much an agent remembers, at most.
const MaxMemories = agent.MaxMemories

// MaxMessage is how many bytes a message to an agent may have.
const MaxMessage = agent.MaxText

// ParseAgentSettings reads the settings of an agent.
func ParseAgentSettings(raw []byte) (agent.Settings, error) { return agent.ParseSettings(raw) }

// AgentsPlugin is what stands for the agents themselves where policy is asked who
// may configure them.
const AgentsPlugin = "mortise.agents"

// maxAgents bounds the agents of a tenant.
const maxAgents = 1000

// An Agent is an agent as people see it.
type Agent struct {
	ID        string         `json:"id"`
	State     agentState     `json:"state"`
	Tier      string         `json:"tier,omitempty"`   // of models; the host's choice where it is empty
	Prompt    string         `json:"prompt,omitempty"` // the usual one where it is empty
	Settings  agent.Settings `json:"settings"`
	CreatedBy string         `json:"created_by"`
	CreatedAt time.Time      `json:"created_at"`
	UpdatedAt time.Time      `json:"updated_at"`
}

// A NewAgent is the specification of an agent to create.
type NewAgent struct {
	ID, Tier, Prompt string
	Settings         agent.Settings
}

// An AgentChange is what is to be another; nil leaves it as it is.
type AgentChange struct {
	Tier, Prompt *string
	Settings     *agent.Settings
}

// Agents are the agents of the host's tenant, as one principal may see and change
// them: those may who may configure mortise.agents. What is refused is on the
// record, as is each change.
type Agents struct {
	g         *Guard
	by        plugin.Principal
	caller    *Caller // nil for the user of this process
	asker     func() string
	engine    *agent.Agents
	registry  *registry.Registry
	schedules *schedule.Engine
	sessions  *session.Sessions
	plugins   Plugins
	feeds     Feeds
	conversing
	outside
}

// An outside is what agents need of parts that only the whole host has.
type outside struct {
	wake  func(ctx context.Context, kind, tenant, id string)             // something that can go on
	offer func(ctx context.Context, ask agent.Ask) ([]agent.Tool, error) // what an agent's model may use
	post  func(ctx context.Context, tenant, agent string) (bool, error)  // the first event that waits for a webhook
}

// List returns all agents, by id.
func (r Agents) List(ctx context.Context) ([]Agent, error) {
	if err := r.may(ctx, "list", "*"); err != nil {
		return nil, err
	}
	rows, err := r.g.Store.Agents(ctx, r.g.Tenant)
	if err != nil {
		return nil, err
	}
	all := make([]Agent, len(rows))
	for i := range rows {
		all[i] = agentOf(&rows[i])
	}
	return all, nil
}

// Create makes an agent, which is stopped and has what all agents have.
func (r Agents) Create(ctx context.Context, n NewAgent) (Agent, error) {
	if err := r.may(ctx, "create", n.ID); err != nil {
		return Agent{}, err
	}
	if err := agent.CheckID(n.ID); err != nil {
		return Agent{}, err
	}
	if saysSenders(nil, n.Settings.Channels) {
		if err := r.g.maySetSenders(ctx, r.by, r.caller, r.use("set the channels of", n.ID)); err != nil {
			return Agent{}, err
		}
	}
	now := r.g.moment()
	row := agentRow{
		Tenant: r.g.Tenant, ID: n.ID, CreatedBy: principal.Name(r.by), CreatedAt: now, UpdatedAt: now,
		Tier: n.Tier, Prompt: n.Prompt, Settings: n.Settings.Encode(), State: agentStopped,
	}
	if err := checkAgent(&row); err != nil {
		return Agent{}, err
	}
	err := r.g.Store.Write(ctx, func(tx Tx) error {
		all, err := tx.Agents(ctx, row.Tenant)
		if err != nil {
			return err
		}
		if len(all) >= maxAgents {
			return plugin.Errorf(plugin.CodeLimitExceeded, "there are %d agents, and there can be no more; 'mortise agents delete' takes one away", len(all))
		}
		fresh, err := tx.InsertAgent(row)
		if err != nil {
			return err
		}
		if !fresh {
			return plugin.Errorf(plugin.CodeInvalidInput, "there is an agent %s already; 'mortise agents set %s' changes it", n.ID, n.ID)
		}
		return r.note(tx, plugin.EntryAgentCreated, &row, nil)
	})
	return agentOf(&row), err
}

// Change makes an agent another. Conversations that go on see it at their next
// turn.
func (r Agents) Change(ctx context.Context, id string, c AgentChange) (Agent, error) {
	maySet := r.g.right(IdentitiesPlugin, r.by).Verdict == plugin.Allow && r.caller.letsIn()
	a, err := r.change(ctx, "change", id, func(row *agentRow) (plugin.EntryKind, error) {
		if c.Settings != nil && !maySet && saysSenders(agentOf(row).Settings.Channels, c.Settings.Channels) {
			return "", errSaysSenders
		}
		if c.Tier != nil {
			row.Tier = *c.Tier
		}
		if c.Prompt != nil {
			row.Prompt = *c.Prompt
		}
		if c.Settings != nil {
			row.Settings = c.Settings.Encode()
		}
		return plugin.EntryAgentChanged, checkAgent(row)
	})
	if errors.Is(err, errSaysSenders) {
		return Agent{}, orElse(r.g.maySetSenders(ctx, r.by, r.caller, r.use("set the channels of", id)), err)
	}
	return a, err
}

// Start lets an agent take messages of its channels and the times of its
// schedules. One that is started stays so.
func (r Agents) Start(ctx context.Context, id string) (Agent, error) {
	a, err := r.turn(ctx, "start", id, agentRunning, plugin.EntryAgentStarted)
	if err == nil {
		r.wake(ctx, job.Agent, r.g.Tenant, id)
	}
	return a, err
}

// Stop lets an agent take no more of them. A turn that was begun goes on.
func (r Agents) Stop(ctx context.Context, id string) (Agent, error) {
	a, err := r.turn(ctx, "stop", id, agentStopped, plugin.EntryAgentStopped)
	if err == nil {
		r.engine.Notify(ctx, r.g.Tenant, id)
		err = r.engine.Stop(r.g.Tenant, id, "user")
	}
	return a, err
}

func (r Agents) turn(ctx context.Context, what, id string, to agentState, kind plugin.EntryKind) (Agent, error) {
	return r.change(ctx, what, id, func(row *agentRow) (plugin.EntryKind, error) {
		if row.State == to {
			return "", nil
		}
		row.State = to
		return kind, nil
	})
}

// change changes an agent, together with its entry. do returns the entry's kind,
// or none where nothing is another.
func (r Agents) change(ctx context.Context, what, id string, do func(row *agentRow) (plugin.EntryKind, error)) (a Agent, err error) {
	if err := r.may(ctx, what, id); err != nil {
		return a, err
	}
	err = r.g.Store.Write(ctx, func(tx Tx) error {
		row, err := r.row(ctx, tx, id)
		if err != nil {
			return err
		}
		kind, err := do(row)
		a = agentOf(row)
		if err != nil || kind == "" {
			return err
		}
		row.UpdatedAt = r.g.moment()
		a = agentOf(row)
		if _, err := tx.UpdateAgent(*row); err != nil {
			return err
		}
		if kind == plugin.EntryAgentStopped && r.conversing.elsewhere() {
			if err := r.engine.Stopped(tx, row.Tenant, id); err != nil {
				return err
			}
		}
		return r.note(tx, kind, row, nil)
	})
	return a, err
}

// Delete takes an agent away, with what it remembers, what it was given and its
// schedules. Its conversations end; what was said in them stays.
func (r Agents) Delete(ctx context.Context, id string) (a Agent, err error) {
	if err := r.may(ctx, "delete", id); err != nil {
		return a, err
	}
	tenant := r.g.Tenant
	row, err := r.row(ctx, r.g.Store, id)
	if err != nil {
		return a, err
	}
	if err := r.unschedule(ctx, id); err != nil {
		return a, err
	}
	open, err := r.g.Store.Conversations(ctx, ConversationFilter{Tenant: tenant, Agent: id, Open: true, Limit: 1})
	if err == nil && len(open) > 0 {
		err = r.conversing.hears(ctx, id)
	}
	if err != nil {
		return a, err
	}
	ended := []string{}
	err = r.g.Store.Write(ctx, func(tx Tx) error {
		if row, err = r.row(ctx, tx, id); err != nil {
			return err
		}
		open, err := tx.Conversations(ctx, ConversationFilter{Tenant: tenant, Agent: id, Open: true, Limit: maxConversations})
		if err != nil {
			return err
		}
		ended = ended[:0]
		for _, c := range open {
			if _, err := tx.CloseConversation(tenant, c.SessionID, r.g.moment()); err != nil {
				return err
			}
			ended = append(ended, c.SessionID)
		}
		if _, err := tx.DeleteAgent(tenant, id); err != nil {
			return err
		}
		for _, session := range ended { // after the agent, whose outbox goes with it
			if err := r.engine.EndedWith(tx, tenant, id, session); err != nil {
				return err
			}
		}
		if r.conversing.elsewhere() {
			if err := r.engine.Stopped(tx, tenant, id); err != nil {
				return err
			}
		}
		return r.note(tx, plugin.EntryAgentDeleted, row, map[string]any{"conversations": len(ended)})
	})
	if err != nil {
		return a, err
	}
	for _, session := range ended {
		if err := r.sessions.Close(ctx, tenant, session); err != nil && plugin.CodeOf(err) != plugin.CodeNotFound {
			return agentOf(row), err
		}
	}
	r.engine.Notify(ctx, tenant, id)
	if r.engine.Local(tenant, id) != nil { // this process has its plugins: they hear the same now
		for range ended {
			if _, err := r.post(ctx, tenant, id); err != nil {
				return agentOf(row), err
			}
		}
	}
	return agentOf(row), r.engine.Stop(tenant, id, "user")
}

// maxConversations bounds the conversations that are looked at together.
const maxConversations = 10_000

// unschedule deletes the schedules by which an agent is asked.
func (r Agents) unschedule(ctx context.Context, id string) error {
	all, err := r.schedules.List(ctx, r.g.Tenant)
	if err != nil {
		return err
	}
	for _, s := range all {
		var in struct{ Agent string }
		if s.Operation != agent.TurnOperation || json.Unmarshal(s.Input, &in) != nil || in.Agent != id {
			continue
		}
		if _, err := r.schedules.Delete(ctx, r.g.Tenant, s.ID, r.feeds.noting(plugin.EntryFeedDeleted)); err != nil && plugin.CodeOf(err) != plugin.CodeNotFound {
			return err
		}
	}
	return nil
}

// Remember has an agent remember something, in place of what it had under the
// key.
func (r Agents) Remember(ctx context.Context, id, key, text string) error {
	if err := r.mayOf(ctx, "change the memory of", id); err != nil {
		return err
	}
	if err := r.conversing.hears(ctx, id); err != nil {
		return err
	}
	return r.engine.Memory(r.g.Tenant, id).Upsert(ctx, "", key, text, nil, func(tx Tx) error {
		row, err := r.row(ctx, tx, id)
		if err != nil {
			return err
		}
		return r.note(tx, plugin.EntryAgentChanged, row, map[string]any{"remembered": key})
	})
}

// Forget takes something from what an agent remembers.
func (r Agents) Forget(ctx context.Context, id, key string) error {
	if err := r.mayOf(ctx, "change the memory of", id); err != nil {
		return err
	}
	found, err := r.engine.Memory(r.g.Tenant, id).Forget(ctx, key, func(tx Tx) error {
		row, err := r.row(ctx, tx, id)
		if err != nil {
			return err
		}
		return r.note(tx, plugin.EntryAgentChanged, row, map[string]any{"forgot": key})
	})
	if err == nil && !found {
		err = plugin.Errorf(plugin.CodeNotFound, "agent %s remembers nothing under %.80q; 'mortise agents memory %s' shows what it does", id, key, id)
	}
	return err
}

// Schedule has an agent asked at times, in the name of who wants that.
func (r Agents) Schedule(ctx context.Context, id, prompt, spec, zone string) (Feed, error) {
	if err := r.mayOf(ctx, "schedule", id); err != nil {
		return Feed{}, err
	}
	return r.feeds.ofTurn(ctx, id, prompt, spec, zone)
}

// may refuses an unauthorized principal, and for changes an old sign-in, and records the
// refusal. what is the verb.
func (r Agents) may(ctx context.Context, what, id string) error {
	err := r.g.authorise(ctx, r.by, r.g.part(AgentsPlugin), r.use(what, id))
	if err != nil || what == "list" || strings.HasPrefix(what, "see") {
		return err
	}
	return r.g.recent(ctx, r.caller, r.use(what, id))
}

// saysSenders reports whether an agent gets a channel, or one that is proved by another
// secret. That takes the right to link identities: a link counts for a channel's name, so
// who names one and its secret says who its senders are.
func saysSenders(had, has map[string]agent.Channel) bool {
	for name, c := range has {
		if was, found := had[name]; !found || was.Scheme != c.Scheme || was.Secret != c.Secret {
			return true
		}
	}
	return false
}

var errSaysSenders = errors.New("the channels say who their senders are")

// use is what is done to an agent, or to all of them where id is *.
func (r Agents) use(what, id string) use {
	name := fmt.Sprintf("agent %.80s", id)
	if id == "*" {
		name = "agents"
	}
	return use{plugin.EntryAgentRefused, id, what, what + " " + name}
}

// mayOf is may, for an agent that must be there.
func (r Agents) mayOf(ctx context.Context, what, id string) error {
	if err := r.may(ctx, what, id); err != nil {
		return err
	}
	_, err := r.row(ctx, r.g.Store, id)
	return err
}

// row returns an agent as it is kept.
func (r Agents) row(ctx context.Context, from Reader, id string) (*agentRow, error) {
	row, err := from.Agent(ctx, r.g.Tenant, id)
	if err == nil && row == nil {
		err = plugin.Errorf(plugin.CodeNotFound, "there is no agent %.80s; 'mortise agents list' shows those there are", id)
	}
	return row, err
}

// note appends the entry of a change: what the agent is then, its prompt by its
// hash.
func (r Agents) note(tx Tx, kind plugin.EntryKind, row *agentRow, more map[string]any) error {
	body := map[string]any{"state": row.State, "tier": row.Tier, "settings": json.RawMessage(row.Settings)}
	if row.Prompt != "" {
		hash, err := tx.PutBody(row.Tenant, []byte(row.Prompt), time.Time{})
		if err != nil {
			return err
		}
		if err := tx.NameBody(entryBodyRow{Tenant: row.Tenant, Hash: hash, Subject: "agent:" + row.ID}); err != nil {
			return err
		}
		body["prompt_hash"] = hash
	}
	for name, value := range more {
		body[name] = value
	}
	return r.g.Note(tx, r.by, kind, row.ID, body)
}

func agentOf(row *agentRow) Agent {
	settings, _ := agent.ParseSettings([]byte(row.Settings)) // they were checked when they were kept
	return Agent{
		ID: row.ID, State: row.State, Tier: row.Tier, Prompt: row.Prompt, Settings: settings,
		CreatedBy: row.CreatedBy, CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt,
	}
}

// checkAgent refuses what cannot be kept of an agent.
func checkAgent(row *agentRow) error {
	if tiers := []llm.Tier{"", llm.Light, llm.Heavy}; !slices.Contains(tiers, llm.Tier(row.Tier)) {
		return plugin.Errorf(plugin.CodeInvalidInput, "there is no tier %.40q; the tiers of models are %s and %s", row.Tier, llm.Light, llm.Heavy)
	}
	if err := agent.CheckPrompt(row.Prompt); err != nil {
		return err
	}
	_, err := agent.ParseSettings([]byte(row.Settings))
	return err
}

// refOf splits a plugin reference into the name and the version constraint.
func refOf(ref string) (name, versions string) {
	name, versions, _ = strings.Cut(ref, "@")
	return name, versions
}
