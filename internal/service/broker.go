// Package service is what a plugin may ask of the host while it works on a
// call: one broker for every runner, one file for each service.
//
// A plugin gets the services that its manifest asks for and no others. What a
// service does is done by the host, in the host's process, for exactly one call.
package service

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/plugin"
)

// Names lists the services that exist, as manifests ask for them.
func Names() []string { return []string{cacheName} }

// A Broker answers what plugins ask. It is safe for concurrent use.
type Broker struct {
	cache *cache
	// Call runs an operation that a plugin asks for. It must be set before the
	// first call.
	Call func(ctx context.Context, call plugin.Call) (plugin.Result, error)
}

// New returns a broker.
func New() *Broker { return &Broker{cache: newCache()} }

// For returns what one call is granted.
func (b *Broker) For(target *plugin.Target, call *plugin.Call) plugin.Services {
	return &grant{broker: b, target: target, call: call}
}

// A grant is the services of one call.
type grant struct {
	broker *Broker
	target *plugin.Target
	call   *plugin.Call
}

// A method answers one kind of request.
type method func(g *grant, ctx context.Context, args json.RawMessage) (any, error)

var methods = map[string]method{
	"cache.get":    cacheGet,
	"cache.set":    cacheSet,
	"cache.delete": cacheDelete,
}

// Serve answers one request of the plugin, such as "cache.get".
func (g *grant) Serve(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	if name == operationsCall {
		return encode(callOperation(g, ctx, args))
	}
	service, _, _ := strings.Cut(name, ".")
	if !slices.Contains(g.target.Manifest.Capabilities, service) {
		return nil, plugin.Errorf(plugin.CodeServiceDenied, "%s was not granted the service %.60s", g.target.Name(), service)
	}
	m, exists := methods[name]
	if !exists {
		return nil, plugin.Errorf(plugin.CodeNotFound, "there is no service method %.120s", name)
	}
	return encode(m(g, ctx, args))
}

func encode(value any, err error) (json.RawMessage, error) {
	if err != nil {
		return nil, err
	}
	raw, err := json2.Marshal(value)
	return json.RawMessage(raw), err
}

// decode reads the arguments of a method.
func decode(name string, args json.RawMessage, into any) error {
	if err := json2.Unmarshal(args, into, json2.RejectUnknownMembers(true)); err != nil {
		return plugin.Errorf(plugin.CodeInvalidInput, "%s: %w", name, err)
	}
	return nil
}

// nothing is the value of a method that only does.
type nothing struct{}
