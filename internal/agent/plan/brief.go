package plan

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/plugin"
)

// A Request is what a principal asks of an agent: the input of its call.
type Request struct {
	Intent      jsontext.Value `json:"intent"` // {type, payload, ...}
	Context     jsontext.Value `json:"context,omitzero"`
	Constraints jsontext.Value `json:"constraints,omitzero"`
}

// A brief is what an agent gets to read (kernel contracts, 5.2.2). It has no
// other way to learn anything.
type brief struct {
	Intent         jsontext.Value `json:"intent"`
	Context        jsontext.Value `json:"context"` // what it declared, where it declared anything
	PolicySnapshot snapshot       `json:"policy_snapshot"`
	ToolRegistry   []tool         `json:"tool_registry"`
	Constraints    jsontext.Value `json:"constraints"`
	Runtime        runtime        `json:"runtime"`
}

// A snapshot is what policy says at this moment of what may be proposed.
type snapshot struct {
	Version    string                    `json:"version"`
	Operations map[string]plugin.Verdict `json:"operations"` // by plugin/operation
}

// A tool is an operation that the agent may propose.
type tool struct {
	Name        string          `json:"name"`      // as it may be proposed: the plugin's, where that is enough
	Operation   string          `json:"operation"` // plugin/operation
	Version     string          `json:"version"`
	Kind        plugin.Kind     `json:"kind"`
	Description string          `json:"description"`
	Effects     []string        `json:"effects"`
	PolicyTags  []string        `json:"policy_tags"`
	Input       json.RawMessage `json:"input_schema"`
	Gate        string          `json:"gate"` // human_apply where a person will be asked
}

// A runtime is what the agent may use up.
type runtime struct {
	DeadlineMS    int64 `json:"deadline_ms"`
	MaxActions    int   `json:"max_actions"`
	MaxInputBytes int   `json:"max_input_bytes"`
}

// Brief returns an agent's whole input, made of the caller's. A context field
// that the agent declares to need and that is neither in the context nor in the
// intent's payload fails with needs_context, and details name all such.
func (a *Agents) Brief(ctx context.Context, t *plugin.Target, call *plugin.Call) (json.RawMessage, error) {
	in, err := readRequest(t, call.Input)
	if err != nil {
		return nil, err
	}
	payload, _ := member(in.Intent, "payload")
	needed := t.Manifest.Requires.ContextFields
	var missing []string
	for _, field := range needed {
		_, _, inContext := lookup(in.Context, field)
		_, _, inPayload := lookup(payload, field)
		if !inContext && !inPayload {
			missing = append(missing, field)
		}
	}
	if len(missing) > 0 {
		e := plugin.Errorf(plugin.CodeNeedsContext, "%s needs %s, in the context or in the intent's payload", t.Name(), strings.Join(missing, ", "))
		e.Details = details(map[string]any{"missing": missing})
		return nil, e
	}
	if len(needed) > 0 {
		if in.Context, err = only(in.Context, needed); err != nil {
			return nil, err
		}
	}
	b := brief{Intent: in.Intent, Context: in.Context, Constraints: in.Constraints, ToolRegistry: []tool{}}
	b.PolicySnapshot = snapshot{Version: a.Policy.Version(), Operations: map[string]plugin.Verdict{}}
	limit := t.Operation.Timeout
	if call.Timeout > 0 && call.Timeout < limit {
		limit = call.Timeout
	}
	b.Runtime = runtime{limit.Milliseconds(), MaxSteps, 4 << 20}
	if a.MaxInput != nil {
		b.Runtime.MaxInputBytes = a.MaxInput()
	}
	for _, choice := range a.choices(ctx, t, call) {
		b.PolicySnapshot.Operations[choice.Operation] = choice.verdict
		if choice.verdict != plugin.Deny {
			b.ToolRegistry = append(b.ToolRegistry, choice.tool)
		}
	}
	raw, err := encode(b)
	return json.RawMessage(raw), err
}

