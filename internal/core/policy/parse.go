package policy

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
)

// A statement is one policy of a set.
type statement struct {
	policy *cedar.Policy
	ast    *ast.Policy
	order  int            // in its set
	id     types.PolicyID // unique in its set
	label  string         // what it is called to people: "mail.cedar:12 draft_allowed"
	file   string
	line   int
	name   string // by @id; "" without one

	approval bool   // by @approval: it permits once a person agrees
	trusting bool   // by @untrusted("allow"): it permits effects with untrusted arguments too
	self     bool   // by @self("allow"): the requester may confirm their own call where they made it
	why      string // of @approval, what to look at; of @reason, what the caller is told
	reads    reads  // what it looks at in the context
}

func (s *statement) permits() bool { return s.policy.Effect() == cedar.Permit }

// parse reads one document. Problems of its syntax leave no statements; those
// of a single policy are returned together.
func parse(d Document) ([]*statement, Problems) {
	text := string(d.Text)
	if len(text) > maxFile {
		return nil, Problems{{File: d.Name, Line: 1, Column: 1, Message: fmt.Sprintf("the text has more than %d bytes", maxFile)}}
	}
	if !utf8.ValidString(text) {
		return nil, Problems{{File: d.Name, Line: 1, Column: 1, Message: "the text is not UTF-8"}}
	}
	tokens := scan(text)
	if problems := bounded(d.Name, text, tokens); problems != nil {
		return nil, problems
	}
	policies, err := cedar.NewPolicyListFromBytes(d.Name, d.Text)
	if err != nil {
		return nil, Problems{syntax(d.Name, text, tokens, err)}
	}
	var statements []*statement
	var problems Problems
	for i, p := range policies {
		end := len(text)
		if i+1 < len(policies) {
			end = policies[i+1].Position().Offset
		}
		s := &statement{policy: p, ast: (*ast.Policy)(p.AST()), file: d.Name, line: p.Position().Line}
		span := source{d.Name, text, between(tokens, p.Position().Offset, end)}
		problems = append(problems, s.annotate(span)...)
		problems = append(problems, s.check(span)...)
		s.label = fmt.Sprintf("%s:%d", d.Name, s.line)
		if s.name != "" {
			s.label += " " + s.name
		}
		s.id = types.PolicyID(s.label)
		if FromConfiguration(d.Name) {
			s.label = strings.TrimSuffix(d.Name+", "+s.name, ", ")
		}
		statements = append(statements, s)
	}
	return statements, problems
}

// A source is the text of one policy within its document.
type source struct {
	name, text string
	tokens     []token
}

// at returns a problem at the first token that found accepts, or at the start
// of the policy.
func (s source) at(policy, message string, found func(before, here, after string) bool) Problem {
	offset := 0
	if len(s.tokens) > 0 {
		offset = s.tokens[0].offset
	}
	text := func(i int) string {
		if i < 0 || i >= len(s.tokens) {
			return ""
		}
		return s.tokens[i].text
	}
	for i, t := range s.tokens {
		if found != nil && found(text(i-1), t.text, text(i+1)) {
			offset = t.offset
			break
		}
	}
	p := at(s.name, s.text, offset, message)
	p.Policy = policy
	return p
}

// condition returns the text of condition number n, when or unless, alone.
func (s source) condition(n int) source {
	depth, seen, start := 0, -1, 0
	for i, t := range s.tokens {
		switch t.text {
		case "{", "(", "[":
			depth++
		case "}", ")", "]":
			depth--
		case "when", "unless":
			if depth != 0 || i+1 >= len(s.tokens) || s.tokens[i+1].text != "{" {
				continue
			}
			if seen++; seen == n {
				start = i
			} else if seen == n+1 {
				return source{s.name, s.text, s.tokens[start:i]}
			}
		}
	}
	return source{s.name, s.text, s.tokens[start:]}
}

func between(tokens []token, start, end int) []token {
	first, last := len(tokens), len(tokens)
	for i, t := range tokens {
		if t.offset >= start && i < first {
			first = i
		}
		if t.offset >= end {
			last = i
			break
		}
	}
	return tokens[first:max(first, last)]
}

// annotate reads the annotations. An unknown one is refused: a slip in
// @approval would allow what was meant to wait.
func (s *statement) annotate(in source) (problems Problems) {
	refuse := func(key, message string) {
		problems = append(problems, in.at(s.name, message, func(before, here, _ string) bool { return before == "@" && here == key }))
	}
	for _, a := range s.ast.Annotations {
		key, value := string(a.Key), string(a.Value)
		if utf8.RuneCountInString(value) > 300 || strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) }) {
			refuse(key, fmt.Sprintf("@%s is longer than 300 characters or has some that cannot be shown", key))
			continue
		}
		switch key {
		case "id":
			if s.name = value; value == "" || strings.ContainsAny(value, ":") {
				refuse(key, "@id is a name without a colon, and not empty")
			}
		case "approval":
			if s.approval, s.why = true, value; !s.permits() {
				refuse(key, "@approval belongs on a permit; a forbid is not open to approval")
			}
		case "untrusted":
			switch s.trusting = true; {
			case !s.permits():
				refuse(key, "@untrusted belongs on a permit; a forbid that is about such arguments asks context.labels.contains(\"untrusted\")")
			case value != "allow":
				refuse(key, "@untrusted has the one value \"allow\": the operation may have its effects although its arguments came from outside")
			}
		case "self":
			switch s.self = true; {
			case !s.permits() || !names(s.ast.Action, actions[Approve]):
				refuse(key, "@self belongs on a permit that names Action::\"approve\"")
			case value != "allow":
				refuse(key, "@self has the one value \"allow\": the requester may confirm their own call in the program that made it")
			}
		case "reason":
			if s.why = value; s.permits() {
				refuse(key, "@reason belongs on a forbid, whose caller is told")
			}
		default:
			refuse(key, fmt.Sprintf("there is no annotation @%s; there are @id, @approval, @untrusted, @self and @reason", key))
		}
	}
	return problems
}
