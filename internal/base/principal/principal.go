// Package principal names principals as the configuration and the ledger do.
package principal

import (
	"encoding/json"
	"strings"

	"github.com/mortise-dev/mortise/plugin"
)

// Name is what the configuration calls a principal: a user by its id alone, others as
// service::id and agent::id. No two principals have one name; see [plugin.Principal.Member].
func Name(who plugin.Principal) string { return who.Member() }

// Key identifies a principal with its scopes and groups. Use it as the key of a cache of what a
// principal may do: two principals that differ in any field have different keys.
func Key(who plugin.Principal) string {
	who.Type = Parse(who.Member()).Type
	text, err := json.Marshal(who)
	if err != nil {
		panic(err) // it is texts
	}
	return string(text)
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
