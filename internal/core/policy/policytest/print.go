package policytest

import (
	"fmt"
	"strconv"
	"strings"
)

// String returns the policy as Cedar.
func (p Policy) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "@id(%q)\n", p.ID)
	if p.Approval {
		b.WriteString("@approval\n")
	}
	if p.Trusting {
		b.WriteString("@untrusted(\"allow\")\n")
	}
	verb := "forbid"
	if p.Permit {
		verb = "permit"
	}
	action := ""
	switch len(p.Actions) {
	case 0:
	case 1:
		action = " == " + entity("Action", p.Actions[0])
	default:
		all := make([]string, len(p.Actions))
		for i, a := range p.Actions {
			all[i] = entity("Action", a)
		}
		action = " in [" + strings.Join(all, ", ") + "]"
	}
	fmt.Fprintf(&b, "%s (principal%s, action%s, resource%s)", verb, p.Who, action, p.What)
	for _, e := range p.When {
		fmt.Fprintf(&b, "\nwhen { %s }", e)
	}
	for _, e := range p.Unless {
		fmt.Fprintf(&b, "\nunless { %s }", e)
	}
	return b.String() + ";\n"
}

// String returns what follows the variable in a scope.
func (s Scope) String() string {
	switch {
	case s.Is != "" && s.In != "":
		return " is " + s.Is + " in " + s.In
	case s.Is != "":
		return " is " + s.Is
	case s.In != "":
		return " in " + s.In
	case s.Equals != "":
		return " == " + s.Equals
	}
	return ""
}

func (e Lit) String() string {
	switch v := e.Value.(type) {
	case string:
		return strconv.Quote(v)
	case []string:
		quoted := make([]string, len(v))
		for i, text := range v {
			quoted[i] = strconv.Quote(text)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	default:
		return fmt.Sprint(v)
	}
}

func (e Attr) String() string        { return e.Path }
func (e Has) String() string         { return "(context.input has " + e.Name + ")" }
func (e Not) String() string         { return fmt.Sprintf("!(%s)", e.A) }
func (e And) String() string         { return fmt.Sprintf("(%s && %s)", e.A, e.B) }
func (e Or) String() string          { return fmt.Sprintf("(%s || %s)", e.A, e.B) }
func (e If) String() string          { return fmt.Sprintf("(if %s then %s else %s)", e.A, e.B, e.C) }
func (e Equal) String() string       { return fmt.Sprintf("(%s == %s)", e.A, e.B) }
func (e Less) String() string        { return fmt.Sprintf("(%s < %s)", e.A, e.B) }
func (e Add) String() string         { return fmt.Sprintf("(%s + %s)", e.A, e.B) }
func (e Times) String() string       { return fmt.Sprintf("(%s * %s)", e.A, e.B) }
func (e Like) String() string        { return fmt.Sprintf("(%s like %q)", e.A, e.Pattern) }
func (e Contains) String() string    { return fmt.Sprintf("%s.contains(%s)", e.A, e.B) }
func (e ContainsAll) String() string { return fmt.Sprintf("%s.containsAll(%s)", e.A, e.B) }
func (e ContainsAny) String() string { return fmt.Sprintf("%s.containsAny(%s)", e.A, e.B) }
func (e IsEmpty) String() string     { return fmt.Sprintf("%s.isEmpty()", e.A) }
func (e In) String() string          { return fmt.Sprintf("(%s in %s)", e.Variable, e.Entity) }
func (e Is) String() string          { return fmt.Sprintf("(%s is %s)", e.Variable, e.Type) }
func (e Effects) String() string {
	return "(resource in " + entity("Effects", strings.Join(e.Patterns, ", ")) + ")"
}
