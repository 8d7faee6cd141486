// Package policy decides whether a call may happen. It is a pure function of
// the rules, the operation and the call: no clock, no store, no network.
//
// The rules are an allow-list from the host's configuration. Silence denies.
package policy

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/canon"
	"github.com/mortise-dev/mortise/plugin"
)

// A Rule allows what matches all of its lists. An empty list of operations,
// kinds or principals matches everything; an empty list of effects matches
// only operations that have none.
type Rule struct {
	Operations []string      `json:"operations,omitempty" yaml:"operations"` // plugin/operation; * stands for anything but /, and plugin alone for all it has
	Kinds      []plugin.Kind `json:"kinds,omitempty" yaml:"kinds"`
	Principals []string      `json:"principals,omitempty" yaml:"principals"` // ids; * stands for anything
	Effects    []string      `json:"effects,omitempty" yaml:"effects"`       // what the operation may cause; * for whatever it declares
}

// Default is what holds where nothing is configured: whoever is asking may use
// tools, which have no effects, and nothing else.
var Default = []Rule{{Kinds: []plugin.Kind{plugin.Tool}}}

// A List is a set of rules. It is safe for concurrent use.
type List struct {
	rules   []Rule
	version string
}

// New returns the list of these rules, or an error that names the rule and
// what is wrong with it.
func New(rules []Rule) (*List, error) {
	for i, r := range rules {
		for _, pattern := range slices.Concat(r.Operations, r.Principals, r.Effects) {
			if _, err := path.Match(pattern, ""); err != nil || strings.TrimSpace(pattern) != pattern || pattern == "" {
				return nil, fmt.Errorf("policy.allow, rule %d: %q is no pattern", i+1, pattern)
			}
		}
		for _, kind := range r.Kinds {
			if !kind.Known() {
				return nil, fmt.Errorf("policy.allow, rule %d: %q is no kind; the kinds are agent, operator, tool and adapter", i+1, kind)
			}
		}
	}
	raw, err := json.Marshal(rules)
	if err != nil {
		return nil, err
	}
	version, err := canon.Hash(raw)
	if err != nil {
		return nil, err
	}
	return &List{rules: slices.Clone(rules), version: version}, nil
}

// Decide returns the verdict on a call and the reason for it.
func (l *List) Decide(t *plugin.Target, call *plugin.Call) plugin.Decision {
	for i := range l.rules {
		if l.rules[i].allows(t, call) {
			return plugin.Decision{Verdict: plugin.Allow, Policy: l.version, Reasons: []string{fmt.Sprintf("policy.allow, rule %d", i+1)}}
		}
	}
	return plugin.Decision{Verdict: plugin.Deny, Policy: l.version, Reasons: []string{l.missing(t, call)}}
}

func (r *Rule) allows(t *plugin.Target, call *plugin.Call) bool {
	if len(r.Operations) > 0 && !slices.ContainsFunc(r.Operations, func(pattern string) bool {
		return match(pattern, t.Name()) || match(pattern, t.Manifest.Name)
	}) {
		return false
	}
	if len(r.Kinds) > 0 && !slices.Contains(r.Kinds, t.Operation.Kind) {
		return false
	}
	if len(r.Principals) > 0 && !slices.ContainsFunc(r.Principals, func(pattern string) bool { return match(pattern, call.Principal.ID) }) {
		return false
	}
	for _, effect := range t.Operation.Effects {
		if !slices.ContainsFunc(r.Effects, func(pattern string) bool { return match(pattern, effect) }) {
			return false
		}
	}
	return true
}

func match(pattern, name string) bool {
	if pattern == name || pattern == "*" {
		return true
	}
	if !strings.ContainsAny(pattern, `*?[\\`) {
		return false
	}
	matched, _ := path.Match(pattern, name)
	return matched
}

// missing says what no rule allows, and what rule would.
func (l *List) missing(t *plugin.Target, call *plugin.Call) string {
	what := fmt.Sprintf("no rule lets %s run %s, %s", call.Principal.ID, t.Name(), article(t.Operation.Kind))
	rule := fmt.Sprintf("{operations: [%q]", t.Name())
	if effects := t.Operation.Effects; len(effects) > 0 {
		what += " with the effects " + strings.Join(effects, ", ")
		rule += fmt.Sprintf(", effects: [%s]", strings.Join(effects, ", "))
	}
	return what + "; to allow it, add " + rule + "} to policy.allow in mortise.yaml"
}

func article(kind plugin.Kind) string {
	if kind == plugin.Tool {
		return "a tool"
	}
	return "an " + string(kind)
}
