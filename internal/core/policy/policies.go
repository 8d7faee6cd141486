package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
)

// policies are one set that decides. Nothing in it changes but the cache.
type policies struct {
	all     []*statement
	byID    map[types.PolicyID]*statement
	index   map[Action]*scoped
	effects []types.EntityUID // the Effects that any policy names
	texts   []Text
	version string
	stored  string  // identifies those documents that are stored
	options Options // what is known beside the documents

	resources cache[resourceKey, *resource]
	rulings   cache[rulingKey, *ruling]
}

// scoped are the policies whose scope lets one action through, by the resource
// that the scope is about. A policy can only match, and only fail, where its
// scope fits, so that to look no further changes no verdict.
type scoped struct {
	open      *group            // about any resource, or about some by other means than their names
	plugin    map[string]*group // about one plugin and what is in it
	operation map[string]*group // about one operation
}

// A group is some policies and what they look at together.
type group struct {
	statements []*statement
	reads      reads
}

func (g *group) with(s *statement) *group {
	if g == nil {
		g = &group{}
	}
	g.statements = append(g.statements, s)
	g.reads = g.reads.and(s.reads)
	return g
}

func (r reads) and(other reads) reads {
	r.context |= other.context
	for _, name := range other.input {
		if !slices.Contains(r.input, name) {
			r.input = append(slices.Clip(r.input), name)
		}
	}
	return r
}

// versionOf returns the version of some documents: the hash of all that
// decisions depend on.
func (e *Engine) versionOf(documents []Document) string {
	hash := sha256.New()
	part := func(text []byte) { fmt.Fprintf(hash, "%d %s", len(text), text) }
	part([]byte(Schema))
	part([]byte(e.options.Isolation))
	part(e.options.Known)
	for _, d := range documents {
		part([]byte(d.Name))
		part(d.Text)
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}

// build makes a set of documents. The error is [Problems].
func build(documents []Document) (*policies, error) {
	p := &policies{byID: map[types.PolicyID]*statement{}, index: emptyIndex()}
	var problems Problems
	names := map[string]*statement{}
	for _, d := range documents {
		statements, wrong := parse(d)
		problems = append(problems, wrong...)
		p.texts = append(p.texts, Text{d.Name, len(statements)})
		for _, s := range statements {
			s.order = len(p.all)
			if FromConfiguration(d.Name) { // a rule may be several policies of one name
				s.id += types.PolicyID(fmt.Sprintf(" %d", s.order))
			} else if earlier := names[s.name]; s.name != "" && earlier != nil {
				problems = append(problems, Problem{d.Name, s.line, s.policy.Position().Column, s.name, "another policy has this @id: " + earlier.label})
			} else {
				names[s.name] = s
				if other := p.byID[s.id]; other != nil { // two on one line, without a name
					s.id += types.PolicyID(fmt.Sprintf(" %d", s.order))
				}
			}
			p.add(s)
		}
	}
	p.yield()
	if len(problems) > 0 {
		slices.SortStableFunc(problems, func(a, b Problem) int {
			return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
		return nil, problems
	}
	return p, nil
}

func emptyIndex() map[Action]*scoped {
	index := map[Action]*scoped{}
	for action := range actions {
		index[action] = &scoped{plugin: map[string]*group{}, operation: map[string]*group{}}
	}
	return index
}

// add takes a policy into the set and its index.
func (p *policies) add(s *statement) {
	p.all = append(p.all, s)
	p.byID[s.id] = s
	for _, uid := range entities(s.ast) {
		if uid.Type == "Effects" && !slices.Contains(p.effects, uid) {
			p.effects = append(p.effects, uid)
		}
	}
	for action, uid := range actions {
		if !lets(s.ast.Action, uid) {
			continue
		}
		at := p.index[action]
		switch pinned := pin(s.ast.Resource); pinned.Type {
		case "Operation":
			at.operation[string(pinned.ID)] = at.operation[string(pinned.ID)].with(s)
		case "Plugin":
			at.plugin[string(pinned.ID)] = at.plugin[string(pinned.ID)].with(s)
		default:
			at.open = at.open.with(s)
		}
	}
}

// lets reports whether a scope lets an action through. There are no groups of
// actions.
func lets(scope ast.IsActionScopeNode, action types.EntityUID) bool {
	switch s := scope.(type) {
	case ast.ScopeTypeEq:
		return s.Entity == action
	case ast.ScopeTypeIn:
		return s.Entity == action
	case ast.ScopeTypeInSet:
		return slices.Contains(s.Entities, action)
	default:
		return true
	}
}

// pin returns the one entity that a scope is about, if it is about one.
func pin(scope ast.IsResourceScopeNode) types.EntityUID {
	switch s := scope.(type) {
	case ast.ScopeTypeEq:
		return s.Entity
	case ast.ScopeTypeIn:
		return s.Entity
	case ast.ScopeTypeIsIn:
		return s.Entity
	default:
		return types.EntityUID{}
	}
}

// candidates are the policies that a request can match.
type candidates []*group

func (p *policies) candidates(r *request) candidates {
	at := p.index[r.action]
	found := make(candidates, 0, 3)
	for _, g := range [...]*group{at.open, at.plugin[r.resource.plugin], at.operation[r.resource.name]} {
		if g != nil {
			found = append(found, g)
		}
	}
	return found
}

// All returns the candidates in the form that Cedar asks for.
func (c candidates) All() iter.Seq2[types.PolicyID, *cedar.Policy] {
	return func(yield func(types.PolicyID, *cedar.Policy) bool) {
		for _, g := range c {
			for _, s := range g.statements {
				if !yield(s.id, s.policy) {
					return
				}
			}
		}
	}
}

func (c candidates) len() (n int) {
	for _, g := range c {
		n += len(g.statements)
	}
	return n
}

// reads returns what the candidates look at together.
func (c candidates) reads() (r reads) {
	for _, g := range c {
		r = r.and(g.reads)
	}
	return r
}
