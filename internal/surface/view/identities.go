package view

import (
	"strings"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// Identities are users of other systems, and who they are here.
var Identities = List[host.Identity]{
	Key:    "identities",
	Titles: []string{"PROVIDER", "EXTERNAL ID", "ADAPTER", "PRINCIPAL", "SCOPES", "BY", "AT"},
	Row: func(i host.Identity) []string {
		return []string{i.Provider, i.ExternalID, terminal.Dash(i.Adapter), i.Principal, terminal.Dash(strings.Join(i.Scopes, ",")), i.By, terminal.Clock(i.At)}
	},
}
