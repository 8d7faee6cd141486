package rest

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// A DeliverySpec is an event for an adapter.
type DeliverySpec struct {
	Adapter string          `json:"adapter" minLength:"1" maxLength:"320" doc:"An operation of kind adapter: plugin/operation, or plugin/operation@versions."`
	Event   json.RawMessage `json:"event" doc:"As the other system sent it: a JSON object."`
}

func (r *registry) adapters() {
	add(r, route{
		method: "POST", path: "adapters:deliver", id: "deliver-event", scope: host.ScopeRun, stays: true, told: []reflect.Type{reflect.TypeFor[PlanSubmitted](), reflect.TypeFor[Problem]()},
		about: "Give an event to an adapter, and make a plan of what it means. Who delivers gives no rights to the plan; the same event again is the same plan",
	}, r.deliver)
}

func (r *registry) deliver(ctx context.Context, q *request, in *struct{ Body DeliverySpec }) (*submission, error) {
	ctx, cancel := r.staying(ctx, q)
	defer cancel()
	return submitted(q.api.Adapters().Deliver(ctx, host.NewDelivery{Adapter: in.Body.Adapter, Event: in.Body.Event, Origin: plugin.OriginAPI, Observe: q.hears(false)}))
}
