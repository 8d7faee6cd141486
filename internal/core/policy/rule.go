package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go/types"

	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/plugin"
)

// A Rule is the short form of a policy: it allows what matches all of its
// lists. An empty list of operations, kinds or principals matches everything;
// an empty list of effects matches only operations that have none. In a
// pattern, * stands for anything.
type Rule struct {
	Operations []string      `json:"operations,omitempty" yaml:"operations"` // plugin/operation, or plugin alone for all it has; * does not reach across the /
	Kinds      []plugin.Kind `json:"kinds,omitempty" yaml:"kinds"`
	Principals []string      `json:"principals,omitempty" yaml:"principals"` // users by id, others as service::id and agent::id; * for everyone
	Effects    []string      `json:"effects,omitempty" yaml:"effects"`       // what the operation may cause; * for whatever it declares
	Untrusted  string        `json:"untrusted,omitempty" yaml:"untrusted"`   // allow: also with arguments from outside, for which a person is asked otherwise
}

// Default allows every principal to call tools that have no effects. It holds
// beside what the configuration allows, unless policy.default is none.
var Default = []Rule{{Kinds: []plugin.Kind{plugin.Tool}}}

// DefaultRules returns the source of [Default].
func DefaultRules() Source { return documentOf(defaultRules, Default) }

// Rules returns the source of an allow-list, written out as policies.
func Rules(rules []Rule) Source { return documentOf(allowList, rules) }

func documentOf(name string, rules []Rule) Source {
	return func() ([]Document, error) {
		if err := CheckRules(rules); err != nil {
			return nil, err
		}
		var text strings.Builder
		for i := range rules {
			rules[i].write(&text, i+1)
		}
		return []Document{{Name: name, Text: []byte(text.String())}}, nil
	}
}

// The names of the documents that the short forms in the configuration become.
const (
	allowList    = "policy.allow"
	defaultRules = "policy.default"
	approvalsBy  = "approvals.by"
	configureBy  = "policy.configure"
)

// FromConfiguration reports whether a document is one of those.
func FromConfiguration(name string) bool {
	return name == allowList || name == defaultRules || name == approvalsBy || name == configureBy
}

// CheckRules refuses rules that cannot be meant. The error names the first such
// rule and what is wrong with it.
func CheckRules(rules []Rule) error {
	for i, r := range rules {
		for _, glob := range slices.Concat(r.Operations, r.Principals, r.Effects) {
			if err := pattern.CheckGlob(glob); err != nil || strings.TrimSpace(glob) != glob || glob == "" {
				return fmt.Errorf("%s, rule %d: %q is no pattern", allowList, i+1, glob)
			}
			if strings.ContainsAny(glob, `?[]\,`) {
				return fmt.Errorf("%s, rule %d: %q is no pattern; only * has a meaning of its own", allowList, i+1, glob)
			}
		}
		for _, name := range r.Principals {
			if why := WrongName(name); why != "" {
				return fmt.Errorf("%s, rule %d: principals: %s", allowList, i+1, why)
			}
		}
		if r.Untrusted != "" && r.Untrusted != "allow" {
			return fmt.Errorf("%s, rule %d: untrusted is %q; it is \"allow\", or not written", allowList, i+1, r.Untrusted)
		}
		for _, kind := range r.Kinds {
			if !kind.Known() {
				return fmt.Errorf("%s, rule %d: %q is no kind; the kinds are agent, operator, tool and adapter", allowList, i+1, kind)
			}
		}
	}
	return nil
}

// write writes the policies that rule number n is short for: one for each
// operation or plugin it names, so that each is found by its scope.
func (r *Rule) write(b *strings.Builder, n int) {
	conditions := r.conditions()
	permit := func(b *strings.Builder, n int, resource string, conditions []string) {
		if r.Untrusted != "" {
			fmt.Fprintf(b, "@untrusted(%s) ", literal(r.Untrusted))
		}
		permit(b, n, resource, conditions)
	}
	if len(r.Operations) == 0 {
		permit(b, n, "", conditions)
		return
	}
	for _, pattern := range r.Operations {
		name, operation, whole := strings.Cut(pattern, "/")
		switch {
		case name == "", whole && operation == "", strings.Contains(operation, "/"): // no operation has such a name
		case !strings.Contains(pattern, "*") && whole:
			permit(b, n, "== Operation::"+literal(pattern), conditions)
		case !strings.Contains(pattern, "*"):
			permit(b, n, "in Plugin::"+literal(pattern), conditions)
		default:
			permit(b, n, "", slices.Concat(like("resource.plugin", name), like("resource.operation", operation), conditions))
		}
	}
}

