package client

import (
	"context"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// The nouns that commands ask for in this process alone, so far.

// Agents implements [Host].
func (r *remote) Agents() Agents { return nil }

// Approvals implements [Host].
func (r *remote) Approvals() Approvals { return nil }

// Calls implements [Host].
func (r *remote) Calls() Calls { return nil }

// Feeds implements [Host].
func (r *remote) Feeds() Feeds { return nil }

// Knowledge implements [Host].
func (r *remote) Knowledge() Knowledge { return nil }

// Ledger implements [Host].
func (r *remote) Ledger() Ledger { return nil }

// Offers implements [Host].
func (r *remote) Offers() Offers { return nil }

// Plans implements [Host].
func (r *remote) Plans() Plans { return nil }

// Plugins implements [Host].
func (r *remote) Plugins() Plugins { return nil }

// Sessions implements [Host].
func (r *remote) Sessions() Sessions { return nil }

// Invoke implements [Host].
func (r *remote) Invoke(ctx context.Context, in host.Invocation) (plugin.Result, error) {
	return plugin.Result{}, nil
}
