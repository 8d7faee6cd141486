package policy

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cedar-policy/cedar-go/types"

	"github.com/mortise-dev/mortise/plugin"
)

// A subject is a principal of a tenant as policies see it. It is kept for the
// next question, because the same ones ask again and again.
type subject struct {
	standing Standing
	entity   types.Entity
	last     atomic.Pointer[surroundings] // of its latest question
}

type subjectKey struct{ tenant, kind, id string }

// A cache is a map that is emptied when it is full.
type cache[K comparable, V any] struct {
	mu      sync.RWMutex
	entries map[K]V
}

// maxCached bounds a cache: principals and versions come and go. One plugin may have 10,000
// operations.
const maxCached = 16_384

func (c *cache[K, V]) get(key K) (V, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	v, found := c.entries[key]
	return v, found
}

func (c *cache[K, V]) put(key K, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil || len(c.entries) >= maxCached {
		c.entries = map[K]V{}
	}
	c.entries[key] = v
}

// subject returns who asks, from the cache where nothing about it has changed.
func (e *Engine) subject(p *policies, q *Question, uid types.EntityUID) *subject {
	tenant, who := q.Call.Tenant, q.Call.Principal
	var s Standing
	if q.Standing != nil {
		s = *q.Standing
	} else {
		s = p.standing(tenant, who)
	}
	key := subjectKey{tenant, string(uid.Type), who.ID}
	if known, found := e.subjects.get(key); found && known.standing.equal(s) {
		return known
	}
	parents := make([]types.EntityUID, 0, 1+len(s.Groups)+len(s.Roles))
	for _, group := range s.Groups {
		parents = append(parents, types.NewEntityUID("Group", types.String(group)))
	}
	for _, role := range s.Roles {
		parents = append(parents, types.NewEntityUID("Role", types.String(role)))
	}
	if tenant != "" {
		parents = append(parents, types.NewEntityUID("Tenant", types.String(tenant)))
	}
	subject := &subject{
		standing: Standing{slices.Clone(s.Groups), slices.Clone(s.Roles), slices.Clone(s.Consent)},
		entity: types.Entity{
			UID: uid, Parents: types.NewEntityUIDSet(parents...), Attributes: types.NewRecord(types.RecordMap{"id": uid.ID}),
		},
	}
	e.subjects.put(key, subject)
	return subject
}

func (s Standing) equal(other Standing) bool {
	return slices.Equal(s.Groups, other.Groups) && slices.Equal(s.Roles, other.Roles) && slices.Equal(s.Consent, other.Consent)
}

// surroundings are a context without arguments, and what it was made of.
type surroundings struct {
	members              set
	scopes, labels       []string
	origin               plugin.Origin
	tenant, actor, agent string
	depth                int
	record               types.Record
}

// holds reports whether a call has the same surroundings.
func (s *surroundings) holds(call *plugin.Call, members set) bool {
	return s != nil && s.members == members && s.origin == call.Origin && s.tenant == call.Tenant && s.actor == call.Actor &&
		s.agent == call.Agent && s.depth == call.Depth && slices.Equal(s.scopes, call.Principal.Scopes) && slices.Equal(s.labels, call.Labels)
}

// context returns the members of the context that are looked at.
func (r *request) context(wanted reads) (types.Record, error) {
	call := r.question.Call
	if wanted.context&inputMember == 0 {
		if wanted.context == 0 {
			return types.Record{}, nil
		}
		if last := r.subject.last.Load(); last.holds(call, wanted.context) {
			return last.record, nil
		}
	}
	values := make(types.RecordMap, len(contextNames))
	for i, name := range contextNames {
		if wanted.context&(1<<i) != 0 && name != "input" {
			values[types.String(name)] = r.contextMember(name)
		}
	}
	if wanted.context&inputMember != 0 {
		input, err := readArguments(call.Input, wanted.input, r.resource.shape)
		if err != nil {
			return types.Record{}, err
		}
		values["input"] = input
		return types.NewRecord(values), nil
	}
	last := r.question.surroundings(wanted.context)
	last.record = types.NewRecord(values)
	r.subject.last.Store(&last)
	return last.record, nil
}

// surroundings returns those of a question, without the record.
func (q *Question) surroundings(members set) surroundings {
	call := q.Call
	return surroundings{
		members: members, scopes: slices.Clone(call.Principal.Scopes), labels: slices.Clone(call.Labels),
		origin: call.Origin, tenant: call.Tenant, actor: call.Actor, agent: call.Agent, depth: call.Depth,
	}
}

func (r *request) contextMember(name string) types.Value {
	call := r.question.Call
	switch name {
	case "scopes":
		return texts(call.Principal.Scopes)
	case "origin":
		return types.String(call.Origin)
	case "tenant":
		return types.String(call.Tenant)
	case "consent":
		return texts(r.subject.standing.Consent)
	case "actor":
		return types.String(call.Actor)
	case "agent":
		return types.String(call.Agent)
	case "depth":
		return types.Long(call.Depth)
	default:
		return texts(call.Labels)
	}
}

func texts(words []string) types.Set {
	values := make([]types.Value, len(words))
	for i, word := range words {
		values[i] = types.String(word)
	}
	return types.NewSet(values...)
}
