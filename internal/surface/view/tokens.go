package view

import (
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// Tokens are API tokens as they are listed.
var Tokens = List[host.Token]{
	Key:    "tokens",
	Titles: []string{"ID", "NAME", "PRINCIPAL", "SCOPES", "OPERATIONS", "EXPIRES", "LAST USED", "STATE"},
	None:   "no tokens; 'mortise tokens create NAME' makes one",
	Fit:    OnScreen,
	Row: func(t host.Token) []string {
		return []string{
			t.ID, t.Name, t.Principal, strings.Join(t.Scopes, ","), terminal.Dash(strings.Join(t.Operations, ",")),
			moment(t.ExpiresAt), moment(t.UsedAt), tokenState(t, time.Now()),
		}
	},
}

// moment is a time that may not have come.
func moment(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return terminal.Clock(at)
}

func tokenState(t host.Token, now time.Time) string {
	switch {
	case !t.RevokedAt.IsZero():
		return "revoked"
	case !t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt):
		return "expired"
	}
	return "in force"
}
