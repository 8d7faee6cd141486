package mcp

import (
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/host"
)

// A Profile says what a client is shown that names it, as /mcp?profile=NAME. It shows less, and
// never more, than its caller may run.
type Profile struct {
	List
	Operations []string // plugin/operation or plugin/*; all where there are none
	Short      bool     // tools have the names of the operations, without that of the plugin, which is one
}

// shows reports whether a profile has an operation.
func (p Profile) shows(operation string) bool {
	if len(p.Operations) == 0 {
		return true
	}
	of, _, _ := strings.Cut(operation, "/")
	return slices.Contains(p.Operations, operation) || slices.Contains(p.Operations, of+"/*")
}

// plugin returns the one plugin that a profile with short names is of.
func (p Profile) plugin() string {
	if !p.Short || len(p.Operations) == 0 {
		return ""
	}
	of, _, _ := strings.Cut(p.Operations[0], "/")
	return of
}

// nameOf returns the name that the tool of an operation has in the profile, "" where it can
// have none.
func (p Profile) nameOf(operation string) string {
	if !p.shows(operation) {
		return ""
	}
	if of := p.plugin(); of != "" {
		name, _ := strings.CutPrefix(operation, of+"/")
		return nameOf(name)
	}
	return nameOf(operation)
}

// operationsOf returns the operations whose tool could have a name in the profile.
func (p Profile) operationsOf(name string) []string {
	if of := p.plugin(); of != "" {
		if len(name) == 0 || nameOf(name) == "" {
			return nil
		}
		name = of + "/" + name
		if !p.shows(name) {
			return nil
		}
		return []string{name}
	}
	return slices.DeleteFunc(operationsOf(name), func(operation string) bool { return !p.shows(operation) })
}

// nameOf returns the name of a tool, a prompt or a resource of an operation.
func (s *session) nameOf(t host.Tool) string { return s.profile.nameOf(t.Name()) }
