package client

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/plugin"
)

// Adapters implements [Host].
func (r *remote) Adapters() Adapters { return adapters{r} }

type adapters struct{ *remote }

// Deliver implements [Adapters].
func (a adapters) Deliver(ctx context.Context, n host.NewDelivery) (*host.Plan, error) {
	observe := n.Observe
	if observe == nil {
		observe = func(plugin.Event) {}
	}
	var out submission
	err := a.stream(ctx, asking{path: "adapters:deliver", body: rest.DeliverySpec{Adapter: n.Adapter, Event: n.Event}}, func(event string, data jsontext.Value) error {
		observe(toldEvent(event, data))
		return nil
	}, &out)
	if err != nil {
		return nil, err
	}
	return a.Plans().(plans).submitted(&out)
}
