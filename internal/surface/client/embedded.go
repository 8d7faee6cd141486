package client

import (
	"context"

	"github.com/mortise-dev/mortise/internal/host"
)

// embedded is a host in this process.
type embedded struct {
	host.API
	who  Who
	held *holder // nil where what plugins keep in memory ends with the command
}

// Embedded returns a host of this process, as one principal may use it.
func Embedded(api host.API, who Who) Host { return embedded{api, who, nil} }

// Who implements [Host].
func (e embedded) Who() Who { return e.who }

// Accounts implements [Host].
func (e embedded) Accounts() Accounts { return accounts{e.API.Accounts()} }

type accounts struct{ host.Accounts }

// Begin implements [Accounts].
func (a accounts) Begin(ctx context.Context, provider string, scopes []string) (*Connecting, error) {
	w, err := a.Accounts.Begin(ctx, provider, scopes)
	if err != nil {
		return nil, err
	}
	return &Connecting{w.URL, w.Wait, w.Close}, nil
}

// Adapters implements [Host].
func (e embedded) Adapters() Adapters { return e.API.Adapters() }

// Admin implements [Host].
func (e embedded) Admin() Admin { return e.API.Admin() }

// Agents implements [Host].
func (e embedded) Agents() Agents { return embeddedAgents{e.API.Agents()} }

// Approvals implements [Host].
func (e embedded) Approvals() Approvals { return e.API.Approvals() }

// Feeds implements [Host].
func (e embedded) Feeds() Feeds { return e.API.Feeds() }

// Identities implements [Host].
func (e embedded) Identities() Identities { return identities{e.API.Identities()} }

type identities struct{ host.Identities }

// LinkFor implements [Identities].
func (i identities) LinkFor(ctx context.Context, adapter, provider, externalID, to string, scopes ...string) (host.Identity, error) {
	return i.For(adapter).Link(ctx, provider, externalID, to, scopes...)
}

// Knowledge implements [Host].
func (e embedded) Knowledge() Knowledge { return e.API.Knowledge() }

// Ledger implements [Host].
func (e embedded) Ledger() Ledger { return e.API.Ledger() }

// Models implements [Host].
func (e embedded) Models() Models { return e.API.Models() }

// Offers implements [Host].
func (e embedded) Offers() Offers { return e.API.Offers() }

// Plans implements [Host].
func (e embedded) Plans() Plans { return e.API.Plans() }

// Plugins implements [Host].
func (e embedded) Plugins() Plugins { return e.API.Plugins() }

// Policies implements [Host].
func (e embedded) Policies() Policies { return policies{e.API.Policies()} }

type policies struct{ host.Policies }

// Set implements [Policies].
func (p policies) Set(ctx context.Context) ([]host.PolicyText, string, error) {
	texts, err := p.List(ctx)
	return texts, p.Version(), err
}

// References implements [Host].
func (e embedded) References() References { return e.API.References() }

// Secrets implements [Host].
func (e embedded) Secrets() Secrets { return e.API.Secrets() }

// Sessions implements [Host].
func (e embedded) Sessions() Sessions { return e.API.Sessions() }

// Tokens implements [Host].
func (e embedded) Tokens() Tokens { return e.API.Tokens() }

// Users implements [Host].
func (e embedded) Users() Users { return e.API.Users() }
