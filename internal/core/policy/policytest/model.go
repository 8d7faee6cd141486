// Package policytest is a second opinion on what policies mean: a small model
// of them that is obvious rather than fast, shares no code with package policy
// or with Cedar, and prints itself as Cedar, so that both can be asked the same.
package policytest

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// A Policy permits or forbids what fits its scopes and conditions.
type Policy struct {
	ID       string
	Permit   bool
	Approval bool
	Trusting bool // of untrusted arguments
	Who      Scope
	Actions  []string // any where it is empty
	What     Scope
	When     []Expr
	Unless   []Expr
}

// A Scope is about one entity, its members, or a type; the zero value is about
// everything.
type Scope struct {
	Is     string // a type
	Equals string // an entity, as Type::"id"
	In     string // an entity
}

// A Request is who asks for what.
type Request struct {
	Type, Principal string // User, ann
	Tenant          string
	Groups, Roles   []string
	Action          string
	Plugin          string
	Operation       string // "" where a plugin is meant
	Kind            string
	Effects, Tags   []string
	Scopes, Consent []string
	Labels          []string
	Origin          string
	Depth           int64
	Input           map[string]any // bool, int64, string, []string
	Actor           *Actor         // who acts, if that is an agent or a service
}

// An Actor is an agent or a service that acts for a principal.
type Actor struct {
	Type, ID      string // Agent, planner
	Groups, Roles []string
}

// The verdicts.
const (
	Allow    = "allow"
	Approval = "allow_with_approval"
	Deny     = "deny"
)

// Decide returns the verdict, and the policies that it comes from: sorted, none
// where nothing allows it. failed reports whether a policy could not be
// evaluated, forbidden whether one forbids it.
//
// If another principal acts for the principal, both must be allowed: the verdict is the
// stricter of the two, and from lists the policies that produced it.
func Decide(policies []Policy, r *Request) (verdict string, from []string, forbidden, failed bool) {
	verdict, from, forbidden, failed = decide(policies, r)
	a := r.Actor
	if a == nil || a.Type == r.Type && a.ID == r.Principal {
		return verdict, from, forbidden, failed
	}
	as := *r
	as.Type, as.Principal, as.Groups, as.Roles = a.Type, a.ID, a.Groups, a.Roles
	other, others, otherForbidden, otherFailed := decide(policies, &as)
	strict := []string{Allow, Approval, Deny}
	switch mine, theirs := slices.Index(strict, verdict), slices.Index(strict, other); {
	case theirs > mine:
		return other, others, otherForbidden, otherFailed
	case theirs == mine:
		from = append(from, others...)
		slices.Sort(from)
		return verdict, from, forbidden || otherForbidden, failed || otherFailed
	default:
		return verdict, from, forbidden, failed
	}
}

// decide judges the principal alone.
func decide(policies []Policy, r *Request) (verdict string, from []string, forbidden, failed bool) {
	var permits, trusting, approvals, denials []string
	tainted := r.Action == "execute" && len(r.Effects) > 0 && slices.Contains(r.Labels, "untrusted")
	for _, p := range policies {
		matches, err := p.matches(r)
		switch {
		case err != nil:
			failed = true
			denials = append(denials, p.ID)
		case !matches:
		case !p.Permit:
			forbidden = true
			denials = append(denials, p.ID)
		case p.Approval:
			approvals = append(approvals, p.ID)
		case p.Trusting:
			trusting = append(trusting, p.ID)
		default:
			permits = append(permits, p.ID)
		}
	}
	plain := append(slices.Clone(permits), trusting...)
	switch {
	case len(denials) > 0:
		verdict, from = Deny, denials
	case len(approvals) > 0:
		verdict, from = Approval, approvals
	case tainted && len(trusting) > 0:
		verdict, from = Allow, trusting
	case tainted && len(permits) > 0:
		verdict, from = Approval, permits
	case len(plain) > 0:
		verdict, from = Allow, plain
	default:
		verdict = Deny
	}
	slices.Sort(from)
	return verdict, from, forbidden, failed
}

