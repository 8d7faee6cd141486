package policytest

import (
	"fmt"
	"math/rand/v2"
)

// The world is small, so that policies and requests meet.
var (
	people   = []string{"ann", "bob", "local:owner"}
	kinds    = []string{"User", "User", "User", "Service", "Agent"}
	groups   = []string{"staff", "guests"}
	roles    = []string{"gmail_enabled", "admin"}
	tenants  = []string{"acme", "local"}
	plugins  = []string{"mail", "text", "disk"}
	ops      = []string{"send", "read"}
	effects  = []string{"gmail_send", "db_read", "db_write"}
	tags     = []string{"external_send", "draft_only", "pii_access"}
	scopes   = []string{"a", "b", "*"}
	origins  = []string{"cli", "call"}
	labels   = []string{"untrusted", "untrusted", "private", "pii"}
	argument = map[string]string{"amount": "long", "to": "string", "cc": "set", "ok": "bool"}
	names    = []string{"amount", "to", "cc", "ok"}
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// some returns a random part of a list, in order.
func some(r *rand.Rand, from []string) []string {
	part := []string{}
	for _, x := range from {
		if r.IntN(3) == 0 {
			part = append(part, x)
		}
	}
	return part
}

// RandomRequest returns a request of the small world. Its arguments are of the
// wrong type now and then, which makes policies that read them fail.
func RandomRequest(r *rand.Rand) *Request {
	req := &Request{
		Type: pick(r, kinds), Principal: pick(r, people), Tenant: pick(r, tenants), Groups: some(r, groups), Roles: some(r, roles),
		Action: pick(r, []string{"execute", "execute", "execute", "execute", "list", "approve", "configure"}), Plugin: pick(r, plugins), Operation: pick(r, ops),
		Kind: pick(r, []string{"tool", "operator", "agent", "adapter"}), Effects: some(r, effects), Tags: some(r, tags),
		Scopes: some(r, scopes), Consent: some(r, effects), Labels: some(r, labels), Origin: pick(r, origins), Depth: int64(r.IntN(5)),
		Input: map[string]any{},
	}
	if req.Action == "configure" {
		req.Operation = ""
	}
	if r.IntN(4) == 0 {
		req.Actor = &Actor{pick(r, []string{"Agent", "Service"}), pick(r, people), some(r, groups), some(r, roles)}
	}
	for _, name := range names {
		if r.IntN(3) == 0 {
			continue
		}
		of := argument[name]
		if r.IntN(4) == 0 {
			of = argument[pick(r, names)]
		}
		switch of {
		case "long":
			req.Input[name] = int64(r.IntN(200))
		case "string":
			req.Input[name] = pick(r, people)
		case "set":
			req.Input[name] = some(r, people)
		case "bool":
			req.Input[name] = r.IntN(2) == 0
		}
	}
	return req
}

// RandomPolicies returns n policies that the schema allows.
func RandomPolicies(r *rand.Rand, n int) []Policy {
	all := make([]Policy, n)
	for i := range all {
		p := Policy{ID: fmt.Sprintf("p%d", i), Permit: r.IntN(10) < 7}
		p.Approval = p.Permit && r.IntN(3) == 0
		p.Trusting = p.Permit && r.IntN(4) == 0
		switch r.IntN(9) {
		case 0:
			p.Who.Equals = entity("User", pick(r, people))
		case 1:
			p.Who.In = entity("Group", pick(r, groups))
		case 2:
			p.Who.In = entity("Role", pick(r, roles))
		case 3:
			p.Who.Is = pick(r, kinds)
		case 4:
			p.Who = Scope{Is: "User", In: entity("Tenant", pick(r, tenants))}
		}
		g := generator{r, true}
		if r.IntN(10) == 0 {
			p.Actions, g.operation = []string{"configure"}, false
			if r.IntN(2) == 0 {
				p.What.Equals = entity("Plugin", pick(r, plugins))
			}
		} else {
			p.Actions = pick(r, [][]string{{"execute"}, {"execute"}, {"execute", "list"}, {"approve"}, nil})
			switch r.IntN(6) {
			case 0, 1:
				p.What.Equals = entity("Operation", pick(r, plugins)+"/"+pick(r, ops))
			case 2:
				p.What.In = entity("Plugin", pick(r, plugins))
				g.operation = p.Actions != nil
			case 3:
				p.What = Scope{Is: "Operation", In: entity("Plugin", pick(r, plugins))}
			case 4:
				p.What.Is = "Operation"
			default:
				g.operation = p.Actions != nil
			}
		}
		for range r.IntN(3) {
			p.When = append(p.When, g.condition(2))
		}
		if r.IntN(4) == 0 {
			p.Unless = append(p.Unless, g.condition(1))
		}
		all[i] = p
	}
	return all
}

// A generator makes conditions. Those about operations need a policy that is
// about nothing else.
type generator struct {
	*rand.Rand
	operation bool
}

func (g generator) condition(depth int) Expr {
	if depth > 0 {
		switch g.IntN(8) {
		case 0:
			return And{g.condition(depth - 1), g.condition(depth - 1)}
		case 1, 2:
			return Or{g.condition(depth - 1), g.condition(depth - 1)}
		case 3:
			return Not{g.condition(depth - 1)}
		case 4:
			return If{g.condition(depth - 1), g.condition(depth - 1), g.condition(depth - 1)}
		}
	}
	if g.operation && g.IntN(2) == 0 {
		return g.aboutOperation()
	}
	switch g.IntN(14) {
	case 0:
		return Contains{Attr{"context.scopes"}, Lit{pick(g.Rand, scopes)}}
	case 1:
		return Equal{Attr{"context.origin"}, Lit{pick(g.Rand, origins)}}
	case 2:
		return Less{Add{Attr{"context.depth"}, Lit{int64(g.IntN(3))}}, Lit{int64(g.IntN(6))}}
	case 3:
		return Contains{Attr{"context.consent"}, Lit{pick(g.Rand, effects)}}
	case 4:
		return In{"principal", entity("Group", pick(g.Rand, groups))}
	case 5:
		return Is{"principal", pick(g.Rand, kinds)}
	case 6:
		return Like{Attr{"principal.id"}, pick(g.Rand, []string{"a*", "*:*", "*b"})}
	case 7: // overflows where the calls are nested
		return Less{Times{Attr{"context.depth"}, Lit{int64(1) << 62}}, Lit{int64(1)}}
	case 8:
		return ContainsAny{Attr{"context.labels"}, Lit{append(some(g.Rand, labels), pick(g.Rand, labels))}}
	default:
		return g.aboutArgument()
	}
}

func (g generator) aboutOperation() Expr {
	switch g.IntN(7) {
	case 0:
		return Equal{Attr{"resource.kind"}, Lit{pick(g.Rand, []string{"tool", "operator"})}}
	case 1:
		return Contains{Attr{"resource.effects"}, Lit{pick(g.Rand, effects)}}
	case 2:
		return ContainsAll{Lit{append(some(g.Rand, effects), pick(g.Rand, effects))}, Attr{"resource.effects"}}
	case 3:
		return IsEmpty{Attr{"resource.effects"}}
	case 4:
		return Effects{pick(g.Rand, [][]string{{"db_*"}, {"*_write", "gmail_send"}, {"db_read"}})}
	case 5:
		return Contains{Attr{"resource.tags"}, Lit{pick(g.Rand, tags)}}
	default:
		return Like{Attr{"resource.name"}, pick(g.Rand, []string{"mail/*", "*/read", "*a*"})}
	}
}

// aboutArgument asks for an argument before it reads it, as the schema wants.
func (g generator) aboutArgument() Expr {
	name := pick(g.Rand, names)
	of := Attr{"context.input." + name}
	var test Expr
	switch name {
	case "amount":
		test = Less{of, Lit{int64(g.IntN(200))}}
	case "to":
		test = Like{of, pick(g.Rand, []string{"a*", "*o*"})}
	case "cc":
		test = Contains{of, Lit{pick(g.Rand, people)}}
	default:
		test = of
	}
	return And{Has{name}, test}
}
