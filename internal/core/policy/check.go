package policy

import (
	_ "embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
	"github.com/cedar-policy/cedar-go/x/exp/schema"
	"github.com/cedar-policy/cedar-go/x/exp/schema/resolved"
	"github.com/cedar-policy/cedar-go/x/exp/schema/validate"

	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// Schema is what policies can speak of, in Cedar's own notation.
//
//go:embed schema.cedarschema
var Schema string

// base is Schema, resolved; the check against it is for policies that read no
// arguments.
var base, baseCheck = func() (*resolved.Schema, *validate.Validator) {
	var s schema.Schema
	s.SetFilename("schema.cedarschema")
	if err := s.UnmarshalCedar([]byte(Schema)); err != nil {
		panic(err) // it is part of the program
	}
	r, err := s.Resolve()
	if err != nil {
		panic(err)
	}
	return r, validate.New(r)
}()

// vocabularies are the attributes whose values are a closed list.
var vocabularies = map[string][]string{
	"kind":      {"agent", "operator", "tool", "adapter"},
	"isolation": {"none", "partial", "full"},
	"dialect":   {"native", "kernel", "runtime"},
}

// check holds a policy against the schema, and finds out what it reads.
func (s *statement) check(in source) (problems Problems) {
	if tooLong(s.ast) {
		return Problems{in.at(s.name, fmt.Sprintf("an attribute of an attribute is read more than %d times over", maxAccess), nil)}
	}
	s.reads = readsOf(s.ast)
	if s.reads.bare != "" {
		return Problems{in.at(s.name, s.reads.bare+" is read by its members, not as a whole", func(_, here, _ string) bool { return here == "context" })}
	}
	// The scope and each condition by itself, to know where to look for the word.
	v := s.validator()
	alone := *s.ast
	alone.Conditions = nil
	problems = s.refused(v, &alone, in)
	for i, c := range s.ast.Conditions {
		part := in.condition(i)
		if len(problems) == 0 {
			alone.Conditions = []ast.ConditionType{c}
			problems = s.refused(v, &alone, part)
		}
		ast.Inspect(ast.NewNode(c.Body), func(n ast.IsNode) bool {
			if word, message := outside(n); message != "" {
				problems = append(problems, part.at(s.name, message, func(_, here, _ string) bool { return here == literal(word) }))
			}
			if of := typeTested(n); of != "" && !knownType(of) {
				message := "unrecognized entity type `" + string(of) + "`"
				problems = append(problems, part.at(s.name, hint(message), finder(message)))
			}
			return true
		})
	}
	for _, uid := range entities(s.ast) {
		if uid.Type == "Effects" {
			for _, glob := range effectPatterns(string(uid.ID)) {
				if err := pattern.CheckGlob(glob); err != nil || glob == "" {
					problems = append(problems, in.at(s.name, fmt.Sprintf("%q is no list of patterns, such as \"db_read, cache_*\"", uid.ID),
						func(before, here, _ string) bool { return before == "::" && here == literal(uid.ID) }))
				}
			}
		}
	}
	return problems
}

// maxAccess bounds a.b.c.d: the validator takes twice as long for each more that
// is not asked for first.
const maxAccess = 10

func tooLong(p *ast.Policy) (found bool) {
	for _, c := range p.Conditions {
		ast.Inspect(ast.NewNode(c.Body), func(n ast.IsNode) bool {
			if _, ok := n.(ast.NodeTypeAccess); ok && !found {
				count := 0
				ast.Inspect(ast.NewNode(n), func(inner ast.IsNode) bool {
					if _, ok := inner.(ast.NodeTypeAccess); ok {
						count++
					}
					return count <= maxAccess
				})
				found = count > maxAccess
			}
			return !found
		})
	}
	return found
}

// refused returns what the validator has against a policy.
func (s *statement) refused(v *validate.Validator, p *ast.Policy, in source) (problems Problems) {
	if err := v.Policy("", p); err != nil {
		for _, message := range messages(err) {
			problems = append(problems, in.at(s.name, hint(message), finder(message)))
		}
	}
	return problems
}

// typeTested returns the type that `is` asks for: the validator takes an
// unknown one for a test that is never so.
func typeTested(n ast.IsNode) types.EntityType {
	switch n := n.(type) {
	case ast.NodeTypeIs:
		return n.EntityType
	case ast.NodeTypeIsIn:
		return n.EntityType
	default:
		return ""
	}
}

func knownType(name types.EntityType) bool {
	_, known := base.Entities[name]
	return known || name == "Action"
}

// validator returns what holds this policy against the schema, with the
// arguments it reads.
func (s *statement) validator() *validate.Validator {
	if len(s.reads.input) == 0 {
		return baseCheck
	}
	input := resolved.Attribute{Type: inputOf(s.ast)}
	own := *base
	own.Actions = maps.Clone(base.Actions)
	for uid, action := range own.Actions {
		applies := *action.AppliesTo
		applies.Context = maps.Clone(applies.Context)
		applies.Context["input"] = input
		action.AppliesTo = &applies
		own.Actions[uid] = action
	}
	return validate.New(&own)
}

// messages returns each thing the validator found once, in a fixed order.
func messages(err error) []string {
	var all []string
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			all = append(all, messages(e)...)
		}
	} else {
		all = []string{perAction.ReplaceAllString(err.Error(), "")}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	unknown := slices.ContainsFunc(all, func(m string) bool { return strings.HasPrefix(m, "unrecognized") })
	return slices.DeleteFunc(all, func(m string) bool {
		of, onPlugin := strings.CutSuffix(m, onPlugin)
		return onPlugin && slices.Contains(all, of+" on entity type `Operation` not found") || // the same slip for both kinds of resource
			unknown && strings.HasPrefix(m, inapplicable)
	})
}

