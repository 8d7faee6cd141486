package policy

import (
	"bytes"
	"slices"

	"github.com/cedar-policy/cedar-go/types"

	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/plugin"
)

// actions are the actions as Cedar knows them.
var actions = map[Action]types.EntityUID{
	Execute:   types.NewEntityUID("Action", "execute"),
	List:      types.NewEntityUID("Action", "list"),
	Approve:   types.NewEntityUID("Action", "approve"),
	Configure: types.NewEntityUID("Action", "configure"),
}

// A request is a question in Cedar's terms. It serves the entities that the
// policies look at.
type request struct {
	question *Question
	action   Action
	subject  *subject
	resource *resource
}

// A resource is an operation, or a plugin, as policies see it.
type resource struct {
	plugin, name string // name is plugin/operation, "" for a plugin
	entity       types.Entity
	shape        *shape // of its input

	// What it was made of, to tell whether it still holds.
	dialect   string
	kind      plugin.Kind
	effects   []string
	tags      []string
	scopes    []string
	input     []byte
	isolation string
}

type resourceKey struct{ plugin, version, operation string }

// request reads a question. What cannot be asked is refused with a reason.
func (p *policies) request(e *Engine, q *Question) (r *request, refused string) {
	r = &request{question: q, action: q.Action}
	if r.action == "" {
		r.action = Execute
	}
	if !r.action.Known() {
		return nil, "there is no action " + string(r.action)
	}
	who, known := entityOf(q.Call.Principal)
	if !known {
		return nil, unknownType(q.Call.Principal)
	}
	switch {
	case q.Target == nil || q.Target.Manifest == nil:
		return nil, "nothing is asked for"
	case r.action == Configure:
		r.resource = aPlugin(q.Target.Manifest)
	case q.Target.Operation == nil:
		return nil, "no operation is asked for"
	default:
		r.resource = p.resource(q.Target, p.options.Isolation)
	}
	r.subject = e.subject(p, q, who)
	return r, ""
}

// Get serves the entities of this request.
func (r *request) Get(uid types.EntityUID) (types.Entity, bool) {
	switch {
	case uid == r.subject.entity.UID:
		return r.subject.entity, true
	case uid == r.resource.entity.UID:
		return r.resource.entity, true
	case uid.Type == "Plugin" && string(uid.ID) == r.resource.plugin:
		return aPlugin(r.question.Target.Manifest).entity, true
	}
	return types.Entity{}, false
}

// resource returns an operation as policies see it, from the cache where the
// operation is what it was.
func (p *policies) resource(t *plugin.Target, isolation string) *resource {
	m, op := t.Manifest, t.Operation
	key := resourceKey{m.Name, m.Version, op.Name}
	if known, found := p.resources.get(key); found && known.holds(m, op, isolation) {
		return known
	}
	r := p.anOperation(m, op, isolation)
	p.resources.put(key, r)
	return r
}

func (r *resource) holds(m *plugin.Manifest, op *plugin.Operation, isolation string) bool {
	return r.dialect == m.Dialect && r.kind == op.Kind && r.isolation == isolation &&
		slices.Equal(r.effects, op.Effects) && slices.Equal(r.tags, op.PolicyTags) && slices.Equal(r.scopes, op.Permissions) &&
		bytes.Equal(r.input, op.Input)
}

func (p *policies) anOperation(m *plugin.Manifest, op *plugin.Operation, isolation string) *resource {
	r := &resource{
		plugin: m.Name, name: m.Name + "/" + op.Name, dialect: m.Dialect, kind: op.Kind, isolation: isolation,
		effects: slices.Clone(op.Effects), tags: slices.Clone(op.PolicyTags), scopes: slices.Clone(op.Permissions), input: slices.Clone(op.Input), shape: shapeOf(op.Input),
	}
	parents := []types.EntityUID{types.NewEntityUID("Plugin", types.String(m.Name))}
	for _, uid := range p.effects {
		if fits(effectPatterns(string(uid.ID)), op.Effects) {
			parents = append(parents, uid)
		}
	}
	r.entity = types.Entity{
		UID:     types.NewEntityUID("Operation", types.String(r.name)),
		Parents: types.NewEntityUIDSet(parents...),
		Attributes: types.NewRecord(types.RecordMap{
			"plugin": types.String(m.Name), "operation": types.String(op.Name), "name": types.String(r.name),
			"version": types.String(m.Version), "dialect": types.String(m.Dialect), "kind": types.String(op.Kind),
			"effects": texts(op.Effects), "tags": texts(op.PolicyTags), "permissions": texts(op.Permissions),
			"isolation": types.String(isolation),
		}),
	}
	return r
}

func aPlugin(m *plugin.Manifest) *resource {
	return &resource{plugin: m.Name, entity: types.Entity{
		UID: types.NewEntityUID("Plugin", types.String(m.Name)),
		Attributes: types.NewRecord(types.RecordMap{
			"name": types.String(m.Name), "version": types.String(m.Version), "dialect": types.String(m.Dialect),
		}),
	}}
}

// fits reports whether every effect matches one of the patterns.
func fits(patterns, effects []string) bool {
	for _, effect := range effects {
		if !slices.ContainsFunc(patterns, func(glob string) bool { return pattern.Glob(glob, effect) }) {
			return false
		}
	}
	return true
}
