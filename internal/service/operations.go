package service

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/mortise-dev/mortise/plugin"
)

const operationsCall = "operations.call"

// operationTask runs an operation that the plugin declared under
// requires.tools, as a call of its own with the same principal: judged,
// recorded and bounded like any other.
func operationTask(g *grant, args json.RawMessage) (task, error) {
	var in struct {
		Call      string          `json:"call"` // the token; already used to find this grant
		Operation string          `json:"operation"`
		Input     json.RawMessage `json:"input"`
		Key       string          `json:"key"`
	}
	if err := decode(operationsCall, args, &in); err != nil {
		return task{}, err
	}
	ref, declared := declaredTool(g.target.Manifest.Requires.Tools, in.Operation)
	if !declared {
		return task{}, plugin.Errorf(plugin.CodeServiceDenied, "%s does not declare %.120s under requires.tools", g.target.Name(), in.Operation)
	}
	if g.call.Depth >= plugin.MaxDepth {
		return task{}, plugin.Errorf(plugin.CodeLimitExceeded, "calls are nested %d deep already", plugin.MaxDepth)
	}
	return task{class: Nested, do: func(ctx context.Context) (any, error) {
		res, err := g.broker.Call(ctx, plugin.Call{
			Tenant:     g.call.Tenant,
			Principal:  g.call.Principal,
			Actor:      "plugin:" + g.target.Manifest.Name,
			Agent:      g.call.Agent,
			Origin:     plugin.OriginCall,
			Parent:     g.call.ID,
			Session:    g.call.Session,
			Depth:      g.call.Depth + 1,
			EffectFree: effectFree(g.target, g.call),
			Labels:     g.call.Labels,
			Operation:  ref,
			Input:      in.Input,
			Key:        in.Key,
			Trace:      g.call.Trace,
		})
		if err != nil {
			return nil, err
		}
		return res, nil
	}}, nil
}

// declaredTool finds what a plugin asks for among what it declared, and
// returns the reference to resolve: with the declared range where the plugin
// gave none. A declared plugin covers all its operations.
func declaredTool(declared []string, asked string) (ref string, ok bool) {
	name, constraint, ranged := strings.Cut(asked, "@")
	for _, tool := range declared {
		own, limit, limited := strings.Cut(tool, "@")
		if own != name && !strings.HasPrefix(name, own+"/") {
			continue
		}
		switch {
		case limited && !ranged:
			return name + "@" + limit, true
		case limited && constraint != limit:
			continue // it asks for another range than it declared
		}
		return asked, true
	}
	return "", false
}
