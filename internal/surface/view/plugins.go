package view

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/plugin"
)

// Plugins are plugins as they are listed.
var Plugins = List[host.PluginInfo]{
	Key:    "plugins",
	Fit:    OnScreen,
	Titles: []string{"PLUGIN", "VERSION", "STATE", "KIND", "OPERATIONS", "DESCRIPTION"},
	Row: func(i host.PluginInfo) []string {
		return []string{i.Name, versionOf(i.Plugin()), pluginState(i), kindsOf(i.Kinds), terminal.Dash(terminal.OneLine(strings.Join(i.Operations, " "), 30)), terminal.OneLine(i.Description, 60)}
	},
}

// An AssignedPlugin is a plugin with what is said of it for one agent.
type AssignedPlugin struct {
	host.PluginInfo
	Assignment *host.Assignment `json:"assignment"` // null where nothing is said
}

// AssignedPlugins are plugins with what is said of them for one agent.
var AssignedPlugins = List[AssignedPlugin]{
	Key:    "plugins",
	Titles: []string{"PLUGIN", "VERSION", "STATE", "ASSIGNED", "DESCRIPTION"},
	Fit:    OnScreen,
	Row: func(p AssignedPlugin) []string {
		said := "-"
		switch one := p.Assignment; {
		case one == nil:
		case !one.Enabled && one.Agent != host.EveryAgent:
			said = "taken from it"
		case one.Enabled:
			said = "to " + assignedTo(*one)
			if one.Versions != "" {
				said += ", " + one.Versions
			}
		}
		return []string{p.Name, p.Version, pluginState(p.PluginInfo), said, terminal.OneLine(p.Description, 60)}
	},
}

// Actions are what may be done with a plugin.
var Actions = List[host.Action]{
	Key:    "actions",
	Titles: []string{"ACTION", "RISK", "APPROVAL", "SCOPES", "DESCRIPTION"},
	Fit:    OnScreen,
	Row: func(one host.Action) []string {
		approval := "no"
		if one.RequiresApproval {
			approval = "asked for"
		}
		return []string{one.Name, terminal.Dash(one.RiskLevel), approval, terminal.Dash(strings.Join(one.RequiredScopes, " ")), terminal.OneLine(one.Description, 60)}
	},
}

// A PluginShown is a plugin, and what it needs before it can do all it does.
type PluginShown struct {
	host.PluginShown
	Needs host.PluginNeeds `json:"needs"`
}

// needed shows what of the needs of a plugin is missing.
func needed(t *terminal.Table, n *host.PluginNeeds) {
	if n.Subscription != "none" {
		state := "it acts for you"
		if !n.Subscribed {
			state = "it does not act for you: 'mortise plugins subscribe' lets it"
		}
		t.Row("subscription:", state)
	}
	for _, s := range n.Secrets {
		if s.There == "" && !s.Optional {
			t.Row("needs:", fmt.Sprintf("the secret %s (%s), for %s", s.Name, s.Scope, s.Operation))
		}
	}
	for _, a := range n.Accounts {
		if a.Problem != "" && !a.Optional {
			t.Row("needs:", terminal.OneLine(fmt.Sprintf("an account of %s: %s", a.Provider, a.Problem), 300))
		}
	}
	for _, scope := range n.Permissions {
		t.Row("needs:", "the permission "+scope+", which you do not have")
	}
	for _, text := range n.Configuration {
		t.Row("needs:", terminal.OneLine(text, 300))
	}
}

