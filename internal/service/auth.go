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
	// Connected returns the accounts that the principal of the call has connected.
	Connected(ctx context.Context, call *plugin.Call) ([]ConnectedAccount, error)
}

// A ConnectedAccount is what may be known of an account.
type ConnectedAccount struct {
	Provider string
	Subject  string // the provider's id of it
	Email    string // "" where the provider does not vouch for one
	Scopes   []string
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
	Mode   string  `json:"mode,omitempty"` // in which the token was won
}

func authResolved(g *grant, ctx context.Context, args json.RawMessage) (any, error) {
	ask, err := g.accountAsk(args)
	if err != nil {
		return nil, err
	}
	g.confided.Store(true)
	return g.broker.Accounts.Resolve(ctx, g.target, g.call, ask)
}

// dryToken stands for the token of an account in a dry run: to win a real one, a
// provider may have to be asked.
const dryToken = "dry-run"

func authResolvedDry(g *grant, _ context.Context, args json.RawMessage) (any, *plugin.Change, error) {
	ask, err := g.accountAsk(args)
	if err != nil {
		return nil, nil, err
	}
	token := dryToken
	return AccountToken{Token: &token}, &plugin.Change{Target: ask.Provider, Summary: "a token of the account is not won"}, nil
}

// accountAsk reads the arguments of auth.resolve.
func (g *grant) accountAsk(args json.RawMessage) (ask AccountAsk, err error) {
	if err := decode(authResolve, args, &ask); err != nil {
		return ask, err
	}
	switch {
	case ask.Provider == "":
		return ask, plugin.Errorf(plugin.CodeInvalidInput, "%s: provider is not empty", authResolve)
	case g.broker.Accounts == nil:
		return ask, nowhere(authResolve)
	}
	return ask, nil
}
