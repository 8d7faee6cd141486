package view

import (
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// Secrets are secrets as they are listed, without their values.
var Secrets = List[host.SecretInfo]{
	Key:    "secrets",
	Titles: []string{"NAME", "PLUGIN", "SCOPE", "OF", "SET AT", "LABELS"},
	Row: func(i host.SecretInfo) []string {
		return []string{i.Name, i.Plugin, i.Scope, terminal.Dash(i.Subject), terminal.Clock(i.UpdatedAt), terminal.Dash(strings.Join(i.Labels, ", "))}
	},
}

// NeededSecrets are the secrets that operations need, and whether they are there.
var NeededSecrets = List[host.SecretState]{
	Key:    "secrets",
	Titles: []string{"PLUGIN", "OPERATION", "SECRET", "MAY BE OF", "STATE"},
	None:   "no operation needs a secret",
	Row: func(s host.SecretState) []string {
		return []string{s.Plugin + "@" + s.Version, s.Operation, s.Name, strings.ReplaceAll(s.Scope, "_", " "), secretState(s)}
	},
}

// Secret says what became of a secret.
func Secret(i host.SecretInfo, what string) string {
	of, with := "everybody", "all plugins"
	if i.Scope == host.SecretOfUser {
		of = i.Subject
	}
	if i.Plugin != host.EveryPlugin {
		with = i.Plugin
	}
	return fmt.Sprintf("%s %s for %s with %s", i.Name, what, of, with)
}

func secretState(s host.SecretState) string {
	switch {
	case s.There == host.SecretOfUser:
		return "set by you"
	case s.There != "":
		return "set for everybody"
	case s.Optional:
		return "not set, optional"
	}
	return "missing"
}
