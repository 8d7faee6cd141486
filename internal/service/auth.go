package service

import (
	"context"
	"encoding/json"

	"github.com/mortise-dev/mortise/plugin"
)

const (
	authName    = "auth"
	authResolve = "auth.resolve"
)

// Accounts are the accounts that plugins act with elsewhere.
type Accounts interface {
	// Resolve returns the token of the account that a call acts with, and what it
	// is for, within what the plugin declares. Both are nil where no mode is
	// chosen.
	Resolve(ctx context.Context, t *plugin.Target, call *plugin.Call, ask AccountAsk) (AccountToken, error)
}

// An AccountAsk is what a plugin asks for.
type AccountAsk struct {
	Provider string   `json:"provider"`
	Scopes   []string `json:"scopes"`  // those that are declared, where it is empty
	Mode     string   `json:"mode"`    // the one chosen for the call or else declared, where it is empty
	Subject  string   `json:"subject"` // whom a delegate stands in for
}

// An AccountToken is the value of auth.resolve.
type AccountToken struct {
	Token  *string `json:"token"`
	Target *string `json:"target"`
}

func authResolved(g *grant, ctx context.Context, args json.RawMessage) (any, error) {
	var ask AccountAsk
	if err := decode(authResolve, args, &ask); err != nil {
		return nil, err
	}
	if ask.Provider == "" {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s: provider is not empty", authResolve)
	}
	if g.broker.Accounts == nil {
		return nil, nowhere(authResolve)
	}
	g.confided.Store(true)
	return g.broker.Accounts.Resolve(ctx, g.target, g.call, ask)
}
