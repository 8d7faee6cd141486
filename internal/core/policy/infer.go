package policy

import (
	"slices"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
	"github.com/cedar-policy/cedar-go/x/exp/schema/resolved"
)

// Every operation has arguments of its own, so no schema can say what
// context.input holds. What a policy takes an argument for shows in its use:
// after `context.input.amount > 100` it is a Long. So each policy is held
// against a schema in which input has the members that this policy reads, with
// the types it reads them as, all of them optional. What follows:
//
//   - a policy that takes one argument for two types is refused;
//   - one that reads an argument without asking first is refused:
//     `context.input has amount && context.input.amount > 100`;
//   - a call whose argument is of another type makes the policy fail, which
//     denies the call.

// reads is what a policy looks at in the context.
type reads struct {
	context set      // members of the context
	input   []string // members of the input
	bare    string   // the context or the input as a whole, which is refused
}

// A set is a set of the context's members, by place in contextNames.
type set uint16

var contextNames = []string{"scopes", "origin", "tenant", "consent", "actor", "agent", "depth", "labels", "input"}

// inputMember is the arguments; everything is what an explanation looks at.
var (
	inputMember = member("input")
	everything  = set(1)<<len(contextNames) - 1
)

func member(name string) set {
	return 1 << max(slices.Index(contextNames, name), 0) // the validator refuses others
}

// chain returns the members that a node reads one after another, and the
// variable they begin at: context.input.amount is input, amount of context.
func chain(n ast.IsNode) (variable string, path []string) {
	switch n := n.(type) {
	case ast.NodeTypeVariable:
		return string(n.Name), nil
	case ast.NodeTypeAccess:
		if variable, path = chain(n.Arg); variable != "" {
			path = append(path, string(n.Value))
		}
	case ast.NodeTypeHas:
		if variable, path = chain(n.Arg); variable != "" {
			path = append(path, string(n.Value))
		}
	}
	return variable, path
}

// readsOf finds what a policy looks at in the context.
func readsOf(p *ast.Policy) (r reads) {
	for _, c := range p.Conditions {
		ast.Inspect(ast.NewNode(c.Body), func(n ast.IsNode) bool {
			variable, path := chain(n)
			if variable != "context" {
				return true
			}
			_, asks := n.(ast.NodeTypeHas)
			switch {
			case len(path) == 0:
				r.bare = "context"
			case path[0] == "input" && len(path) == 1 && !asks:
				r.bare = "context.input"
			case path[0] == "input" && len(path) > 1:
				if !slices.Contains(r.input, path[1]) {
					r.input = append(r.input, path[1])
				}
				r.context |= member("input")
			default:
				r.context |= member(path[0])
			}
			return false
		})
	}
	return r
}

// An argument is what a policy takes one member of the input for.
type argument struct {
	as      resolved.IsType // nil as long as no use shows it
	members map[string]*argument
}

func (a *argument) member(name string) *argument {
	if a.members == nil {
		a.members = map[string]*argument{}
	}
	if a.members[name] == nil {
		a.members[name] = &argument{}
	}
	return a.members[name]
}

// record returns the members as a type, all of them optional.
func (a *argument) record() resolved.RecordType {
	record := resolved.RecordType{}
	for name, m := range a.members {
		as := m.as
		switch {
		case len(m.members) > 0:
			as = m.record()
		case as == nil:
			as = resolved.StringType{}
		}
		record[types.String(name)] = resolved.Attribute{Type: as, Optional: true}
	}
	return record
}

// inputOf returns the type of the input that a policy reads.
func inputOf(p *ast.Policy) resolved.RecordType {
	in := inference{}
	for _, c := range p.Conditions {
		in.visit(c.Body, resolved.BoolType{})
	}
	return in.input.record()
}

// An inference walks over a policy and notes what it takes arguments for.
type inference struct{ input argument }