func (p *Policy) matches(r *Request) (bool, error) {
	if len(p.Actions) > 0 && !slices.Contains(p.Actions, r.Action) {
		return false, nil
	}
	if !p.Who.fits(r.who()) || !p.What.fits(r.what()) {
		return false, nil
	}
	for _, e := range p.When {
		if v, err := truth(e, r); err != nil || !v {
			return false, err
		}
	}
	for _, e := range p.Unless {
		if v, err := truth(e, r); err != nil || v {
			return false, err
		}
	}
	return true, nil
}

// who returns the principal and all it is in, itself first.
func (r *Request) who() []string {
	all := []string{entity(r.Type, r.Principal), entity("Tenant", r.Tenant)}
	for _, g := range r.Groups {
		all = append(all, entity("Group", g))
	}
	for _, role := range r.Roles {
		all = append(all, entity("Role", role))
	}
	return all
}

// what returns what is asked for and all it is in, itself first. Effects are
// not listed: they are asked by pattern.
func (r *Request) what() []string {
	if r.Operation == "" {
		return []string{entity("Plugin", r.Plugin)}
	}
	return []string{entity("Operation", r.Plugin+"/"+r.Operation), entity("Plugin", r.Plugin)}
}

func entity(kind, id string) string { return fmt.Sprintf("%s::%q", kind, id) }

func (s Scope) fits(lineage []string) bool {
	return (s.Is == "" || strings.HasPrefix(lineage[0], s.Is+"::")) && (s.Equals == "" || lineage[0] == s.Equals) && (s.In == "" || slices.Contains(lineage, s.In))
}

// An Expr has a value for a request, or none because it fails. Values are bool,
// int64, string and []string for a set.
type Expr interface {
	fmt.Stringer // as Cedar
	eval(r *Request) (any, error)
}

var errType = errors.New("type error")

func as[T any](e Expr, r *Request) (v T, err error) {
	value, err := e.eval(r)
	if err != nil {
		return v, err
	}
	v, ok := value.(T)
	if !ok {
		return v, errType
	}
	return v, nil
}

func truth(e Expr, r *Request) (bool, error) { return as[bool](e, r) }

// The expressions.
type (
	Lit   struct{ Value any }    // a literal
	Attr  struct{ Path string }  // resource.kind, context.depth, context.input.x, ...
	Has   struct{ Name string }  // context.input has x
	Not   struct{ A Expr }       // !a
	And   struct{ A, B Expr }    // a && b
	Or    struct{ A, B Expr }    // a || b
	If    struct{ A, B, C Expr } // if a then b else c
	Equal struct{ A, B Expr }    // a == b
	Less  struct{ A, B Expr }    // a < b
	Add   struct{ A, B Expr }    // a + b
	Times struct{ A, B Expr }    // a * b
	Like  struct {               // a like "x*"
		A       Expr
		Pattern string
	}
	Contains    struct{ A, B Expr }               // a.contains(b)
	ContainsAll struct{ A, B Expr }               // a.containsAll(b)
	ContainsAny struct{ A, B Expr }               // a.containsAny(b)
	IsEmpty     struct{ A Expr }                  // a.isEmpty()
	In          struct{ Variable, Entity string } // principal in Group::"x"
	Is          struct{ Variable, Type string }   // principal is User
	Effects     struct{ Patterns []string }       // resource in Effects::"x_*"
)

func (e Lit) eval(*Request) (any, error) { return e.Value, nil }

func (e Attr) eval(r *Request) (any, error) {
	if name, ok := strings.CutPrefix(e.Path, "context.input."); ok {
		if v, has := r.Input[name]; has {
			return v, nil
		}
		return nil, errors.New("no such argument")
	}
	switch e.Path {
	case "principal.id":
		return r.Principal, nil
	case "resource.kind":
		return r.Kind, nil
	case "resource.effects":
		return r.Effects, nil
	case "resource.tags":
		return r.Tags, nil
	case "resource.name":
		return r.Plugin + "/" + r.Operation, nil
	case "context.scopes":
		return r.Scopes, nil
	case "context.consent":
		return r.Consent, nil
	case "context.labels":
		return r.Labels, nil
	case "context.origin":
		return r.Origin, nil
	case "context.depth":
		return r.Depth, nil
	default:
		panic(e.Path)
	}
}

func (e Has) eval(r *Request) (any, error) { _, has := r.Input[e.Name]; return has, nil }

