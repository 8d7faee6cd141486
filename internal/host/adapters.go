package host

import (
	"context"
	"encoding/json"

	"github.com/mortise-dev/mortise/plugin"
)

// Adapters are what takes in events from outside, for one principal who delivers them. That
// gives no rights to what comes of an event: an identity link says whose it is.
type Adapters struct {
	g       *Guard
	by      plugin.Principal
	caller  *Caller // nil for the user of this process
	asker   func() string
	deliver func(ctx context.Context, d Delivery) (*Plan, error)
}

// A NewDelivery is an event for an adapter.
type NewDelivery struct {
	Adapter string          // an operation of kind adapter: plugin/operation@versions
	Event   json.RawMessage // as the other system sent it
	Origin  plugin.Origin
	Observe func(plugin.Event) // hears what the adapter and the agent say; nil for none
}

// Deliver gives an event to an adapter, and returns the plan of what it means. The same event
// again is the same plan. A plan may run any operation, so that a token with a list of
// operations delivers none: policy_denied. Other errors are those of the call of the adapter.
func (a Adapters) Deliver(ctx context.Context, n NewDelivery) (*Plan, error) {
	if err := a.g.covered(ctx, a.caller, ScopeRun, "deliver", "adapters", ""); err != nil {
		return nil, err
	}
	return a.deliver(ctx, Delivery{Tenant: a.g.Tenant, Adapter: n.Adapter, Event: n.Event, By: a.by, Asker: a.asker(), Origin: n.Origin, Observe: n.Observe})
}
