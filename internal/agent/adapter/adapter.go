// Package adapter turns an external event into an intent of a principal known
// here.
//
// [Inbound.Deliver] gives an event to an adapter, which only translates it: it
// reports the intent and the identity of the user in the other system. The host
// decides which principal that is here, which scopes apply, and which agent is
// asked. From then on the intent is one of that principal's plans, in which the
// adapter acts: policy must allow both of them every part of it.
package adapter

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/agent/plan"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/plugin"
)

// A Registry knows every plugin.
type Registry interface {
	// Resolve returns the one operation of one version that a reference means.
	Resolve(ctx context.Context, ref string) (*plugin.Target, error)
	// ResolveFor is Resolve for one who sees some operations of each plugin.
	ResolveFor(ctx context.Context, ref string, sees func(m *plugin.Manifest) (operations []*plugin.Operation, whole bool)) (*plugin.Target, error)
}

// A Policy knows which operations of a plugin a caller may see.
type Policy interface {
	Visible(m *plugin.Manifest, call *plugin.Call) (operations []*plugin.Operation, whole bool)
}

// A Kernel runs calls to their end.
type Kernel interface {
	Run(ctx context.Context, call plugin.Call) (plugin.Result, error)
}

// Plans makes plans of what agents propose.
type Plans interface {
	Submit(ctx context.Context, s plan.Submission) (*plan.View, error)
}

// Options are the parts of an [Inbound]. All are needed.
type Options struct {
	Registry Registry
	Policy   Policy
	Kernel   Kernel
	Plans    Plans
	Store    Store

	Agent func(intent string) (ref string, found bool)   // which agent an intent goes to
	Known func(tenant string, who plugin.Principal) bool // whether the configuration names the principal
}

// An Inbound takes events. It is safe for concurrent use.
type Inbound struct{ Options }

// New returns an Inbound made of these parts.
func New(o Options) *Inbound { return &Inbound{o} }

// A Delivery is an event for an adapter.
type Delivery struct {
	Tenant  string
	Adapter string             // a reference to the adapter's operation
	Event   json.RawMessage    // as the other system sent it
	By      plugin.Principal   // who delivers it; it gives no rights to what comes of it
	Asker   string             // who that is known to be, see [plugin.Call]
	Origin  plugin.Origin      // the surface it came in by
	Observe func(plugin.Event) // hears what the adapter and the agent say; may be nil
}

// Deliver makes a plan of an event, as [plan.Engine.Submit] does. The same event
// delivered again, by the key that the adapter gives it, is the same plan.
//
// Where policy requires approval of the adapter's own call, Deliver waits
// for it until ctx ends. Every refusal leaves an entry: of the adapter's call, of
// the plan, or delivery.refused.
func (in *Inbound) Deliver(ctx context.Context, d Delivery) (*plan.View, error) {
	res, err := in.translate(ctx, &d)
	if err != nil {
		return nil, err
	}
	req, err := ParseRequest(res.Data)
	if err != nil {
		return nil, in.refused(ctx, &d, &res, req, named(res.Operation, err))
	}
	who, linker, err := in.principal(ctx, d.Tenant, pluginOf(res.Operation), req.Principal)
	if err != nil {
		return nil, in.refused(ctx, &d, &res, req, err)
	}
	agent, found := in.Agent(req.Intent.Type)
	if !found {
		return nil, in.refused(ctx, &d, &res, req, plugin.Errorf(plugin.CodeNotFound,
			"no agent is asked about %s; add intents: {%q: AGENT} to mortise.yaml", req.Intent.Type, req.Intent.Type))
	}
	input, err := req.input()
	if err != nil {
		return nil, err
	}
	name := pluginOf(res.Operation)
	asker := approval.Linked("link:"+name+"/"+req.Principal.Provider+"/"+req.Principal.ExternalID, linker, who.Member())
	return in.Plans.Submit(ctx, plan.Submission{
		Tenant: d.Tenant, Principal: who, Actor: "service:" + name, Asker: approval.Delivered(asker, d.Asker), Parent: res.CallID, Agent: agent, Input: input,
		Key: req.key(res.Operation), Labels: plugin.Labels(res.Labels, []string{plugin.Untrusted}),
		Origin: plugin.OriginAdapter, Correlation: req.correlation(res.Correlation), Observe: d.Observe,
	})
}

// translate lets the adapter say what the event means.
func (in *Inbound) translate(ctx context.Context, d *Delivery) (plugin.Result, error) {
	t, err := in.Registry.Resolve(ctx, d.Adapter)
	if err == nil && t.Operation.Kind != plugin.Adapter {
		res := plugin.Result{Operation: t.Name(), Version: t.Manifest.Version}
		err := in.refused(ctx, d, &res, nil, plugin.Errorf(plugin.CodeInvalidInput,
			"%s is of kind %s; events are delivered to adapters, and 'mortise run' calls all others", t.Name(), t.Operation.Kind))
		if _, hidden := in.Registry.ResolveFor(ctx, d.Adapter, in.sees(d)); hidden != nil { // the record has the reason
			err = hidden
		}
		return res, err
	}
	res, err := in.Kernel.Run(ctx, plugin.Call{
		Tenant: d.Tenant, Principal: d.By, Asker: d.Asker, Origin: d.Origin, Labels: []string{plugin.Untrusted},
		Operation: d.Adapter, Input: d.Event, Observe: d.Observe,
	})
	if err == nil && res.Status != plugin.Succeeded {
		err = &plugin.Error{Code: plugin.CodeUnavailable, Retryable: true,
			Message: "the adapter's call " + res.CallID + " has not ended (" + string(res.Status) + "), and nothing was submitted; deliver the event again"}
	}
	return res, err
}

// sees returns what who delivers an event may see.
func (in *Inbound) sees(d *Delivery) func(m *plugin.Manifest) ([]*plugin.Operation, bool) {
	return func(m *plugin.Manifest) ([]*plugin.Operation, bool) {
		return in.Policy.Visible(m, &plugin.Call{Tenant: d.Tenant, Principal: d.By, Origin: d.Origin})
	}
}

// refused puts on record that nothing came of an event, and returns why.
func (in *Inbound) refused(ctx context.Context, d *Delivery, res *plugin.Result, req *Request, why error) error {
	failure := plugin.AsError(why)
	body := map[string]any{"adapter": res.Operation, "version": res.Version, "call": res.CallID, "code": failure.Code, "message": failure.Message}
	if req != nil {
		body["intent"], body["provider"], body["external_id"] = req.Intent.Type, req.Principal.Provider, req.Principal.ExternalID
	}
	raw, err := json2.Marshal(body, json2.Deterministic(true))
	if err != nil {
		return err
	}
	err = in.Store.Write(context.WithoutCancel(ctx), func(tx Tx) error {
		tx.Append(plugin.Entry{
			At: time.Now().UTC(), Tenant: d.Tenant, Kind: plugin.EntryDeliveryRefused, Subject: res.CallID, Principal: d.By.Member(), Body: json.RawMessage(raw),
		})
		return nil
	})
	if err != nil {
		return err
	}
	return why
}

// pluginOf returns the plugin of an operation.
func pluginOf(operation string) string {
	name, _, _ := strings.Cut(operation, "/")
	return name
}

// named puts what an error is about in front of its message.
func named(what string, err error) error {
	e := *plugin.AsError(err)
	if e.Code != plugin.CodeInternal {
		e.Message = what + ": " + e.Message
	}
	return &e
}