// visit walks over n, whose value is used as the type as; nil is unknown.
func (in *inference) visit(n ast.IsNode, as resolved.IsType) {
	if variable, path := chain(n); variable == "context" && len(path) > 1 && path[0] == "input" {
		_, asks := n.(ast.NodeTypeHas)
		a := &in.input
		for _, name := range path[1:] {
			a = a.member(name)
		}
		if !asks && a.as == nil {
			a.as = as
		}
		return
	}
	flag, long, text := resolved.BoolType{}, resolved.LongType{}, resolved.StringType{}
	switch n := n.(type) {
	case ast.NodeTypeAnd:
		in.both(n.BinaryNode, flag, flag)
	case ast.NodeTypeOr:
		in.both(n.BinaryNode, flag, flag)
	case ast.NodeTypeNot:
		in.visit(n.Arg, flag)
	case ast.NodeTypeIfThenElse:
		in.visit(n.If, flag)
		in.visit(n.Then, as)
		in.visit(n.Else, as)
	case ast.NodeTypeLessThan:
		in.alike(n.BinaryNode, long)
	case ast.NodeTypeLessThanOrEqual:
		in.alike(n.BinaryNode, long)
	case ast.NodeTypeGreaterThan:
		in.alike(n.BinaryNode, long)
	case ast.NodeTypeGreaterThanOrEqual:
		in.alike(n.BinaryNode, long)
	case ast.NodeTypeEquals:
		in.alike(n.BinaryNode, nil)
	case ast.NodeTypeNotEquals:
		in.alike(n.BinaryNode, nil)
	case ast.NodeTypeAdd:
		in.both(n.BinaryNode, long, long)
	case ast.NodeTypeSub:
		in.both(n.BinaryNode, long, long)
	case ast.NodeTypeMult:
		in.both(n.BinaryNode, long, long)
	case ast.NodeTypeNegate:
		in.visit(n.Arg, long)
	case ast.NodeTypeLike:
		in.visit(n.Arg, text)
	case ast.NodeTypeContains:
		element := typeOf(n.Right)
		if element == nil {
			element = text
		}
		in.visit(n.Left, resolved.SetType{Element: element})
		if s, ok := typeOf(n.Left).(resolved.SetType); ok {
			element = s.Element
		}
		in.visit(n.Right, element)
	case ast.NodeTypeContainsAll:
		in.alike(n.BinaryNode, resolved.SetType{Element: text})
	case ast.NodeTypeContainsAny:
		in.alike(n.BinaryNode, resolved.SetType{Element: text})
	case ast.NodeTypeIsEmpty:
		in.visit(n.Arg, resolved.SetType{Element: text})
	case ast.NodeTypeExtensionCall:
		for _, arg := range n.Args { // of JSON only numbers become values of an extension
			in.visit(arg, resolved.ExtensionType("decimal"))
		}
	default:
		in.each(n)
	}
}

// each walks over the parts of a node whose types say nothing of arguments.
func (in *inference) each(n ast.IsNode) {
	ast.Inspect(ast.NewNode(n), func(part ast.IsNode) bool {
		if any(part) == any(nil) {
			return false
		}
		if variable, path := chain(part); variable == "context" && len(path) > 1 && path[0] == "input" {
			in.visit(part, nil)
			return false
		}
		return true
	})
}

func (in *inference) both(n ast.BinaryNode, left, right resolved.IsType) {
	in.visit(n.Left, left)
	in.visit(n.Right, right)
}

// alike visits two sides that are of one type: what either shows, else usual.
func (in *inference) alike(n ast.BinaryNode, usual resolved.IsType) {
	left, right := typeOf(n.Right), typeOf(n.Left)
	if left == nil {
		left = usual
	}
	if right == nil {
		right = usual
	}
	in.both(n, left, right)
}

// typeOf returns the type of what a node shows by itself, nil where it does not.
func typeOf(n ast.IsNode) resolved.IsType {
	switch n := n.(type) {
	case ast.NodeValue:
		switch v := n.Value.(type) {
		case types.String:
			return resolved.StringType{}
		case types.Long:
			return resolved.LongType{}
		case types.Boolean:
			return resolved.BoolType{}
		case types.EntityUID:
			return resolved.EntityType(v.Type)
		}
	case ast.NodeTypeSet:
		for _, e := range n.Elements {
			if element := typeOf(e); element != nil {
				return resolved.SetType{Element: element}
			}
		}
	case ast.NodeTypeAdd, ast.NodeTypeSub, ast.NodeTypeMult, ast.NodeTypeNegate:
		return resolved.LongType{}
	case ast.NodeTypeExtensionCall:
		if n.Name == "decimal" {
			return resolved.ExtensionType("decimal")
		}
	case ast.NodeTypeAccess:
		return attributeType(n)
	}
	return nil
}

// attributeType returns the type of an attribute that the schema knows.
func attributeType(n ast.NodeTypeAccess) resolved.IsType {
	variable, path := chain(n)
	if len(path) != 1 {
		return nil
	}
	var shape resolved.RecordType
	switch name := types.String(path[0]); variable {
	case "principal":
		return base.Entities["User"].Shape[name].Type
	case "resource":
		if shape = base.Entities["Operation"].Shape; shape[name].Type == nil {
			shape = base.Entities["Plugin"].Shape
		}
		return shape[name].Type
	case "context":
		return base.Actions[actions[Execute]].AppliesTo.Context[name].Type
	}
	return nil
}