// What the validator says, as far as it is told from other words.
const (
	onPlugin     = " on entity type `Plugin` not found"
	inapplicable = "unable to find an applicable action"
	unguarded    = "unable to guarantee safety of access to optional attribute"
)

var perAction = regexp.MustCompile(` for Action::"[a-z]+"`) // it says the same of each action

var named = regexp.MustCompile("`([^`]+)`")

// finder returns what recognises the word that the validator complains of.
func finder(message string) func(before, here, after string) bool {
	m := named.FindStringSubmatch(message)
	if m == nil {
		return nil
	}
	name := m[1]
	switch {
	case strings.Contains(message, "attribute"):
		name = name[strings.LastIndexAny(name, ".[")+1:]
		name = strings.Trim(name, `"]`)
		return func(before, here, _ string) bool {
			return (before == "." || before == "has") && here == name || (before == "[" || before == "has") && here == literal(name)
		}
	case strings.Contains(message, "action"):
		id := name[strings.LastIndex(name, "::")+2:]
		return func(before, here, _ string) bool { return before == "::" && here == id }
	case strings.Contains(message, "entity type"):
		first, _, _ := strings.Cut(name, "::")
		return func(before, here, after string) bool {
			return here == first && (after == "::" || before == "is") && before != "::"
		}
	}
	return nil
}

// hint adds what the author probably wants to do.
func hint(message string) string {
	switch {
	case strings.HasSuffix(message, onPlugin):
		return message + "; only operations have it: write `action == Action::\"execute\"` or `resource is Operation && ...`"
	case strings.HasPrefix(message, unguarded):
		name := strings.TrimPrefix(named.FindStringSubmatch(message)[1], "input.")
		return fmt.Sprintf("not every call has the argument %s: ask first, as in `context.input has %s && context.input.%s ...`", name, name, name)
	case strings.HasPrefix(message, inapplicable):
		return "no such principal can ever do this to such a resource: execute, list and approve are done to an Operation, configure to a Plugin"
	case strings.HasPrefix(message, "unrecognized entity type"):
		var names []string
		for name := range base.Entities {
			names = append(names, string(name))
		}
		slices.Sort(names)
		return message + "; there are " + strings.Join(names, ", ")
	case strings.HasPrefix(message, "unrecognized action"):
		return message + "; there are execute, list, approve and configure"
	}
	return message
}

// outside returns a word that an attribute with a closed list of values is
// compared with and can never have.
func outside(n ast.IsNode) (word, message string) {
	var sides ast.BinaryNode
	switch n := n.(type) {
	case ast.NodeTypeEquals:
		sides = n.BinaryNode
	case ast.NodeTypeNotEquals:
		sides = n.BinaryNode
	case ast.NodeTypeContains:
		sides = n.BinaryNode
	default:
		return "", ""
	}
	for _, pair := range [][2]ast.IsNode{{sides.Left, sides.Right}, {sides.Right, sides.Left}} {
		variable, path := chain(pair[0])
		if variable != "resource" || len(path) != 1 {
			continue
		}
		allowed := vocabularies[path[0]]
		for _, word := range words(pair[1]) {
			if allowed != nil && !slices.Contains(allowed, word) {
				return word, fmt.Sprintf("resource.%s is never %q; it is one of %s", path[0], word, strings.Join(allowed, ", "))
			}
		}
	}
	return "", ""
}

// words returns the strings that a literal is made of.
func words(n ast.IsNode) (all []string) {
	switch n := n.(type) {
	case ast.NodeValue:
		if text, ok := n.Value.(types.String); ok {
			return []string{string(text)}
		}
	case ast.NodeTypeSet:
		for _, e := range n.Elements {
			all = append(all, words(e)...)
		}
	}
	return all
}

// entities returns the entities that a policy names.
func entities(p *ast.Policy) (all []types.EntityUID) {
	for _, scope := range []ast.IsScopeNode{p.Principal, p.Resource} {
		switch s := scope.(type) {
		case ast.ScopeTypeEq:
			all = append(all, s.Entity)
		case ast.ScopeTypeIn:
			all = append(all, s.Entity)
		case ast.ScopeTypeIsIn:
			all = append(all, s.Entity)
		}
	}
	for _, c := range p.Conditions {
		ast.Inspect(ast.NewNode(c.Body), func(n ast.IsNode) bool {
			if v, ok := n.(ast.NodeValue); ok {
				if uid, ok := v.Value.(types.EntityUID); ok {
					all = append(all, uid)
				}
			}
			return true
		})
	}
	return all
}

// effectPatterns returns the patterns in the id of an Effects.
func effectPatterns(id string) []string {
	patterns := strings.Split(id, ",")
	for i := range patterns {
		patterns[i] = strings.TrimSpace(patterns[i])
	}
	return patterns
}
