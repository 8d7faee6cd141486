package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go"
	cedarast "github.com/cedar-policy/cedar-go/ast"
	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
	"github.com/cedar-policy/cedar-go/x/exp/eval"

	"github.com/mortise-dev/mortise/plugin"
)

// An Explanation is a decision with everything that led to it.
type Explanation struct {
	plugin.Decision
	Question   Asked     `json:"question"`
	Permits    []Mention `json:"permits"`    // that matched; also where a forbid wins over them
	Forbids    []Mention `json:"forbids"`    // that matched
	Failed     []Mention `json:"failed"`     // that could not be evaluated
	Considered int       `json:"considered"` // policies whose scope could fit

	// Judged reports whether conditions on arguments were judged: without an
	// input there is nothing to judge them by.
	Judged bool `json:"arguments_judged"`

	Policies int `json:"policies"` // in the set

	// Acting is the explanation for the principal that acts for the one asked about. The
	// verdict is the stricter of the two.
	Acting *Explanation `json:"acting,omitempty"`

	// Nearest are the permits that lack least, where nothing allows it.
	Nearest []Near `json:"nearest,omitempty"`

	// MissingScopes are permissions of the operation that the principal does not
	// hold: such a call is refused before policy is asked.
	MissingScopes []string `json:"missing_scopes,omitempty"`
}

// Asked is a question in words.
type Asked struct {
	Principal string `json:"principal"`
	Action    Action `json:"action"`
	Resource  string `json:"resource"`
}

// A Mention is one policy that had something to say.
type Mention struct {
	Policy   string `json:"policy"` // what it is called: file:line and its @id
	File     string `json:"file"`
	Line     int    `json:"line"`
	ID       string `json:"id,omitempty"`
	Approval bool   `json:"approval,omitempty"`
	Trusting bool   `json:"trusting,omitempty"` // by @untrusted("allow")
	Why      string `json:"why,omitempty"`      // of @approval or @reason
	Error    string `json:"error,omitempty"`    // why it could not be evaluated
	Text     string `json:"text"`
}

// A Near is a permit that does not match, and what it asks for that is not so.
type Near struct {
	Mention
	Missing []string `json:"missing"`
}

// Explain decides a question and tells how. It looks at more than [Engine.Ask]
// does and is slower; the decision is the same.
func (e *Engine) Explain(q *Question) Explanation {
	p := e.now.Load()
	x := p.explain(e, q)
	if acting := e.acting(q); acting != nil {
		other := p.explain(e, acting)
		x.Acting = &other
		x.Decision = stricter(judged{q, x.Decision}, judged{acting, other.Decision})
	}
	return x
}

// explain explains a question about its principal alone.
func (p *policies) explain(e *Engine, q *Question) Explanation {
	x := Explanation{Decision: plugin.Decision{Verdict: plugin.Deny, Policy: p.version}, Policies: len(p.all),
		Judged:  q.Action != Execute || len(q.Call.Input) > 0,
		Permits: []Mention{}, Forbids: []Mention{}, Failed: []Mention{}}
	r, refused := p.request(e, q)
	if refused != "" {
		x.Reasons = []string{refused}
		return x
	}
	x.Question = Asked{r.subject.entity.UID.String(), r.action, r.resource.entity.UID.String()}
	found := p.candidates(r)
	x.Considered = found.len()
	context, err := r.context(found.reads())
	if err != nil {
		x.Reasons = []string{err.Error()}
		return x
	}
	o := p.judge(r, found, context)
	x.Verdict, x.Reasons = o.verdict(), o.reasons(r)
	if len(o.forbids) > 0 { // Cedar does not say what else matched
		permits := p.judge(r, found.permits(), context)
		o.permits = permits.permits
	}
	for _, s := range o.permits {
		x.Permits = append(x.Permits, s.mention())
	}
	for _, s := range o.forbids {
		x.Forbids = append(x.Forbids, s.mention())
	}
	for _, f := range o.failed {
		m := f.mention()
		m.Error = f.message
		x.Failed = append(x.Failed, m)
	}
	if x.Verdict == plugin.Deny && len(o.forbids)+len(o.failed) == 0 {
		x.Nearest = p.nearest(r)
	}
	if r.action == Execute && !slices.Contains(q.Call.Principal.Scopes, "*") {
		for _, scope := range q.Target.Operation.Permissions {
			if !slices.Contains(q.Call.Principal.Scopes, scope) {
				x.MissingScopes = append(x.MissingScopes, scope)
			}
		}
	}
	return x
}

func (s *statement) mention() Mention {
	return Mention{Policy: s.label, File: s.file, Line: s.line, ID: s.name, Approval: s.approval, Trusting: s.trusting, Why: s.why, Text: string(s.policy.MarshalCedar())}
}

// permits returns those of the candidates that permit.
func (c candidates) permits() candidates {
	only := &group{}
	for _, g := range c {
		for _, s := range g.statements {
			if s.permits() {
				only.statements = append(only.statements, s)
			}
		}
	}
	return candidates{only}
}

// maxNearest bounds the permits that an explanation shows.
const maxNearest = 3

