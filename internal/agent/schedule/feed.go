package schedule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/plugin"
)

// inside are the effects that stay within the host: their services do nothing
// else, and cause nothing else later. An effect by any other name is taken for one outside, and the word of an
// operation that does not go through the host's services counts for nothing.
var inside = []string{"storage_write", "cursor_write", "kb_write", "secret_write"}

// Choose returns the operation of a plugin that a schedule may run unattended. op is
// what was asked for; it may be empty.
//
// A plugin that lists what may be scheduled is taken at its word: its default
// stands where nothing was asked for, and what is not on the list is refused.
// One that has no list may be scheduled for what has no effect outside the host.
func Choose(m *plugin.Manifest, op string) (*plugin.Operation, error) {
	if allowed := m.Feed.Allowed; len(allowed) > 0 {
		switch {
		case op == "" && m.Feed.Default == "":
			return nil, invalidOp(m, "%s has no operation for feeds by default; name one: %s", m.Name, strings.Join(allowed, ", "))
		case op == "":
			op = m.Feed.Default
		}
		if !slices.Contains(allowed, op) {
			return nil, invalidOp(m, "%s/%s may not be scheduled; allowed are %s", m.Name, op, strings.Join(allowed, ", "))
		}
	}
	if op == "" {
		op = m.Feed.Default
	}
	if op == "" && len(m.Operations) == 1 {
		op = m.Operations[0].Name
	}
	found := m.Operation(op)
	switch {
	case op == "":
		return nil, invalidOp(m, "%s has several operations; name one: %s", m.Name, orNone(schedulable(m)))
	case found == nil:
		return nil, invalidOp(m, "%s has no operation %.60s; it has %s", m.Name, op, orNone(schedulable(m)))
	case found.Kind != plugin.Tool && found.Kind != plugin.Operator:
		return nil, invalidOp(m, "%s/%s is of kind %s; tools and operators can be scheduled", m.Name, op, found.Kind)
	case len(m.Feed.Allowed) == 0:
		if reach := outside(m, found); reach != "" {
			return nil, invalidOp(m, "%s/%s may not be scheduled: %s, and its plugin does not list what may run unattended; allowed are %s", m.Name, op, reach, orNone(schedulable(m)))
		}
	}
	return found, nil
}

// outside says why an operation may reach outside the host; "" if it does not.
func outside(m *plugin.Manifest, op *plugin.Operation) string {
	for _, effect := range op.Effects {
		if !slices.Contains(inside, effect) {
			return fmt.Sprintf("it has the effect %s", effect)
		}
	}
	if len(op.Effects) > 0 && !op.Brokered {
		return "it has effects that do not go through the host"
	}
	if op.Kind == plugin.Operator && len(m.Requires.Tools) > 0 {
		return "it may call other plugins"
	}
	if slices.Contains(op.PolicyTags, "action") {
		return "it is an action"
	}
	return ""
}

// schedulable are the operations of a plugin that may be scheduled.
func schedulable(m *plugin.Manifest) (names []string) {
	if len(m.Feed.Allowed) > 0 {
		return m.Feed.Allowed
	}
	for _, op := range m.Operations {
		if (op.Kind == plugin.Tool || op.Kind == plugin.Operator) && outside(m, op) == "" {
			names = append(names, op.Name)
		}
	}
	return names
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// invalidOp refuses an operation, in the words that feeds know it by.
func invalidOp(m *plugin.Manifest, format string, args ...any) error {
	err := plugin.Errorf(plugin.CodeInvalidInput, "invalid_feed_op: "+format, args...)
	err.Details = details(m)
	return err
}
