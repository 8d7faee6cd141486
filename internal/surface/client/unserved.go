package client

import (
	"context"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// The nouns that commands ask for in this process alone, so far.

// Accounts implements [Host].
func (r *remote) Accounts() Accounts { return nil }

// Admin implements [Host].
func (r *remote) Admin() Admin { return nil }

// Agents implements [Host].
func (r *remote) Agents() Agents { return nil }

// Approvals implements [Host].
func (r *remote) Approvals() Approvals { return nil }

// Calls implements [Host].
func (r *remote) Calls() Calls { return nil }

// Feeds implements [Host].
func (r *remote) Feeds() Feeds { return nil }

// Identities implements [Host].
func (r *remote) Identities() Identities { return nil }

// Knowledge implements [Host].
func (r *remote) Knowledge() Knowledge { return nil }

// Ledger implements [Host].
func (r *remote) Ledger() Ledger { return nil }

// Models implements [Host].
func (r *remote) Models() Models { return nil }

// Offers implements [Host].
func (r *remote) Offers() Offers { return nil }

// Plans implements [Host].
func (r *remote) Plans() Plans { return nil }

// Plugins implements [Host].
func (r *remote) Plugins() Plugins { return nil }

// Policies implements [Host].
func (r *remote) Policies() Policies { return nil }

// References implements [Host].
func (r *remote) References() References { return nil }

// Secrets implements [Host].
func (r *remote) Secrets() Secrets { return nil }

// Sessions implements [Host].
func (r *remote) Sessions() Sessions { return nil }

// Tokens implements [Host].
func (r *remote) Tokens() Tokens { return nil }

// Users implements [Host].
func (r *remote) Users() Users { return nil }

// Invoke implements [Host].
func (r *remote) Invoke(ctx context.Context, in host.Invocation) (plugin.Result, error) {
	return plugin.Result{}, nil
}