// readRequest reads what the caller of an agent sent.
func readRequest(t *plugin.Target, input json.RawMessage) (in Request, err error) {
	refuse := func(why string) (Request, error) {
		return Request{}, plugin.Errorf(plugin.CodeInvalidInput, `%s: an agent's input is {"intent": {"type": ..., "payload": {...}}, "context": {...}, "constraints": {...}}; %s`, t.Name(), why)
	}
	if err := json2.Unmarshal(input, &in, json2.RejectUnknownMembers(true)); err != nil {
		return refuse(strings.TrimPrefix(err.Error(), "json: "))
	}
	for _, part := range []*jsontext.Value{&in.Context, &in.Constraints} {
		if len(*part) == 0 || part.Kind() == 'n' {
			*part = jsontext.Value("{}")
		}
		if part.Kind() != '{' {
			return refuse("context and constraints are objects")
		}
	}
	kind, found := member(in.Intent, "type")
	if name, ok := text(kind); !found || !ok || kind.Kind() != '"' || name == "" {
		return refuse("the intent needs a type, such as Funding.Outreach.Email.Generate")
	}
	if payload, found := member(in.Intent, "payload"); found && payload.Kind() != '{' {
		return refuse("the intent's payload is an object")
	}
	return in, nil
}

// only returns the context with nothing in it but these fields.
func only(context jsontext.Value, fields []string) (jsontext.Value, error) {
	fields = slices.Clone(fields)
	slices.SortFunc(fields, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) }) // a whole before its parts
	kept := map[string]any{}
	for _, field := range fields {
		value, trail, found := lookup(context, field)
		if !found {
			continue // it is in the payload
		}
		place, whole := kept, false
		for _, name := range trail[:len(trail)-1] {
			if place[name] == nil {
				place[name] = map[string]any{}
			}
			inner, ok := place[name].(map[string]any)
			if whole = !ok; whole {
				break
			}
			place = inner
		}
		if last := trail[len(trail)-1]; !whole && place[last] == nil {
			place[last] = value
		}
	}
	return encode(kept)
}

// A choice is an operation on the agent's whitelist, and policy's view of it.
type choice struct {
	tool
	verdict plugin.Verdict
}

// choices returns what stands on an agent's whitelist and exists, by name.
func (a *Agents) choices(ctx context.Context, t *plugin.Target, call *plugin.Call) []choice {
	var all []choice
	seen := map[string]bool{}
	for _, ref := range t.Operation.AllowedActions {
		for _, target := range a.targets(ctx, ref) {
			if kind := target.Operation.Kind; seen[target.Name()] || kind != plugin.Operator && kind != plugin.Tool {
				continue
			}
			seen[target.Name()] = true
			all = append(all, a.choice(target, call))
		}
	}
	slices.SortFunc(all, func(a, b choice) int { return strings.Compare(a.Operation, b.Operation) })
	return all
}

// targets returns the operations that an entry of a whitelist means: the one it
// names, or all of a plugin but for hidden ones. What cannot be used is left out.
func (a *Agents) targets(ctx context.Context, ref string) []*plugin.Target {
	name, limit, limited := strings.Cut(ref, "@")
	if limited {
		limit = "@" + limit
	}
	names := []string{name}
	if !strings.Contains(name, "/") {
		names = nil
		for _, op := range a.Operations(ctx, ref) {
			names = append(names, name+"/"+op)
		}
	}
	var found []*plugin.Target
	for _, name := range names {
		if t, err := a.Registry.Resolve(ctx, name+limit); err == nil {
			found = append(found, t)
		}
	}
	return found
}

func (a *Agents) choice(t *plugin.Target, call *plugin.Call) choice {
	d := a.Policy.Decide(t, &plugin.Call{
		Tenant: call.Tenant, Principal: call.Principal, Actor: call.Actor, Agent: call.Agent, Origin: plugin.OriginPlan,
		Session: call.Session, Labels: call.Labels, Operation: t.Name(), Input: json.RawMessage("{}"),
	})
	c := choice{verdict: d.Verdict, tool: tool{
		Name: t.Name(), Operation: t.Name(), Version: t.Manifest.Version, Kind: t.Operation.Kind, Description: t.Operation.Description,
		Effects: orEmpty(t.Operation.Effects), PolicyTags: orEmpty(t.Operation.PolicyTags), Input: t.Operation.Input, Gate: GateNone,
	}}
	if len(t.Manifest.Operations) == 1 {
		c.Name = t.Manifest.Name
	}
	if len(c.Input) == 0 {
		c.Input = json.RawMessage("{}")
	}
	if d.Verdict == plugin.AllowWithApproval {
		c.Gate = GateHumanApply
	}
	return c
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