// nearest returns the permits that lack least, each with what it lacks.
func (p *policies) nearest(r *request) []Near {
	var all []Near
	for _, s := range p.all {
		if !s.permits() {
			continue
		}
		context, err := r.context(reads{context: everything, input: s.reads.input})
		if err != nil {
			continue
		}
		env := eval.Env{Entities: r, Principal: r.subject.entity.UID, Action: actions[r.action], Resource: r.resource.entity.UID, Context: context}
		near := Near{Mention: s.mention()}
		for _, c := range clauses(s.ast) {
			if v, err := eval.Eval(c.node, env); err != nil || v != types.Value(types.True) {
				near.Missing = append(near.Missing, c.text)
			}
		}
		all = append(all, near)
	}
	slices.SortStableFunc(all, func(a, b Near) int { return cmp.Compare(a.distance(), b.distance()) })
	// A rule may be several policies of one name; the nearest speaks for them.
	shown := all[:0]
	for _, near := range all {
		if len(shown) < maxNearest && !slices.ContainsFunc(shown, func(n Near) bool { return n.Policy == near.Policy }) {
			shown = append(shown, near)
		}
	}
	return shown
}

// distance counts what is missing. A policy about another resource is far off.
func (n Near) distance() (far int) {
	for _, clause := range n.Missing {
		far++
		if strings.HasPrefix(clause, "resource ==") || strings.HasPrefix(clause, "resource in Plugin") || strings.HasPrefix(clause, "action") {
			far += 10
		}
	}
	return far
}

// A clause is one of the things that a policy asks for, all of which must be so.
type clause struct {
	node ast.IsNode
	text string
}

// clauses takes a policy apart.
func clauses(p *ast.Policy) (all []clause) {
	add := func(n ast.Node) { all = append(all, clause{n.AsIsNode(), shownNode(n)}) }
	for _, scope := range []struct {
		variable ast.Node
		is       ast.IsScopeNode
	}{{ast.Principal(), p.Principal}, {ast.Action(), p.Action}, {ast.Resource(), p.Resource}} {
		switch s := scope.is.(type) {
		case ast.ScopeTypeEq:
			add(scope.variable.Equal(ast.Value(s.Entity)))
		case ast.ScopeTypeIn:
			add(scope.variable.In(ast.Value(s.Entity)))
		case ast.ScopeTypeInSet:
			members := make([]ast.Node, len(s.Entities))
			for i, uid := range s.Entities {
				members[i] = ast.Value(uid)
			}
			add(scope.variable.In(ast.Set(members...)))
		case ast.ScopeTypeIs:
			add(scope.variable.Is(s.Type))
		case ast.ScopeTypeIsIn:
			add(scope.variable.IsIn(s.Type, ast.Value(s.Entity)))
		}
	}
	for _, c := range p.Conditions {
		if c.Condition == ast.ConditionUnless {
			add(ast.Not(ast.NewNode(c.Body)))
			continue
		}
		for _, part := range conjuncts(c.Body) {
			add(ast.NewNode(part))
		}
	}
	return all
}

// conjuncts takes a && b && c apart. A part that is only safe after the one
// before it, as after has, fails when that one is not so: it is missing too.
func conjuncts(n ast.IsNode) []ast.IsNode {
	if and, ok := n.(ast.NodeTypeAnd); ok {
		return append(conjuncts(and.Left), conjuncts(and.Right)...)
	}
	return []ast.IsNode{n}
}

// shownNode returns an expression as Cedar writes it.
func shownNode(n ast.Node) string {
	p := cedar.NewPolicyFromAST((*cedarast.Policy)(ast.Permit().When(n)))
	text := string(p.MarshalCedar())
	if start := strings.Index(text, "when {"); start >= 0 {
		text = text[start+len("when {"):]
	}
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), ";")), "}"))
}

// String returns the explanation for a person.
func (x Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s may%s %s %s\n", x.Verdict, x.Question.Principal, map[plugin.Verdict]string{plugin.Allow: "", plugin.Deny: " not", plugin.AllowWithApproval: ", once a person agrees,"}[x.Verdict], x.Question.Action, x.Question.Resource)
	for _, reason := range x.Reasons {
		fmt.Fprintf(&b, "  %s\n", reason)
	}
	if x.Verdict == plugin.Deny {
		for _, m := range x.Permits {
			fmt.Fprintf(&b, "  %s would allow it, but a denial wins\n", m.Policy)
		}
	}
	for _, n := range x.Nearest {
		fmt.Fprintf(&b, "  %s would allow it, if this were so:\n", n.Policy)
		for _, clause := range n.Missing {
			fmt.Fprintf(&b, "      %s\n", strings.ReplaceAll(clause, "\n", "\n      "))
		}
	}
	if len(x.MissingScopes) > 0 {
		fmt.Fprintf(&b, "  the call is refused before policy is asked: the principal lacks %s\n", strings.Join(x.MissingScopes, ", "))
	}
	if !x.Judged {
		b.WriteString("  no input was given: conditions on arguments were not judged; --input '{...}' gives one\n")
	}
	fmt.Fprintf(&b, "  %d of %d policies could apply; the set is %s\n", x.Considered, x.Policies, x.Policy)
	if x.Acting != nil {
		fmt.Fprintf(&b, "of these, for the actor:\n%s", x.Acting)
	}
	return b.String()
}
