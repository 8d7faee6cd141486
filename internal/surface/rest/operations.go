package rest

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// An Operation is an operation that the caller may know of.
type Operation struct {
	Name        string          `json:"name" doc:"plugin/operation"`
	Version     string          `json:"version" doc:"Of the plugin that a call without one gets."`
	Title       string          `json:"title,omitzero"`
	Kind        plugin.Kind     `json:"kind" enum:"agent,operator,tool,adapter"`
	Description string          `json:"description,omitzero"`
	Effects     []string        `json:"effects" nullable:"false"`
	PolicyTags  []string        `json:"policy_tags,omitzero"`
	Permissions []string        `json:"permissions,omitzero" doc:"Scopes that the principal has to have."`
	Timeout     float64         `json:"timeout_seconds"`
	Input       json.RawMessage `json:"input_schema,omitzero" doc:"Of one operation, not in lists."`
	Output      json.RawMessage `json:"output_schema,omitzero" doc:"Of one operation, not in lists."`
}

// Operations are a page of them.
type Operations struct {
	Operations []Operation `json:"operations" nullable:"false"`
	Next       string      `json:"next_page_token" doc:"Empty on the last page."`
}

func operationOf(m *plugin.Manifest, op *plugin.Operation) Operation {
	return Operation{
		Name: m.Name + "/" + op.Name, Version: m.Version, Title: op.Title, Kind: op.Kind, Description: op.Description, Effects: append([]string{}, op.Effects...),
		PolicyTags: op.PolicyTags, Permissions: op.Permissions, Timeout: op.Timeout.Seconds(),
	}
}

// outcomes are what the stream of a call ends with.
var outcomes = []reflect.Type{reflect.TypeFor[Outcome](), reflect.TypeFor[Problem]()}

func (r *registry) operations() {
	add(r, route{method: "GET", path: "operations", id: "list-operations", scope: host.ScopeRead, about: "The operations that the caller may know of, by name"}, r.listOperations)
	add(r, route{method: "GET", path: "operations/{plugin}/{operation}", id: "get-operation", scope: host.ScopeRead, about: "An operation with its schemas"}, r.getOperation)
	add(r, route{
		method: "POST", path: "operations/{plugin}/{operation}:execute", id: "execute-operation", scope: host.ScopeRun, stays: true, accepts: true, told: outcomes,
		about: "Execute an operation. With Accept: text/event-stream it is told what the plugin says meanwhile (progress with its members, content), and at the end the answer as it would be otherwise (result) or the refusal (problem)",
	}, r.execute)
}

func (r *registry) listOperations(ctx context.Context, q *request, in *struct {
	Page
	Kind string `query:"kind" enum:"agent,operator,tool,adapter"`
}) (*struct{ Body Operations }, error) {
	var kinds []plugin.Kind
	if in.Kind != "" {
		kinds = append(kinds, plugin.Kind(in.Kind))
	}
	last, err := in.after("operations", in.Kind)
	if err != nil {
		return nil, err
	}
	all, err := q.api.Plugins().List(ctx, kinds...) // the highest version first
	if err != nil {
		return nil, err
	}
	found, taken := []Operation{}, map[string]bool{}
	for _, info := range all {
		if info.State != host.PluginActive || info.Problem != "" || taken[info.Name] {
			continue
		}
		taken[info.Name] = true
		for _, op := range info.Plugin().Operations {
			seen := operationOf(info.Plugin(), op)
			if slices.Contains(info.Operations, op.Name) && (len(kinds) == 0 || op.Kind == kinds[0]) && q.caller.Covers(seen.Name) {
				found = append(found, seen)
			}
		}
	}
	slices.SortFunc(found, func(a, b Operation) int { return strings.Compare(a.Name, b.Name) })
	found = slices.DeleteFunc(found, func(o Operation) bool { return o.Name <= last })
	out := new(struct{ Body Operations })
	out.Body.Operations, out.Body.Next = cut(found, in.size(), "", func(o *Operation) string { return o.Name }, "operations", in.Kind)
	return out, nil
}

func (r *registry) getOperation(ctx context.Context, q *request, in *struct {
	Plugin    string `path:"plugin" maxLength:"128" doc:"A name, or name@versions."`
	Operation string `path:"operation" maxLength:"128"`
}) (*struct{ Body Operation }, error) {
	name, _, _ := strings.Cut(in.Plugin, "@")
	name += "/" + in.Operation
	shown, err := q.api.Plugins().Show(ctx, in.Plugin)
	if err != nil {
		return nil, unlessMissing(err, "operation", name)
	}
	op := shown.Manifest.Operation(in.Operation)
	if op == nil || !q.caller.Covers(name) {
		return nil, missing("operation", name)
	}
	out := &struct{ Body Operation }{operationOf(shown.Manifest, op)}
	out.Body.Input, out.Body.Output = op.Input, op.Output
	return out, nil
}
