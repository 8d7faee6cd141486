package view

import (
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// Accounts are providers, and one's accounts with them.
var Accounts = List[host.AccountState]{
	Key:    "accounts",
	Titles: []string{"PROVIDER", "ACCOUNT", "STATE", "SCOPES", "CONNECTED", "SERVICE ACCOUNT"},
	Row: func(s host.AccountState) []string {
		robot := "-"
		if s.Service {
			robot = "yes"
		}
		if a := s.Account; a != nil {
			return []string{s.Provider, AccountName(a), accountNow(a), strings.Join(a.Scopes, " "), terminal.Clock(a.Connected), robot}
		}
		return []string{s.Provider, "-", "not connected", "-", "-", robot}
	},
}

// AccountName is how people know an account.
func AccountName(a *host.Account) string {
	if a.Email != "" {
		return a.Email
	}
	return terminal.Dash(a.Subject)
}

// Token says as whom a provider gives a token.
func Token(provider, mode, target string) string {
	as := strings.ReplaceAll(mode, "_", " ")
	if target != "" {
		as += " for " + target
	}
	return fmt.Sprintf("%s gives a token as %s", provider, as)
}

func accountNow(a *host.Account) string {
	switch {
	case a.Gone != "":
		return "gone"
	case a.Renewable || a.Expires.IsZero():
		return "connected"
	}
	return "until " + terminal.Clock(a.Expires)
}