// Plugin shows a plugin with its hooks and its operations.
func Plugin(w io.Writer, s PluginShown) error {
	t := terminal.NewTable(w, s.Name+" "+versionOf(s.Manifest))
	if s.DisplayName != "" {
		t.Row("name:", s.DisplayName)
	}
	t.Row("description:", terminal.Dash(s.Description))
	t.Row("state:", string(s.State))
	for _, version := range s.Waiting {
		t.Row("held:", fmt.Sprintf("%s@%s, because it is not what was approved: 'mortise plugins diff %s@%s' shows the difference", s.Name, version, s.Name, version))
	}
	if s.ApprovedBy != "" {
		t.Row("approved by:", s.ApprovedBy)
	}
	if s.Problem != "" {
		t.Row("problem:", terminal.OneLine(s.Problem, 300))
	}
	for _, h := range s.Halted {
		t.Row("disabled for:", fmt.Sprintf("%s since %s: %s; '%s' enables it again", h.Agent, terminal.Clock(h.At), terminal.OneLine(h.Reason, 300), h.Enable))
	}
	t.Row("dialect:", s.Dialect)
	t.Row("versions:", strings.Join(s.Versions, " "))
	t.Row("package:", s.Digest)
	if s.Signer != "" {
		t.Row("signed by:", string(s.Signer))
	}
	t.Row("path:", s.Path)
	t.Row("source:", s.Source)
	if m := s.Manifest; m != nil {
		t.Row("owner:", terminal.Dash(m.Owner))
		t.Row("isolation:", string(m.Isolation))
		t.Row("services:", terminal.Dash(strings.Join(m.Capabilities, " ")))
		if len(m.HTTP.Hosts) > 0 {
			t.Row("hosts:", terminal.OneLine(strings.Join(m.HTTP.Hosts, " "), 300))
		}
		t.Row("requires:", terminal.Dash(strings.Join(m.Requires.Tools, " ")))
		if e := m.Environment; e != nil {
			t.Row("environment:", fmt.Sprintf("%s, for Python %s, from %s: %s", e.Digest, e.Python, terminal.OneLine(e.From, 100), wheelsOf(e)))
		}
	}
	needed(t, &s.Needs)
	if err := t.Flush(); err != nil || s.Manifest == nil {
		return err
	}
	if err := hooks(w, s.Manifest.Hooks); err != nil {
		return err
	}
	for _, op := range s.Manifest.Operations {
		fmt.Fprintf(w, "\n%s/%s, %s, at most %s\n", s.Name, op.Name, op.Kind, op.Timeout)
		if op.Description != "" {
			fmt.Fprintf(w, "  %s\n", terminal.Safe(op.Description))
		}
		for _, line := range [][2]string{{"effects", strings.Join(op.Effects, " ")}, {"permissions", strings.Join(op.Permissions, " ")}, {"tags", strings.Join(op.PolicyTags, " ")}} {
			if line[1] != "" {
				fmt.Fprintf(w, "  %s: %s\n", line[0], line[1])
			}
		}
		if m := op.Mapped; m != nil {
			fmt.Fprintf(w, "  mapped by %s; its plugin declares: %s, %s\n", terminal.Safe(m.By), m.Declared.Kind, terminal.Safe(cmp.Or(strings.Join(m.Declared.Effects, " "), "no effects")))
		}
		if err := inputOf(w, op.Input); err != nil {
			return err
		}
	}
	return nil
}

// wheelsOf names what is installed for a plugin.
func wheelsOf(e *plugin.Environment) string {
	var names []string
	for _, w := range e.Wheels {
		names = append(names, w.Name+" "+w.Version)
	}
	return strings.Join(names, ", ")
}

// Review shows what is different in a plugin that is held.
func Review(w io.Writer, r host.PluginReview) error {
	before := "nothing that is still here"
	if r.Approved != nil {
		before = fmt.Sprintf("%s, which is approved (%s)", r.Approved.Version, r.Approved.Digest)
	}
	fmt.Fprintf(w, "%s %s (%s)\ncompared with %s\n", terminal.Safe(r.Name), terminal.Safe(r.Version), r.Digest, terminal.Safe(before))
	if r.Open {
		fmt.Fprintf(w, "Its manifest leaves operations or schemas open; approving asks its code for them.\n")
	}
	return r.Difference.Write(w)
}

// Assigned says what became of an assignment.
func Assigned(a host.Assignment) string {
	name := a.Plugin
	if a.Versions != "" {
		name += "@" + a.Versions
	}
	switch {
	case a.Agent == host.EveryAgent && a.Enabled:
		return "all agents have " + name + ", but for those it is taken from"
	case a.Agent == host.EveryAgent:
		return name + " is no longer what all agents have"
	case a.Enabled:
		return "agent " + a.Agent + " has " + name
	}
	return "agent " + a.Agent + " does not have " + name
}

// PluginStates says what plugins are now, one on each line.
func PluginStates(infos ...host.PluginInfo) string {
	lines := make([]string, len(infos))
	for n, i := range infos {
		lines[n] = fmt.Sprintf("%s %s is %s", i.Name, i.Version, i.State)
	}
	return strings.Join(lines, "\n")
}

