package host

import (
	"context"

	"github.com/mortise-dev/mortise/plugin"
)

// An Offer is a value that a surface may complete an argument with, and what it is of.
type Offer struct{ Value, About string }

// mostOffers is how many are offered.
const mostOffers = 50

// Offers are the newest of what there is, for a surface that completes what is typed. Of
// agents, approvals and feeds there are none but for the administrator.
type Offers struct{ api API }

// Offers returns what a surface may complete arguments with.
func (a API) Offers() Offers { return Offers{a} }

func offersOf[T any](rows []T, err error, offer func(T) Offer) ([]Offer, error) {
	all := make([]Offer, len(rows))
	for i, row := range rows {
		all[i] = offer(row)
	}
	return all, err
}

// Calls returns the last calls.
func (o Offers) Calls(ctx context.Context) ([]Offer, error) {
	rows, _, err := o.api.Calls().Page(ctx, CallFilter{Limit: mostOffers})
	return offersOf(rows, err, func(r CallRow) Offer { return Offer{r.ID, r.Operation + " " + string(StatusOf(r.State))} })
}

// Plans returns the last plans.
func (o Offers) Plans(ctx context.Context) ([]Offer, error) {
	views, _, err := o.api.Plans().Page(ctx, PlanFilter{Limit: mostOffers})
	return offersOf(views, err, func(v Plan) Offer { return Offer{v.ID, v.Agent + " " + string(v.State)} })
}

// stored returns the store to the administrator; to others, that there is nothing.
func (o Offers) stored() (Reader, string, error) {
	if !o.api.Unbounded() {
		return nil, "", plugin.Errorf(plugin.CodeNotFound, "only the administrator is offered these")
	}
	g := o.api.host.parts.Guard
	return g.Store, g.Tenant, nil
}

// Approvals returns the approvals that are open.
func (o Offers) Approvals(ctx context.Context) ([]Offer, error) {
	st, tenant, err := o.stored()
	if err != nil {
		return nil, err
	}
	rows, err := st.Approvals(ctx, ApprovalFilter{Tenant: tenant, State: ApprovalOpen, Limit: mostOffers})
	return offersOf(rows, err, func(r ApprovalRow) Offer { return Offer{r.ID, r.Why} })
}

// Feeds returns the last feeds.
func (o Offers) Feeds(ctx context.Context) ([]Offer, error) {
	st, tenant, err := o.stored()
	if err != nil {
		return nil, err
	}
	rows, err := st.Schedules(ctx, ScheduleFilter{Tenant: tenant, Limit: mostOffers})
	return offersOf(rows, err, func(r ScheduleRow) Offer { return Offer{r.ID, r.Operation + " " + r.Spec} })
}

// Agents returns the agents.
func (o Offers) Agents(ctx context.Context) ([]Offer, error) {
	st, tenant, err := o.stored()
	if err != nil {
		return nil, err
	}
	rows, err := st.Agents(ctx, tenant)
	return offersOf(rows, err, func(r agentRow) Offer { return Offer{r.ID, string(r.State) + " " + r.Prompt} })
}

// Memories returns the keys of what an agent remembers.
func (o Offers) Memories(ctx context.Context, agent string) ([]Offer, error) {
	st, tenant, err := o.stored()
	if err != nil {
		return nil, err
	}
	rows, err := st.Memories(ctx, tenant, agent, mostOffers)
	return offersOf(rows, err, func(r memoryRow) Offer { return Offer{r.Key, r.Content} })
}

// Conversations returns the sessions of the last conversations with an agent.
func (o Offers) Conversations(ctx context.Context, agent string) ([]Offer, error) {
	st, tenant, err := o.stored()
	if err != nil {
		return nil, err
	}
	rows, err := st.Conversations(ctx, ConversationFilter{Tenant: tenant, Agent: agent, Limit: mostOffers})
	return offersOf(rows, err, func(r conversationRow) Offer { return Offer{r.SessionID, r.Channel + " " + r.Peer} })
}
