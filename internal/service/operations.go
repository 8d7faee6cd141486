package service

import (
	"context"
	"encoding/json"
	"fmt"
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
		labels := plugin.Labels(g.call.Labels, g.Labels())
		call := plugin.Call{
			Tenant:     g.call.Tenant,
			Principal:  g.call.Principal,
			Actor:      g.actor(),
			Asker:      g.call.Asker,
			Agent:      g.call.Agent,
			Origin:     plugin.OriginCall,
			Parent:     g.call.ID,
			Session:    g.call.Session,
			Depth:      g.call.Depth + 1,
			EffectFree: g.reading || effectFree(g.target, g.call),
			Labels:     labels,
			Files:      g.call.Files,
			Operation:  ref,
			Input:      in.Input,
			Key:        in.Key,
			KeyOf:      plugin.KeyOfPlugin + g.target.Manifest.Name,
			Place:      g.place(ref, in.Input),
			Trace:      g.call.Trace,
			Dry:        g.call.Dry,
		}
		if err := g.translates(ctx, &call); err != nil {
			return nil, err
		}
		if g.journal != nil {
			if err := g.journal.Nest(operationsCall, &call, g.mayAct(ctx, &call)); err != nil {
				return nil, err
			}
		}
		res, err := g.broker.Call(ctx, call)
		g.heard(res.Labels) // an error's message tells of what it came from too
		g.judged(ref, &res)
		if err != nil {
			return nil, err
		}
		return res, nil
	}}, nil
}

// judged takes out of the answer of a call below what its dry run found out,
// which is not the plugin's to know. Where such a call would wait for a person,
// that is noted.
func (g *grant) judged(ref string, res *plugin.Result) {
	if d := res.DryRun; d != nil && d.Verdict == plugin.AllowWithApproval {
		g.note(operationsCall, task{class: Nested}, plugin.Change{Target: ref, Summary: "would wait for approval: " + strings.Join(d.Reasons, "; ")})
	}
	res.DryRun = nil
}

// translates refuses an adapter whatever is not an operator: "Adapters must
// never write directly. They must request an operator execution" (kernel
// contracts, 5.5.2). What does not exist is left to the kernel to refuse.
func (g *grant) translates(ctx context.Context, call *plugin.Call) error {
	if g.target.Operation.Kind != plugin.Adapter {
		return nil
	}
	kind, hidden := plugin.Kind("unknown"), error(nil)
	if g.broker.Kind != nil {
		kind, hidden = g.broker.Kind(ctx, call)
	}
	if kind == "" || kind == plugin.Operator {
		return nil
	}
	err := g.refuse(operationsCall, plugin.Errorf(plugin.CodeServiceDenied, "%s: %s is an adapter, which may ask for operators only, and %.120s is of kind %s",
		operationsCall, g.target.Name(), call.Operation, kind), plugin.CodeServiceDenied)
	if hidden != nil { // the record has the reason
		return hidden
	}
	return err
}

// mayAct reports whether an operation may have effects, as only operators do.
func (g *grant) mayAct(ctx context.Context, call *plugin.Call) bool {
	if g.broker.Kind == nil {
		return true
	}
	kind, _ := g.broker.Kind(ctx, call)
	return kind == plugin.Operator
}

// actor is who acts in what a call asks for: its plugin, unless an agent or a
// service acts in the call. Their rights go on to limit what comes of it.
func (g *grant) actor() string {
	if kind, _, _ := strings.Cut(g.call.Actor, ":"); kind == "agent" || kind == "service" {
		return g.call.Actor
	}
	return "plugin:" + g.target.Manifest.Name
}

// place tells an operation that a call asks for from its others, in the same
// way when the call runs again; "" for a call that never does.
func (g *grant) place(ref string, input json.RawMessage) string {
	if g.journal == nil {
		return ""
	}
	hash := requestHash(ref, input)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.nested == nil {
		g.nested = map[string]int{}
	}
	n := g.nested[hash]
	g.nested[hash]++
	return fmt.Sprintf("%s/%s/%d", g.call.ID, hash, n)
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