// Furnished says what became of a plugin that something was installed for.
func Furnished(one host.RegisteredPlugin) string {
	said := PluginStates(one.Info)
	if one.Unchanged {
		said += ", and had that already"
	}
	if one.Held {
		said += fmt.Sprintf(" until 'mortise plugins approve %s@%s'", one.Name, one.Version)
	}
	return said
}

// quarantined is the state of a version that waits for a person.
const quarantined = "quarantined"

// Refreshed says what became of a mounted server whose tools were listed.
func Refreshed(one host.RegisteredPlugin) string {
	said := PluginStates(one.Info)
	switch {
	case one.Held || one.State == quarantined:
		said += fmt.Sprintf(": its server changed; 'mortise plugins diff %s' shows what, 'mortise plugins approve %s@%s' accepts it", one.Name, one.Name, one.Version)
	case one.Unchanged:
		said += ": its server is as it was approved"
	}
	return said
}

// Registered shows what became of each plugin that was to be registered.
func Registered(w, errs io.Writer, report host.Registered) {
	for _, r := range report.Registered {
		word := "registered"
		if r.Unchanged {
			word = "unchanged"
		}
		fmt.Fprintf(w, "%s %s %s (%s)\n", word, terminal.Safe(r.Name), terminal.Safe(r.Version), r.State)
		if r.NotEnabled != nil {
			Say(errs, "mortise: %s was registered and not enabled: %s", r.Name, Message(r.NotEnabled))
		}
	}
	for _, f := range report.Failed {
		Say(errs, "mortise: %s: %s", f.Path, Message(f.Err))
	}
}

func pluginState(i host.PluginInfo) string {
	state := string(i.State)
	if i.Problem != "" {
		state = "broken"
	}
	if i.Dev {
		state += " (dev)"
	}
	if len(i.Halted) > 0 {
		state += fmt.Sprintf(" (disabled for %s)", agentsOf(i.Halted))
	}
	return state
}

// agentsOf names the agents that a plugin is disabled for, the first few of them.
func agentsOf(halts []host.PluginHalt) string {
	var ids []string
	for _, h := range halts[:min(len(halts), 3)] {
		ids = append(ids, h.Agent)
	}
	if more := len(halts) - len(ids); more > 0 {
		ids = append(ids, fmt.Sprintf("%d more", more))
	}
	return strings.Join(ids, ", ")
}

func kindsOf(kinds []plugin.Kind) string {
	words := make([]string, len(kinds))
	for i, kind := range kinds {
		words[i] = string(kind)
	}
	return terminal.Dash(strings.Join(words, " "))
}

// versionOf is a version as its author wrote it, and beside it as it is
// referred to where that is another text.
func versionOf(m *plugin.Manifest) string {
	if m.VersionText == "" {
		return m.Version
	}
	return m.VersionText + " (" + m.Version + ")"
}

// hooks lists the events that a plugin hears of.
func hooks(w io.Writer, hooks []plugin.Hook) error {
	if len(hooks) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	t := terminal.NewTable(w, "HOOK", "PRIORITY", "IF IT FAILS", "DEADLINE")
	for _, h := range hooks {
		deadline := "the host's"
		if h.Deadline > 0 {
			deadline = h.Deadline.String()
		}
		t.Row(h.Event, fmt.Sprint(h.Priority), cmp.Or(string(h.FailureMode), "skip"), deadline)
	}
	return t.Flush()
}

// inputOf lists the members an input has, as its schema describes them.
func inputOf(w io.Writer, schema []byte) error {
	var object struct {
		Properties map[string]struct {
			Type        any            `json:"type"`
			Description string         `json:"description"`
			Default     jsontext.Value `json:"default"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if len(schema) == 0 || json.Unmarshal(schema, &object) != nil || len(object.Properties) == 0 {
		return nil
	}
	t := terminal.NewTable(w, "  INPUT", "TYPE", "DEFAULT", "DESCRIPTION")
	for _, name := range slices.Sorted(maps.Keys(object.Properties)) {
		p := object.Properties[name]
		value := "-"
		switch {
		case len(p.Default) > 0 && p.Default.Kind() != 'n':
			if err := p.Default.Compact(); err != nil {
				return err
			}
			value = terminal.OneLine(string(p.Default), 30)
		case slices.Contains(object.Required, name):
			value = "required"
		}
		kind := "any"
		if p.Type != nil {
			kind = fmt.Sprint(p.Type)
		}
		t.Row("  "+name, kind, value, terminal.OneLine(p.Description, 80))
	}
	return t.Flush()
}
