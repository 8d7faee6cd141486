// Package principal names principals as the configuration and the ledger do.
package principal

import (
	"strings"

	"github.com/mortise-dev/mortise/plugin"
)

// Name is what the configuration calls a principal: a user by its id alone, others as
// service::id and agent::id.
func Name(who plugin.Principal) string {
	if who.Type == "" || who.Type == "user" {
		return who.ID
	}
	return who.Type + "::" + who.ID
}

// Parse reads what the configuration calls a principal.
func Parse(name string) plugin.Principal {
	for _, kind := range []string{"service", "agent", "user"} {
		if id, found := strings.CutPrefix(name, kind+"::"); found {
			return plugin.Principal{Type: kind, ID: id}
		}
	}
	return plugin.Principal{Type: "user", ID: name}
}