func (e Not) eval(r *Request) (any, error) {
	v, err := truth(e.A, r)
	return !v, err
}

func (e And) eval(r *Request) (any, error) {
	if v, err := truth(e.A, r); err != nil || !v {
		return false, err
	}
	return truth(e.B, r)
}

func (e Or) eval(r *Request) (any, error) {
	if v, err := truth(e.A, r); err != nil || v {
		return true, err
	}
	return truth(e.B, r)
}

func (e If) eval(r *Request) (any, error) {
	v, err := truth(e.A, r)
	if err != nil {
		return nil, err
	}
	if v {
		return e.B.eval(r)
	}
	return e.C.eval(r)
}

func (e Equal) eval(r *Request) (any, error) {
	a, err := e.A.eval(r)
	if err != nil {
		return nil, err
	}
	b, err := e.B.eval(r)
	if err != nil {
		return nil, err
	}
	x, isSet := a.([]string)
	y, bothSets := b.([]string)
	if isSet || bothSets {
		return isSet && bothSets && covers(x, y) && covers(y, x), nil
	}
	return a == b, nil
}

func (e Less) eval(r *Request) (any, error) {
	a, b, err := two[int64](e.A, e.B, r)
	return a < b, err
}

func (e Add) eval(r *Request) (any, error) { return arithmetic(e.A, e.B, r, (*big.Int).Add) }

func (e Times) eval(r *Request) (any, error) { return arithmetic(e.A, e.B, r, (*big.Int).Mul) }

func arithmetic(a, b Expr, r *Request, do func(z, x, y *big.Int) *big.Int) (any, error) {
	x, y, err := two[int64](a, b, r)
	if err != nil {
		return nil, err
	}
	z := do(new(big.Int), big.NewInt(x), big.NewInt(y))
	if !z.IsInt64() {
		return nil, errors.New("overflow")
	}
	return z.Int64(), nil
}

func two[T any](a, b Expr, r *Request) (x, y T, err error) {
	if x, err = as[T](a, r); err == nil {
		y, err = as[T](b, r)
	}
	return x, y, err
}

func (e Like) eval(r *Request) (any, error) {
	v, err := as[string](e.A, r)
	return glob(e.Pattern, v), err
}

// glob reports whether text fits a pattern in which * is anything.
func glob(pattern, text string) bool {
	if pattern == "" {
		return text == ""
	}
	if pattern[0] == '*' {
		return glob(pattern[1:], text) || text != "" && glob(pattern, text[1:])
	}
	return text != "" && pattern[0] == text[0] && glob(pattern[1:], text[1:])
}

func (e Contains) eval(r *Request) (any, error) {
	set, err := as[[]string](e.A, r)
	if err != nil {
		return nil, err
	}
	v, err := e.B.eval(r)
	if err != nil {
		return nil, err
	}
	text, ok := v.(string)
	return ok && slices.Contains(set, text), nil
}

func (e ContainsAll) eval(r *Request) (any, error) {
	a, b, err := two[[]string](e.A, e.B, r)
	return covers(a, b), err
}

func (e ContainsAny) eval(r *Request) (any, error) {
	a, b, err := two[[]string](e.A, e.B, r)
	return slices.ContainsFunc(b, func(x string) bool { return slices.Contains(a, x) }), err
}

func covers(all, some []string) bool {
	return !slices.ContainsFunc(some, func(x string) bool { return !slices.Contains(all, x) })
}

func (e IsEmpty) eval(r *Request) (any, error) {
	set, err := as[[]string](e.A, r)
	return len(set) == 0, err
}

func (e In) eval(r *Request) (any, error) {
	lineage := r.who()
	if e.Variable == "resource" {
		lineage = r.what()
	}
	return slices.Contains(lineage, e.Entity), nil
}

func (e Is) eval(r *Request) (any, error) {
	lineage := r.who()
	if e.Variable == "resource" {
		lineage = r.what()
	}
	return strings.HasPrefix(lineage[0], e.Type+"::"), nil
}

func (e Effects) eval(r *Request) (any, error) {
	for _, effect := range r.Effects {
		if !slices.ContainsFunc(e.Patterns, func(p string) bool { return glob(p, effect) }) {
			return false, nil
		}
	}
	return true, nil
}