// permit writes one policy. A principal that may execute an operation may see it too.
func permit(b *strings.Builder, n int, resource string, conditions []string) {
	fmt.Fprintf(b, "@id(\"rule %d\")\npermit (\n  principal,\n  action in [Action::\"execute\", Action::\"list\"],\n  resource %s\n)", n, strings.TrimSpace(resource))
	for _, c := range conditions {
		fmt.Fprintf(b, "\nwhen { %s }", c)
	}
	b.WriteString(";\n")
}

// conditions are what a rule asks beside its operations, in Cedar.
func (r *Rule) conditions() []string {
	var all []string
	if len(r.Kinds) > 0 {
		all = append(all, list(r.Kinds)+".contains(resource.kind)")
	}
	if len(r.Principals) > 0 && !slices.Contains(r.Principals, "*") {
		var any []string
		for _, pattern := range r.Principals {
			any = append(any, whom(pattern))
		}
		all = append(all, strings.Join(any, " || "))
	}
	switch {
	case len(r.Effects) == 0:
		all = append(all, "resource.effects.isEmpty()")
	case slices.Contains(r.Effects, "*"):
	case strings.Contains(strings.Join(r.Effects, ""), "*"): // what Cedar cannot say of a set
		all = append(all, "resource in Effects::"+literal(strings.Join(r.Effects, ", ")))
	default:
		all = append(all, list(r.Effects)+".containsAll(resource.effects)")
	}
	return all
}

// entityTypes are the types of principals, as configuration and as Cedar spell them.
var entityTypes = map[string]string{"user": "User", "service": "Service", "agent": "Agent"}

// WrongName says why text cannot be the name of a principal; "" if it can. A name
// without a type is a user's. One that seems to have a type, after a single
// colon, is refused: it would be a user's too, which hardly anyone means.
func WrongName(name string) string {
	kind, id, typed := strings.Cut(name, "::")
	if typed {
		if entityTypes[kind] == "" || id == "" {
			return fmt.Sprintf("%q is no principal; write a user's id, service::id or agent::id", name)
		}
		return ""
	}
	if kind, id, colon := strings.Cut(name, ":"); colon && entityTypes[kind] != "" {
		return fmt.Sprintf("%q has one colon, which makes it the id of a user: write %s::%s for the %s, or user::%s for the user of that id", name, kind, id, kind, name)
	}
	return ""
}

// whom returns the condition that the principal is one that a pattern names: of
// one type, never of several.
func whom(pattern string) string {
	kind, id, typed := strings.Cut(pattern, "::")
	if !typed {
		kind, id = "user", pattern
	}
	entity := entityTypes[kind]
	if !strings.Contains(id, "*") {
		return "principal == " + entity + "::" + literal(id)
	}
	is := "principal is " + entity
	if conditions := like("principal.id", id); len(conditions) > 0 {
		is += " && " + conditions[0]
	}
	return "(" + is + ")"
}

// like returns the condition that an attribute fits a pattern, none where
// everything does.
func like(attribute, pattern string) []string {
	switch {
	case pattern == "*" || pattern == "":
		return nil
	case !strings.Contains(pattern, "*"):
		return []string{attribute + " == " + literal(pattern)}
	}
	var parts []any
	for i, part := range strings.Split(pattern, "*") {
		if i > 0 {
			parts = append(parts, types.Wildcard{})
		}
		parts = append(parts, part)
	}
	return []string{attribute + " like " + string(types.NewPattern(parts...).MarshalCedar())}
}

// literal returns a string as Cedar writes it.
func literal[S ~string](text S) string { return string(types.String(text).MarshalCedar()) }

func list[S ~string](words []S) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = literal(word)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
